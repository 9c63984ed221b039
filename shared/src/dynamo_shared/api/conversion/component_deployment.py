"""A DynamoComponentDeployment: a component with its name, its engine and its status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_shared.api.conversion import component, status
from dynamo_shared.api.conversion.lens import Lens, by_place
from dynamo_shared.api.conversion.pod import filled


def lens_to_beta(object_name: Any) -> Lens:
    """To v1beta1, for a DCD with this name."""
    return Lens(to_beta(object_name), to_alpha)


def lens_to_alpha(object_name: Any) -> Lens:
    """To v1alpha1, for a DCD with this name."""
    return Lens(to_alpha, to_beta(object_name), group=_group, tidy=lambda body: component.is_tidy(body.get("spec")))


def to_beta(object_name: Any) -> Callable[[Any], dict[str, Any]]:
    """Conversion to v1beta1 of a DCD with this name: it is the component's, where that has none."""

    def convert(body: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        spec = body.get("spec")
        if isinstance(spec, dict):
            name = filled(spec.get("serviceName"), str) or filled(object_name, str)
            result["spec"] = {**({"name": name} if name else {}), **_engine(spec), **component.to_beta(spec)}
        if isinstance(body.get("status"), dict):
            result["status"] = status.component_to_beta(body["status"])
        return result

    return convert


def to_alpha(body: dict[str, Any]) -> dict[str, Any]:
    """v1alpha1 DCD of a v1beta1 one."""
    result: dict[str, Any] = {}
    spec = body.get("spec")
    if isinstance(spec, dict):
        name = filled(spec.get("name"), str)
        result["spec"] = {**({"serviceName": name} if name else {}), **_engine(spec), **component.to_alpha(spec)}
    if isinstance(body.get("status"), dict):
        result["status"] = status.component_to_alpha(body["status"])
    return result


def marked(body: dict[str, Any]) -> dict[str, Any]:
    """As `component.marked`."""
    return {**body, "spec": component.marked(body["spec"])} if "spec" in body else body


def unmarked(body: dict[str, Any]) -> dict[str, Any]:
    """As `component.unmarked`."""
    return {**body, "spec": component.unmarked(body["spec"])} if "spec" in body else body


def _engine(spec: dict[str, Any]) -> dict[str, Any]:
    return {"backendFramework": spec["backendFramework"]} if "backendFramework" in spec else {}


def _group(path: list[Any]) -> str:
    return component.by_service_field(path[1:]) if path[0] == "spec" else by_place(path)
