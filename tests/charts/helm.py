"""Functions that run Helm for these tests."""

import asyncio
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from dynamo_devcluster import Programs
from dynamo_devcluster.errors import ProgramUnavailableError

ROOT = Path(__file__).parents[2]
PLATFORM, CRDS = ROOT / "helm" / "dynamo-platform", ROOT / "helm" / "dynamo-crds"
VALUES = tuple(sorted((PLATFORM / "ci").glob("*.yaml")))
#: libyaml's parser if PyYAML has it: it is ten times as fast.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
RELEASE, NAMESPACE = "dynamo-platform", "dynamo-system"
WITHIN = 60


@cache
def program() -> Path | None:
    """Helm, or None where it cannot be obtained."""
    try:
        return asyncio.run(Programs().obtain("helm"))
    except ProgramUnavailableError:
        return None


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command's outcome."""
    helm = program()
    if helm is None:
        raise AssertionError("helm is not available")
    # Helm ends before garbage collection pays off: this saves a quarter of its CPU time.
    environ = {**os.environ, "GOGC": "off"}
    return subprocess.run([helm, *arguments], env=environ, capture_output=True, text=True, timeout=WITHIN, check=False)


def template(*arguments: str | Path, chart: Path = PLATFORM, release: str = RELEASE, namespace: str = NAMESPACE) -> str:
    """What a chart renders. Raises AssertionError with Helm's message if it fails."""
    outcome = run("template", release, chart, "--namespace", namespace, *arguments)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


@cache
def rendering(values: Path) -> str:
    """What the platform's chart renders with one values file; each file is rendered once."""
    return template("--values", values)


@cache
def rendered(values: Path) -> tuple[dict[str, Any], ...]:
    """The objects of one values file."""
    return tuple(each for each in yaml.load_all(rendering(values), LOADER) if each)


def objects(*arguments: str | Path, **options: Any) -> tuple[dict[str, Any], ...]:
    """The objects that a chart renders (see `template`)."""
    return tuple(each for each in yaml.load_all(template(*arguments, **options), LOADER) if each)


def of_kind(objects: tuple[dict[str, Any], ...], *kinds: str) -> list[dict[str, Any]]:
    """Objects of some kinds."""
    return [each for each in objects if each["kind"] in kinds]


def one(objects: tuple[dict[str, Any], ...], kind: str, name: str) -> dict[str, Any]:
    """The platform's object of a kind; `name` is the part after the release name."""
    (result,) = (o for o in of_kind(objects, kind) if o["metadata"]["name"].endswith(f"{RELEASE}-{name}"))
    return result


def pods(objects: tuple[dict[str, Any], ...]) -> list[tuple[str, dict[str, Any]]]:
    """Name and pod spec of everything that runs pods."""
    results = [
        (f"{each['kind']} {each['metadata']['name']}", each["spec"]["template"]["spec"])
        for each in of_kind(objects, "Deployment", "StatefulSet", "Job")
    ]
    return results + [(f"Pod {each['metadata']['name']}", each["spec"]) for each in of_kind(objects, "Pod")]
