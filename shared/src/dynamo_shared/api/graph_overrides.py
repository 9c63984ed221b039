"""`overrides.dgd` of a request: a part of a graph, in one of two versions (planner.md, section b.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_shared.api.crds.build import definition_of, schema_of
from dynamo_shared.api.crds.structural import Schema
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, GROUP
from dynamo_shared.api.rules import Location

ALPHA, BETA = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"
_OF_ALPHA = ("services", "envs", "pvcs")


def version_of(override: Mapping[str, Any]) -> str:
    """What it says, or else what it is written in: services are v1alpha1's, and the reference knows no other version."""
    if override.get("apiVersion") in (ALPHA, BETA):
        return str(override["apiVersion"])
    spec = override.get("spec") or {}
    return ALPHA if not spec or any(field in spec for field in _OF_ALPHA) else BETA


def unknown_fields(override: Mapping[str, Any]) -> Iterator[tuple[Location, tuple[str, ...]]]:
    """Fields of `spec` and of its components that graphs do not have, each with those that there are; null counts for nothing."""
    spec, version = override.get("spec"), version_of(override)
    if not isinstance(spec, dict):
        return
    graph = definition_of(DYNAMO_GRAPH_DEPLOYMENTS.kind).at(version.partition("/")[2])
    of_spec = schema_of(graph.resource)["properties"]["spec"]["properties"]
    yield from _unknown(spec, of_spec, ("spec",))
    if version == ALPHA:
        services, of_service = spec.get("services"), of_spec["services"]["additionalProperties"]["properties"]
        for name, service in services.items() if isinstance(services, dict) else ():
            yield from _unknown(service, of_service, ("spec", "services", str(name)))
    else:
        components, of_component = spec.get("components"), of_spec["components"]["items"]["properties"]
        for index, component in enumerate(components if isinstance(components, list) else ()):
            yield from _unknown(component, of_component, ("spec", "components", index))


def _unknown(given: Any, known: Schema, at: Location) -> Iterator[tuple[Location, tuple[str, ...]]]:
    if isinstance(given, dict):
        for name, value in given.items():
            if value is not None and name not in known:
                yield (*at, str(name)), tuple(known)
