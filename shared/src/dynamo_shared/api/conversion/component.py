"""Converts a component: a v1alpha1 service or a v1beta1 component, with the fields that component deployments also have."""

from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.conversion.experimental import from_experimental, to_experimental
from dynamo_shared.api.conversion.pod import cache_mount, filled, from_template, to_template
from dynamo_shared.api.v1beta1.enums import ComponentType

#: Fields that are the same in both versions.
SAME = (
    *("runtimeVersionOverride", "replicas", "minAvailable", "roles"),
    *("globalDynamoNamespace", "topologyConstraint", "providerOverride"),
)
TYPES = frozenset(map(str, ComponentType))
#: Types that v1alpha1 expresses as sub-type of a worker.
SUBTYPES = frozenset({"prefill", "decode"})
EPP = "epp"
DEFAULT_NODES = 2
NO_MEMORY = "0"


def to_beta(service: Any) -> dict[str, Any]:
    """The v1beta1 component (without its name) of a v1alpha1 service. Invalid fields are omitted."""
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
    """The v1alpha1 service of a v1beta1 component (without its name). Invalid fields are omitted."""
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


def _kind(service: dict[str, Any]) -> str | None:
    kind, sub = service.get("componentType"), service.get("subComponentType")
    if not isinstance(kind, str):
        return None
    if kind == "worker" and isinstance(sub, str) and sub in SUBTYPES:
        return sub
    return kind if kind in TYPES else None


def _copy(source: dict[str, Any], target: dict[str, Any], *, is_picker: bool) -> None:
    """Copy the fields with the same meaning in both versions, if both versions allow their values."""
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
    # A string, because v1alpha1 compares the size in CEL, which can compare only strings.
    return {"size": str(size)} if sign == 1 else None


def _sign(size: Any) -> int | None:
    amount = quantity.amount_of(size)
    return None if amount is None else (amount > 0) - (amount < 0)
