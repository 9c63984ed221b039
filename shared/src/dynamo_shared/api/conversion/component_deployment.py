"""A DynamoComponentDeployment: a component with its name, its engine and its status."""

from functools import partial
from typing import Any

from dynamo_shared.api.component_names import is_name
from dynamo_shared.api.conversion import component, component_lens, status
from dynamo_shared.api.conversion.lens import Lens, by_place, of_parts
from dynamo_shared.api.conversion.pieces import Pieces


def lens_to_beta(object_name: Any) -> Lens:
    """To v1beta1, for a DCD with this name: it is the component's, too, where that has none."""
    return Lens(partial(to_beta, object_name=object_name), partial(to_alpha, object_name=object_name))


def lens_to_alpha(object_name: Any) -> Lens:
    """To v1alpha1, for a DCD with this name: it is the component's, too, where that has none."""
    forward, backward = partial(to_alpha, object_name=object_name), partial(to_beta, object_name=object_name)
    return Lens(
        forward, backward, split=_split, group=_group, tidy=lambda body: component_lens.is_tidy(body.get("spec"))
    )


def to_beta(body: dict[str, Any], object_name: Any) -> dict[str, Any]:
    """v1beta1 DCD of a v1alpha1 one."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        name = _name(spec.get("serviceName"), object_name)
        return {**({"name": name} if name else {}), **_engine(spec), **component.to_beta(spec)}

    return of_parts(body, convert, status.component_to_beta)


def to_alpha(body: dict[str, Any], object_name: Any) -> dict[str, Any]:
    """v1alpha1 DCD of a v1beta1 one."""

    def convert(spec: dict[str, Any]) -> dict[str, Any]:
        name = _name(spec.get("name"), object_name)
        return {**({"serviceName": name} if name else {}), **_engine(spec), **component.to_alpha(spec)}

    return of_parts(body, convert, status.component_to_alpha)


def marked(body: dict[str, Any]) -> dict[str, Any]:
    """As `component_lens.marked`."""
    return {**body, "spec": component_lens.marked(body["spec"])} if "spec" in body else body


def unmarked(body: dict[str, Any]) -> dict[str, Any]:
    """As `component_lens.unmarked`."""
    return {**body, "spec": component_lens.unmarked(body["spec"])} if "spec" in body else body


def _engine(spec: dict[str, Any]) -> dict[str, Any]:
    return {"backendFramework": spec["backendFramework"]} if "backendFramework" in spec else {}


def _split(piece: list[Any]) -> Pieces:
    path = piece[0]
    if path[0] != "spec":
        return [piece]
    return [[["spec", *inner[0]], *inner[1:]] for inner in component_lens.split([path[1:], *piece[1:]])]


def _group(piece: list[Any]) -> str:
    path = piece[0]
    return component_lens.by_service_field([path[1:], *piece[1:]]) if path[0] == "spec" else by_place(piece)


def _name(*names: Any) -> str | None:
    """The first that is a component's name."""
    for name in names:
        if isinstance(name, str) and is_name(name):
            return name
    return None
