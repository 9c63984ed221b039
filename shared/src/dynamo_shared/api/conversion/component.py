"""A component: a v1alpha1 service of a graph, a v1beta1 component, and what DCDs have of both."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.conversion.experimental import from_experimental, to_experimental
from dynamo_shared.api.conversion.lens import Lens
from dynamo_shared.api.conversion.pieces import Pieces
from dynamo_shared.api.conversion.pod import MARK, cache_mount, filled, from_template, to_template

#: Fields that are the same in both versions.
SAME = ("replicas", "globalDynamoNamespace", "topologyConstraint")
TYPES = frozenset({"frontend", "worker", "prefill", "decode", "planner", "epp"})
#: Types that v1alpha1 has as a worker's sub-type.
SUBTYPES = frozenset({"prefill", "decode"})
EPP = "epp"
DEFAULT_NODES = 2
NO_MEMORY = "0"
#: Fields of a service, and where its mainContainer says the same.
TWICE = {
    "envs": "env",
    "envFromSecret": "envFrom",
    "resources": "resources",
    "livenessProbe": "livenessProbe",
    "readinessProbe": "readinessProbe",
    "volumeMounts": "volumeMounts",
}


_SERVICE_FIELDS = {there: here for here, there in TWICE.items()}
IN_MAIN = ("extraPodSpec", "mainContainer")


def to_beta(service: Any) -> dict[str, Any]:
    """v1beta1 component, without its name, of a v1alpha1 service. What is not understood is left out."""
    component: dict[str, Any] = {}
    if not isinstance(service, dict):
        return component
    kind = _kind(service)
    if kind:
        component["type"] = kind
    _copy(service, component, is_picker=kind == EPP)
    size = _memory_size(service.get("sharedMemory"))
    if size is not None:
        component["sharedMemorySize"] = size
    cache = cache_mount(service)
    if cache:
        component["compilationCache"] = {"pvcName": cache["name"]}
        if isinstance(cache.get("mountPoint"), str):
            component["compilationCache"]["mountPath"] = cache["mountPoint"]
    adapter = service.get("scalingAdapter")
    if isinstance(adapter, dict) and adapter.get("enabled") is True:
        component["scalingAdapter"] = {}
    experimental = to_experimental(service)
    if experimental:
        component["experimental"] = experimental
    template = to_template(service)
    if template:
        component["podTemplate"] = template
    return component


def to_alpha(component: Any) -> dict[str, Any]:
    """v1alpha1 service of a v1beta1 component without its name. What is not understood is left out."""
    service: dict[str, Any] = {}
    if not isinstance(component, dict):
        return service
    kind = component.get("type")
    if isinstance(kind, str) and kind in SUBTYPES:
        service |= {"componentType": "worker", "subComponentType": kind}
    elif isinstance(kind, str) and kind in TYPES:
        service["componentType"] = kind
    _copy(component, service, is_picker=kind == EPP)
    memory = _shared_memory(component.get("sharedMemorySize"))
    if memory:
        service["sharedMemory"] = memory
    cache = component.get("compilationCache")
    if isinstance(cache, dict) and filled(cache.get("pvcName"), str):
        mount = {"name": cache["pvcName"], "useAsCompilationCache": True}
        if isinstance(cache.get("mountPath"), str):
            mount["mountPoint"] = cache["mountPath"]
        service["volumeMounts"] = [mount]
    if isinstance(component.get("scalingAdapter"), dict):
        service["scalingAdapter"] = {"enabled": True}
    from_experimental(component.get("experimental"), service)
    from_template(component.get("podTemplate"), service)
    return service


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
    extra = service.get("extraPodSpec") if isinstance(service, dict) else None
    main = extra.get("mainContainer") if isinstance(extra, dict) else None
    return not isinstance(main, dict) or not any(here in service and there in main for here, there in TWICE.items())


def marked(component: Any) -> Any:
    """The component with its front end's name as a mark on that container, so that one goes with the other."""
    name = component.get("frontendSidecar") if isinstance(component, dict) else None
    containers = _containers(component) if isinstance(name, str) else []
    for place, each in enumerate(containers):
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
    template = component.get("podTemplate") if isinstance(component, dict) else None
    spec = template.get("spec") if isinstance(template, dict) else None
    containers = spec.get("containers") if isinstance(spec, dict) else None
    return containers if isinstance(containers, list) else []


def _with_container(component: dict[str, Any], place: int, container: dict[str, Any]) -> dict[str, Any]:
    template = component["podTemplate"]
    containers = list(template["spec"]["containers"])
    containers[place] = container
    return {**component, "podTemplate": {**template, "spec": {**template["spec"], "containers": containers}}}


def _kind(service: dict[str, Any]) -> str | None:
    kind, sub = service.get("componentType"), service.get("subComponentType")
    if not isinstance(kind, str):
        return None
    if kind == "worker" and isinstance(sub, str) and sub in SUBTYPES:
        return sub
    return kind if kind in TYPES else None


def _copy(source: dict[str, Any], target: dict[str, Any], *, is_picker: bool) -> None:
    """Fields that mean the same, as far as both versions allow their values."""
    for name in SAME:
        if name in source:
            target[name] = source[name]
    model = source.get("modelRef")
    if isinstance(model, dict) and filled(model.get("name"), str):
        target["modelRef"] = model
    nodes = source.get("multinode")
    if isinstance(nodes, dict):
        target["multinode"] = nodes if "nodeCount" in nodes else {**nodes, "nodeCount": DEFAULT_NODES}
    picker = source.get("eppConfig")
    if is_picker and isinstance(picker, dict) and ("configMapRef" in picker) != ("config" in picker):
        target["eppConfig"] = picker


def _memory_size(memory: Any) -> Any:
    if not isinstance(memory, dict):
        return None
    if memory.get("disabled") is True:
        return NO_MEMORY
    size = memory.get("size")
    return str(size) if _sign(size) == 1 else None


def _shared_memory(size: Any) -> dict[str, Any] | None:
    sign = _sign(size)
    if sign == 0:
        return {"disabled": True}
    # v1alpha1 compares it, and can compare texts only.
    return {"size": str(size)} if sign == 1 else None


def _sign(size: Any) -> int | None:
    try:
        amount = quantity.parse(size)
    except quantity.InvalidQuantity:
        return None
    return (amount > 0) - (amount < 0)


TO_BETA = Lens(to_beta, to_alpha)
TO_ALPHA = Lens(to_alpha, to_beta, split=split, group=by_service_field, tidy=is_tidy)
