"""Every field of every kind, and every setting, takes effect, is rejected, or is ignored with a warning at each write.

A field takes effect if a module of the platform reads it by its name. Definitions of types, conversions between names
and lists of names do not count as reading. Fields of v1alpha1 only are read by code that uses v1alpha1.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from dynamo_shared.api import deprecations
from dynamo_shared.api.contracts import contract_checks
from dynamo_shared.api.contracts.base import ContractModel, model_of
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.contracts.profiler import ProfilerConfig
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS, LEGACY
from dynamo_shared.api.request_parts import parts_of, spec_of
from dynamo_shared.api.resources import Resource
from dynamo_shared.runtime import InvalidSettings, load_settings
from dynamo_shared.runtime.settings import Settings
from pydantic import BaseModel

ROOT = Path(__file__).parents[3]
API = ROOT / "shared" / "src" / "dynamo_shared" / "api"
#: Definitions, renamings and lists: a name that occurs only here is not read.
NOT_READING = tuple(
    API / name
    for name in (*("v1alpha1", "v1beta1", "legacy", "crds", "registry", "conversion"), *("meta.py", "deprecations.py"))
)
SETTINGS = ROOT / "shared" / "src" / "dynamo_shared" / "runtime" / "settings"
KINDS = [version.resource for each in DEFINITIONS if each not in LEGACY for version in each.versions]
#: A picker's configuration is copied unchanged into the picker's ConfigMap.
PASSED_ON = re.compile(r"\beppConfig\.config\.")
#: Conversion renames these to a v1beta1 field, which is checked there.
CONVERSION = API / "conversion"


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z])(?=[a-z])", r"_\1\2", name).lower()


@cache
def read_in(*folders: Path) -> frozenset[str]:
    """Attributes and keys that modules read: `x.name`, `x["name"]`, `x.get("name")`, `("name", ...)`; no docstrings"""
    results: set[str] = set()
    for folder in folders:
        for file in folder.rglob("*.py") if folder.is_dir() else (folder,):
            if folder != CONVERSION and any(each == file or each in file.parents for each in NOT_READING):
                continue
            if SETTINGS in file.parents:
                continue
            tree = ast.parse(file.read_text(encoding="utf-8"))
            texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                    results.add(node.attr)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in texts:
                    # Parts of a media type are not names of fields.
                    results.update([] if node.value.startswith("application/") else node.value.split("."))
    return frozenset(results)


def platform() -> frozenset[str]:
    return read_in(ROOT / "shared" / "src", *sorted((ROOT / "services").glob("*/src")))


def fields(schema: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    """Paths in the form of the inventory, ending with the name. Kubernetes reads the fields that it defines."""
    for name, child in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        yield here, name
        if "x-dynamo-embedded" not in child:
            yield from fields(child, here)
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict) and "x-dynamo-embedded" not in schema[key]:
            yield from fields(schema[key], f"{path}{mark}")


def ignored_with_a_warning(resource: Resource) -> set[str]:
    return {each.path for each in deprecations.of(resource.kind, resource.version) if each.path and each.ignored}


@pytest.mark.parametrize("resource", KINDS, ids=lambda each: f"{each.kind}-{each.version}")
def test_every_field_of_a_spec_is_read_or_has_a_warning(resource: Resource) -> None:
    warned = ignored_with_a_warning(resource)
    known = platform() | (read_in(CONVERSION) if resource.version == "v1alpha1" else frozenset())
    unread = {
        path
        for path, name in fields(schema_of(resource)["properties"]["spec"], "spec")
        if not {name, snake(name)} & known and not any(path == each or path.startswith(f"{each}.") for each in warned)
    }
    assert {path for path in unread if not PASSED_ON.search(path)} == set()


def settings_of(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    for name, each in model.model_fields.items():
        here = f"{path}.{each.alias or name}".strip(".")
        if isinstance(each.annotation, type) and issubclass(each.annotation, BaseModel):
            yield from settings_of(each.annotation, here)
        else:
            yield here, name


def test_every_setting_is_read_or_has_a_warning() -> None:
    given = load_settings(
        None,
        {
            "DYNAMO_SECURITY__ENABLE_HTTP2": "true",
            "DYNAMO_LPX__MODEL_REGISTRY_URL": "u",
            "DYNAMO_CHECKPOINT__CLEANUP_IMAGE": "i",
            "DYNAMO_CHECKPOINT__STORAGE__OCI": '{"registry": "r"}',
        },
    )
    warned = {each.partition(" is ignored")[0] for each in given.ignored}
    assert {path for path, name in settings_of(Settings) if name not in platform()} == warned


def test_a_setting_without_effect_is_rejected() -> None:
    with pytest.raises(InvalidSettings, match=r"server\.webhook\.enabled must be true"):
        load_settings(None, {"DYNAMO_SERVER__WEBHOOK__ENABLED": "false"})


def profiler_fields(
    model: type[ContractModel], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any, bool]]:
    """Leaves of the profiler's configuration: the path, a value other than the default, whether it is ignored."""
    for name, each in model.model_fields.items():
        inner = model_of(each.annotation)
        if inner is not None and inner is not PlannerConfig:
            yield from profiler_fields(inner, (*path, name))
        else:
            yield (*path, name), _sample(name, each.annotation), name in model.IGNORED


def _sample(name: str, annotation: Any) -> Any:
    kinds = {annotation, *get_args(annotation)}
    text = str(annotation)
    if name == "planner":
        return {"mode": "agg"}
    if "Literal" in text:
        return "throughput" if "throughput" in text else "sglang"
    if bool in kinds or "bool" in text:
        return True
    return "h100_sxm" if str in kinds else 7


LEAVES = list(profiler_fields(ProfilerConfig))


@pytest.mark.parametrize(("path", "value", "ignored"), LEAVES, ids=[".".join(each[0]) for each in LEAVES])
def test_every_field_of_the_profilers_configuration_has_an_effect(
    path: tuple[str, ...], value: Any, ignored: bool
) -> None:
    config: Any = value
    for name in reversed(path):
        config = {name: config}
    assert (_done(config) != _done(None)) is not ignored
    warned = [each.message for each in contract_checks.warnings(ProfilerConfig, config)]
    assert any(each.startswith("is ignored: ") for each in warned) is ignored


def _done(config: Any) -> Any:
    """The inputs of profiling from a request: its spec, and fields of v1alpha1 only."""
    # A field that enables discovery is visible if discovery is off; an engine, if the request leaves it open.
    spec = {"model": "m", "backend": "auto", "enableGpuDiscovery": False, "profilingConfig": {"profilerImage": "i"}}
    if config is not None:
        spec["profilingConfig"] = {"profilerImage": "i", "config": config}
    results = []
    head = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "r"}}
    for backend in ("auto", "vllm"):
        stored = convert({**head, "spec": {**spec, "backend": backend}}, "nvidia.com/v1beta1")
        parts = parts_of(stored)
        results.append((spec_of(stored), parts.profiler_arguments, parts.discovers_gpus, parts.workers_image))
    return results
