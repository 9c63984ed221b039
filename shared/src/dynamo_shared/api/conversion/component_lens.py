"""The lens between the versions of a component, and the groups of fields that belong together."""

from typing import Any

from dynamo_shared.api.containers import containers_of, with_containers
from dynamo_shared.api.conversion.changes import Changes
from dynamo_shared.api.conversion.component import to_alpha, to_beta
from dynamo_shared.api.conversion.lens import Lens
from dynamo_shared.api.conversion.pod import MARK, filled
from dynamo_shared.api.untrusted.reading import mapping

#: Fields of a v1alpha1 service, and the equivalent fields of its mainContainer.
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


def split(change: list[Any]) -> Changes:
    """Separate changes for the fields of extraPodSpec and of its mainContainer, together equivalent to the given change."""
    path, value = change[0], change[1] if len(change) == 2 else None
    if not isinstance(value, dict) or not value:
        return [change]
    if path == [*IN_MAIN]:
        return [[path, {name: each}] for name, each in value.items()]
    if path != ["extraPodSpec"]:
        return [change]
    main = filled(value.get("mainContainer"), dict) or {}
    others = [[path, {name: each}] for name, each in value.items() if name != "mainContainer" or not main]
    return others + [[path, {"mainContainer": {name: each}}] for name, each in main.items()]


def by_service_field(change: list[Any]) -> str:
    """The group of a change that `split` returned: a field of the service, also for the equivalent field of mainContainer."""
    path, value = [*change[0]], change[1] if len(change) == 2 else None
    while len(path) < 3 and path == [*IN_MAIN][: len(path)] and isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        path.append(name)
    if path[:2] == [*IN_MAIN] and len(path) > 2:
        return _SERVICE_FIELDS.get(str(path[2]), "mainContainer")
    field = str(path[0]) if path else ""
    return "componentType" if field == "subComponentType" else field


def is_tidy(service: Any) -> bool:
    """Whether no field of a service is also set in mainContainer."""
    main = mapping(mapping(mapping(service).get("extraPodSpec")).get("mainContainer"))
    return not any(beta in main and alpha in service for alpha, beta in MAIN_CONTAINER_FIELDS.items())


def marked(component: Any) -> Any:
    """The component with a mark (MARK) in the frontend sidecar's container instead of the field `frontendSidecar`, so
    that the two stay together.
    """
    name = mapping(component).get("frontendSidecar")
    for place, each in enumerate(_containers(component) if isinstance(name, str) else ()):
        if isinstance(each, dict) and each.get("name") == name:
            rest = {field: value for field, value in component.items() if field != "frontendSidecar"}
            return _with_container(rest, place, {**each, MARK: True})
    return component


def unmarked(component: Any) -> Any:
    """The v1beta1 component for one that `marked` returned."""
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
