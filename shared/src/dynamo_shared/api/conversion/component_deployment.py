"""Converts a DynamoComponentDeployment: its component, name, engine and status."""

from functools import partial
from typing import Any

from dynamo_shared.api.component_names import is_name
from dynamo_shared.api.conversion import component, component_lens, status
from dynamo_shared.api.conversion.changes import Changes
from dynamo_shared.api.conversion.lens import Lens, by_place, of_parts


def lens_to_beta(object_name: Any) -> Lens:
    """The lens to v1beta1. Without a name in the spec, the component gets the object's name."""
    return Lens(partial(to_beta, object_name=object_name), partial(to_alpha, object_name=object_name))


def lens_to_alpha(object_name: Any) -> Lens:
    """The lens to v1alpha1. Without a name in the spec, the component gets the object's name."""
    forward, backward = partial(to_alpha, object_name=object_name), partial(to_beta, object_name=object_name)
    return Lens(
        forward, backward, split=_split, group=_group, tidy=lambda body: component_lens.is_tidy(body.get("spec"))
    )


def to_beta(body: dict[str, Any], object_name: Any) -> dict[str, Any]:
    """The v1beta1 form of a v1alpha1 component deployment."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        name = _name(spec.get("serviceName"), object_name)
        return {**({"name": name} if name else {}), **_engine(spec), **component.to_beta(spec)}

    return of_parts(body, convert, status.component_to_beta)


def to_alpha(body: dict[str, Any], object_name: Any) -> dict[str, Any]:
    """The v1alpha1 form of a v1beta1 component deployment."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        name = _name(spec.get("name"), object_name)
        return {**({"serviceName": name} if name else {}), **_engine(spec), **component.to_alpha(spec)}

    return of_parts(body, convert, status.component_to_alpha)


def marked(body: dict[str, Any]) -> dict[str, Any]:
    """The object with `component_lens.marked` applied to its spec."""
    return {**body, "spec": component_lens.marked(body["spec"])} if "spec" in body else body


def unmarked(body: dict[str, Any]) -> dict[str, Any]:
    """The object with `component_lens.unmarked` applied to its spec."""
    return {**body, "spec": component_lens.unmarked(body["spec"])} if "spec" in body else body


def _engine(spec: dict[str, Any]) -> dict[str, Any]:
    return {"backendFramework": spec["backendFramework"]} if "backendFramework" in spec else {}


def _split(change: list[Any]) -> Changes:
    path = change[0]
    if path[0] != "spec":
        return [change]
    return [[["spec", *inner[0]], *inner[1:]] for inner in component_lens.split([path[1:], *change[1:]])]


def _group(change: list[Any]) -> str:
    path = change[0]
    return component_lens.by_service_field([path[1:], *change[1:]]) if path[0] == "spec" else by_place(change)


def _name(*names: Any) -> str | None:
    """The first valid name of a component; None without one."""
    for name in names:
        if isinstance(name, str) and is_name(name):
            return name
    return None
