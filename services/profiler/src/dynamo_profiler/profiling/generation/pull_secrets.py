"""Pull secrets that a request's override names for one component: all pods of the graph run images of that registry. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.objects import KubeObject

_FIELD = "imagePullSecrets"


def share_pull_secrets(graph: KubeObject, override: KubeObject | None) -> KubeObject:
    """The v1beta1 graph, where each component has the secrets that the override names anywhere; its own come first."""
    shared = list(dict.fromkeys(_names(override or {})))
    if not shared:
        return graph
    components = [_with(component, shared) for component in graph["spec"].get("components") or []]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def _with(component: KubeObject, shared: list[str]) -> KubeObject:
    template = component.get("podTemplate") or {}
    pod = template.get("spec") or {}
    own = list(pod.get(_FIELD) or ())
    have = {each.get("name") for each in own if isinstance(each, dict)}
    secrets = [*own, *({"name": name} for name in shared if name not in have)]
    return {**component, "podTemplate": {**template, "spec": {**pod, _FIELD: secrets}}}


def _names(override: KubeObject) -> Iterator[str]:
    """Names of secrets in the pods of an override, of either version. Reads any junk."""
    spec = _object(override.get("spec"))
    components, services = spec.get("components"), _object(spec.get("services"))
    pods = [
        _object(_object(_object(each).get("podTemplate")).get("spec"))
        for each in (components if isinstance(components, list) else ())
    ]
    pods += [_object(_object(each).get("extraPodSpec")) for each in services.values()]
    for pod in pods:
        secrets = pod.get(_FIELD)
        for secret in secrets if isinstance(secrets, list) else ():
            name = _object(secret).get("name")
            if isinstance(name, str) and name:
                yield name


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
