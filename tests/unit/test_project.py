"""The project's own files: what users copy from them works, and nothing of a maker's machine is in them."""

import operator
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from dynamo_devcluster.catalog import ETCD_VERSION, NATS_VERSION
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.manifest import load_manifests
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
README = (ROOT / "README.md").read_text()
MAKEFILE = (ROOT / "Makefile").read_text()
# Written in parts, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a package registry's host": re.compile(
        r"(?:files\.)?python" + r"hosted\.org|pypi" + r"\.org|test\.pypi|proxy" + r"\.golang"
    ),
    "a path of a developer's machine": re.compile(r"(?<![\w.}-])/(?:wo" + r"rk|root|home/[a-z]\w*)/(?!\{)\w"),
}
# What /root and /home stand for inside a container or in documents of the API is not a path of this machine.
CONTAINER_PATHS = re.compile(r"/root/(?:\.cache/(?:vllm|huggingface)|\.kwok)|/home/dynamo")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("no git repository here")
    return [name for name in listed.stdout.split("\0") if name]


def test_the_readme_has_its_two_commands_before_its_first_explanation() -> None:
    lines = [line for line in README.splitlines() if line.strip()]
    assert lines[0].startswith("# ")
    assert lines[1].startswith("```")
    assert [line.split("#")[0].strip() for line in lines[2:4]] == ["make demo", "make test"]
    assert lines[4] == "```"


def test_make_targets_of_the_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", MAKEFILE, re.MULTILINE))
    used = set()
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        used |= set(re.findall(r"`make ([a-z0-9-]+)", document.read_text()))
    assert used <= targets


def test_every_make_target_is_explained() -> None:
    targets = re.findall(r"^([a-z0-9-]+):(.*)$", MAKEFILE, re.MULTILINE)
    assert [name for name, rest in targets if "## " not in rest] == []


def test_continuous_integration_runs_what_the_readme_says_then_the_checks() -> None:
    commands = [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make")]
    assert commands == ["make test", "make check"]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_says_the_same_in_the_old_version(file: Path) -> None:
    new, old = yaml.safe_load(file.read_text()), yaml.safe_load((file.parent / "v1alpha1" / file.name).read_text())
    assert old["apiVersion"] == "nvidia.com/v1alpha1"
    load_manifests(yaml.safe_dump(old))
    converted = convert(old, new["apiVersion"])
    by_name = operator.itemgetter("name")
    # A map has no order.
    assert sorted(converted["spec"].pop("components"), key=by_name) == sorted(
        new["spec"].pop("components"), key=by_name
    )
    assert converted == new


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_is_valid_to_the_letter(file: Path) -> None:
    (graph,) = load_manifests(file.read_text())
    assert isinstance(graph, DynamoGraphDeployment)
    assert graph.metadata.name == file.stem
    assert graph.spec.backend_framework is not None
    assert file.read_text().startswith("# "), "an example begins with what it is for"
    workers = [each for each in graph.spec.components if each.type != "frontend"]
    assert len(workers) == (2 if "disagg" in file.stem else 1)
    for worker in workers:
        container = (worker.pod_template or {})["spec"]["containers"][0]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_every_backend_has_an_aggregated_and_a_disaggregated_example() -> None:
    assert [file.stem for file in EXAMPLES] == [
        f"{backend}-{way}" for backend in ("sglang", "trtllm", "vllm") for way in ("agg", "disagg")
    ]


def test_the_compose_file_follows_the_specification() -> None:
    checked = subprocess.run(
        [
            sys.executable,
            "-m",
            "check_jsonschema",
            "--builtin-schema",
            "vendor.compose-spec",
            str(ROOT / "compose.yaml"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_compose_file_holds_together() -> None:
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    services = compose["services"]
    for name, service in services.items():
        assert set(service.get("depends_on", {})) <= set(services), name
        for source, *_ in (each.split(":") for each in service.get("volumes", [])):
            # Files, not `configs`: podman-compose has none.
            assert source in compose["volumes"] or (ROOT / source).is_file(), f"{name} mounts {source}"
        assert not service.get("privileged"), name
        assert not re.search(r":latest$|^[^:]+$", service["image"]), f"{name}: name a version"
        for port in service.get("ports", []):
            assert port.startswith("127.0.0.1:"), f"{name} listens to the whole network"
        for dependency, condition in service.get("depends_on", {}).items():
            if condition["condition"] == "service_healthy":
                assert "healthcheck" in services[dependency], f"{name} waits for the health of {dependency}"
    text = (ROOT / "compose.yaml").read_text()
    # Passwords are made up at the first start; the file only says where they are.
    assert not re.search(r"(?i)password(?!_file|s? made up)|token|secret", text)


@pytest.mark.parametrize(("program", "version"), [("nats", NATS_VERSION), ("etcd", ETCD_VERSION)])
def test_images_of_servers_have_the_version_that_the_tests_run(program: str, version: str) -> None:
    """The tag 2.12-alpine was of another server each month, and of none that was tested."""
    values = yaml.safe_load((ROOT / "helm/dynamo-platform/values.yaml").read_text())
    compose = yaml.safe_load((ROOT / "compose.yaml").read_text())
    tags = {values[program]["image"]["tag"], compose["services"][program]["image"].rpartition(":")[2]}
    assert {tag.removeprefix("v").removesuffix("-alpine") for tag in tags} == {version}


def test_the_compose_files_settings_are_settings() -> None:
    from dynamo_shared.runtime.settings import load_settings

    settings = load_settings(ROOT / "compose" / "config.yaml")
    assert settings.platform.nats.servers == ("nats://nats:4222",)
    assert settings.platform.admission.url == "https://admission:9443"
    items = yaml.safe_load((ROOT / "compose" / "nodes.yaml").read_text())["items"]
    nodes = [item for item in items if item["kind"] == "Node"]
    assert {node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes} == {"8"}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_tracked_file_holds(what: str) -> None:
    results = []
    for name in tracked():
        file = ROOT / name
        if not file.is_file() or file.suffix in {".sum", ".png"}:
            continue
        text = CONTAINER_PATHS.sub("", file.read_text(errors="replace"))
        results += [f"{name}: {match[0]}" for match in FORBIDDEN[what].finditer(text)]
    assert not results


@pytest.mark.parametrize(
    "script",
    [
        "services/pod-builder/src/dynamo_pod_builder/render/workloads/scripts/wait_for_leader.py",
        "services/profiler/src/dynamo_profiler/requests/thorough/relay.py",
    ],
)
def test_a_script_that_runs_in_images_of_others_evaluates_no_annotation(script: str) -> None:
    # `str | None` is an error in the Python 3.9 of some, and `list[str]` in 3.8.
    assert "from __future__ import annotations\n" in (ROOT / script).read_text()


def test_the_locked_requirements_have_hashes() -> None:
    for name in ("dev.txt", "runtime.txt", "uv.txt"):
        text = (ROOT / "requirements" / name).read_text()
        entries = [entry for entry in re.split(r"\n(?=\S)", text.strip()) if entry]
        assert entries
        assert all("--hash=sha256:" in entry for entry in entries), name
    assert "uv.lock" not in tracked()
