"""The registries: one meaning for each name, names that Kubernetes accepts, and a page that lists them."""

import ast
import re
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from dynamo_shared.api.registry import CATALOGS, annotations, env, labels, ports
from dynamo_shared.api.registry.catalog import Catalog, CatalogEntry
from dynamo_shared.runtime.settings import Settings

from tools.generate.reference.registries import registry_page

QUALIFIED_NAME = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


def constants(module: ModuleType) -> dict[str, str]:
    return {
        name: value
        for name, value in vars(module).items()
        if name.isupper() and name[0] != "_" and isinstance(value, str)
    }


def _names(catalog: Catalog) -> frozenset[str]:
    return frozenset(entry.name for entry in catalog.entries)


@pytest.mark.parametrize("module", [labels, annotations, env], ids=lambda module: module.__name__.rpartition(".")[2])
def test_every_constant_is_registered_and_a_plain_string(module: ModuleType) -> None:
    names = constants(module)
    assert set(names.values()) == _names(module.CATALOG)
    assert all(type(value) is str for value in names.values()), "serialisers know str only"


@pytest.mark.parametrize("entry", labels.CATALOG.entries + annotations.CATALOG.entries, ids=lambda entry: entry.name)
def test_labels_and_annotations_have_valid_keys(entry: CatalogEntry) -> None:
    assert QUALIFIED_NAME.fullmatch(entry.name)


def test_variables_have_valid_names() -> None:
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) for name in _names(env.CATALOG))


def test_ports_are_valid_container_ports() -> None:
    all_ports = [value for value in vars(ports).values() if isinstance(value, ports.Port)]
    assert len(all_ports) == len(ports.CATALOG.entries)
    for port in all_ports:
        assert 0 < port.number < 65536
        assert not port.name or re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,13}[a-z0-9])?", port.name)
    assert ports.HTTP.container_port() == {"name": "http", "containerPort": 8000, "protocol": "TCP"}


@pytest.mark.parametrize("catalog", CATALOGS, ids=lambda catalog: catalog.title)
def test_every_entry_says_who_sets_it_and_why(catalog: Catalog) -> None:
    for entry in catalog.entries:
        assert entry.purpose.endswith("."), entry.name
        assert entry.set_by, entry.name
        assert entry.read_by, entry.name
        assert entry.where, entry.name


def test_one_name_has_one_meaning() -> None:
    catalog = Catalog("Things", "", "Thing", "Values")
    catalog.add("a", "It is.", set_by="us", read_by="you")
    with pytest.raises(ValueError, match="a is registered twice"):
        catalog.add("a", "It is not.", set_by="us", read_by="you")


@pytest.mark.parametrize("catalog", CATALOGS, ids=lambda catalog: catalog.title)
def test_a_page_lists_every_entry_in_a_well_formed_table(catalog: Catalog) -> None:
    rows = [line for line in registry_page(catalog).splitlines() if line.startswith("| `")]
    assert len(rows) == len(catalog.entries)
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 8 for row in rows)


def test_a_pipe_in_a_cell_is_escaped() -> None:
    catalog = Catalog("Things", "Some.", "Thing", "Values")
    catalog.add("a", "This or that.", set_by="us", read_by="you", values="x|y")
    assert "x\\|y" in registry_page(catalog)


ROOT = Path(__file__).parents[3]
REGISTRY = ROOT / "shared" / "src" / "dynamo_shared" / "api" / "registry"


@cache
def used_names() -> frozenset[str]:
    """Every name that a module of the platform reads as an attribute or alone, except the registries."""
    results: set[str] = set()
    for folder in (ROOT / "shared" / "src", *(ROOT / "services").glob("*/src")):
        for file in folder.rglob("*.py"):
            if REGISTRY not in file.parents:
                for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                    if isinstance(node, ast.Attribute):
                        results.add(node.attr)
                    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                        results.add(node.id)
                    elif isinstance(node, ast.ImportFrom):
                        results.update(each.name for each in node.names)
                    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                        # Command lines and expressions of Kubernetes contain names of variables.
                        results.update(re.findall(r"\b[A-Z][A-Z_]{6,}\b", node.value))
    return frozenset(results)


#: Read only by planner pods of the Dynamo runtime, which graphs may still have: promised as stable by release 0.1.0.
READ_BY_PLANNER_PODS = {
    "PROMETHEUS_TOKEN",
    "PROMETHEUS_TOKEN_FILE",
    "PROMETHEUS_SSL_VERIFY",
    "PROMETHEUS_EXTRA_QUERY_PARAMS",
    "PROMETHEUS_CA_BUNDLE",
}


@pytest.mark.parametrize(
    "module", [labels, annotations, env, ports], ids=lambda module: module.__name__.rpartition(".")[2]
)
def test_every_name_is_used_by_the_platform(module: ModuleType) -> None:
    """A promised name that no module reads has no effect: remove it, or write its code."""
    names = constants(module) if module is not ports else {name for name in vars(ports) if name.isupper()} - {"CATALOG"}
    assert len(names) > 10
    assert sorted(name for name in names if name not in used_names() | READ_BY_PLANNER_PODS) == []


# The list of the formalization proposal: public names from the start.
PROPOSED = {
    "labels": [
        "nvidia.com/selector",
        "nvidia.com/dynamo-graph-deployment-name",
        "nvidia.com/dynamo-component",
        "nvidia.com/dynamo-namespace",
        "nvidia.com/dynamo-component-type",
        "nvidia.com/dynamo-sub-component-type",
        "nvidia.com/dynamo-base-model",
        "nvidia.com/dynamo-base-model-hash",
        "nvidia.com/dynamo-discovery-backend",
        "nvidia.com/dynamo-discovery-enabled",
        "nvidia.com/metrics-enabled",
    ],
    "annotations": ["nvidia.com/kai-scheduler-queue"],
    "env": [
        "DYN_DEPLOYMENT_CONFIG",
        "DYN_NAMESPACE",
        "DYN_COMPONENT",
        "DYN_DISCOVERY_BACKEND",
        "DYNAMO_PORT",
        "PROMETHEUS_ENDPOINT",
    ],
    "ports": ["8000", "9085", "9090", "2222"],
}


@pytest.mark.parametrize(
    "module", [labels, annotations, env, ports], ids=lambda module: module.__name__.rpartition(".")[2]
)
def test_names_proposed_as_public_are_registered(module: ModuleType) -> None:
    assert set(PROPOSED[module.__name__.rpartition(".")[2]]) <= _names(module.CATALOG)


def test_ports_of_the_platform_match_its_settings() -> None:
    server = Settings().server
    assert ports.PLATFORM_METRICS.number == server.metrics.port
    assert ports.PLATFORM_HEALTH.number == server.health_probe.port
    assert ports.PLATFORM_WEBHOOK.number == server.webhook.port
