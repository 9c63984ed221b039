"""How a component gets from one version to the other and back: what of it goes together."""

from typing import Any

from dynamo_shared.api.containers import containers_of, with_containers
from dynamo_shared.api.conversion.component import to_alpha, to_beta
from dynamo_shared.api.conversion.lens import Lens
from dynamo_shared.api.conversion.pieces import Pieces
from dynamo_shared.api.conversion.pod import MARK, filled
from dynamo_shared.api.untrusted.reading import mapping

#: Fields of a service, and where its mainContainer says the same.
MAIN_CONTAINER_FIELDS = {
    "envs": "env",
    "envFromSecret": "envFrom",
    "resources": "resources",
    "livenessProbe": "livenessProbe",
    "readinessProbe": "readinessProbe",
    "volumeMounts": "volumeMounts",
}


_SERVICE_FIELDS = {beta: alpha for alpha, beta in MAIN_CONTAINER_FIELDS.items()}
IN_MAIN = ("extraPodSpec", "mainContainer")


def split(piece: list[Any]) -> Pieces:
    """A piece for each field of a pod and of mainContainer; they are put together again where they meet."""
    path, value = piece[0], piece[1] if len(piece) == 2 else None
    if not isinstance(value, dict) or not value:
        return [piece]
    if path == [*IN_MAIN]:
        return [[path, {name: each}] for name, each in value.items()]
    if path != ["extraPodSpec"]:
        return [piece]
    main = filled(value.get("mainContainer"), dict) or {}
    others = [[path, {name: each}] for name, each in value.items() if name != "mainContainer" or not main]
    return others + [[path, {"mainContainer": {name: each}}] for name, each in main.items()]


def by_service_field(piece: list[Any]) -> str:
    """Pieces of a service that belong together, of those that `split` made: a field and what mainContainer has for it."""
    path, value = [*piece[0]], piece[1] if len(piece) == 2 else None
    while len(path) < 3 and path == [*IN_MAIN][: len(path)] and isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        path.append(name)
    if path[:2] == [*IN_MAIN] and len(path) > 2:
        return _SERVICE_FIELDS.get(str(path[2]), "mainContainer")
    field = str(path[0]) if path else ""
    return "componentType" if field == "subComponentType" else field


def is_tidy(service: Any) -> bool:
    """Whether a service says nothing in two places."""
    main = mapping(mapping(mapping(service).get("extraPodSpec")).get("mainContainer"))
    return not any(beta in main and alpha in service for alpha, beta in MAIN_CONTAINER_FIELDS.items())


def marked(component: Any) -> Any:
    """The component with its front end's name as a mark on that container, so that one goes with the other."""
    name = mapping(component).get("frontendSidecar")
    for place, each in enumerate(_containers(component) if isinstance(name, str) else ()):
        if isinstance(each, dict) and each.get("name") == name:
            rest = {field: value for field, value in component.items() if field != "frontendSidecar"}
            return _with_container(rest, place, {**each, MARK: True})
    return component


def unmarked(component: Any) -> Any:
    """The component as v1beta1 has it, of one that `marked` made."""
    for place, each in enumerate(_containers(component)):
        if isinstance(each, dict) and each.get(MARK) is True and isinstance(each.get("name"), str):
            container = {field: value for field, value in each.items() if field != MARK}
            return {**_with_container(component, place, container), "frontendSidecar": each["name"]}
    return component


def _containers(component: Any) -> list[Any]:
    return containers_of(mapping(component).get("podTemplate"))


def _with_container(component: dict[str, Any], place: int, container: dict[str, Any]) -> dict[str, Any]:
    changed = with_containers(
        component["podTemplate"], lambda listed: [*listed[:place], container, *listed[place + 1 :]]
    )
    return {**component, "podTemplate": changed}


TO_BETA = Lens(to_beta, to_alpha)
TO_ALPHA = Lens(to_alpha, to_beta, split=split, group=by_service_field, tidy=is_tidy)
