"""Shares the pull secrets of one component in an override with all pods of the graph: all pull from that registry.
Pure.
"""

from collections.abc import Iterator

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.role_templates import FIELD, all_templates, has_own_templates, with_templates
from dynamo_shared.api.untrusted.reading import items, mapping, text

_FIELD = "imagePullSecrets"


def share_pull_secrets(graph: KubeObject, override: KubeObject | None) -> KubeObject:
    """The v1beta1 graph. Each component gets every secret that the override names anywhere, after its own secrets."""
    shared = list(dict.fromkeys(_names(override or {})))
    if not shared:
        return graph
    components = [_with(component, shared) for component in graph["spec"].get("components") or []]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def _with(component: KubeObject, shared: list[str]) -> KubeObject:
    # If roles have templates, only a template of the component itself is used for a pod.
    whole = component if has_own_templates(component) else {**component, FIELD: component.get(FIELD) or {}}
    return with_templates(whole, lambda template: _with_secrets(template, shared))


def _with_secrets(template: KubeObject, shared: list[str]) -> KubeObject:
    pod = template.get("spec") or {}
    own = list(pod.get(_FIELD) or ())
    have = {each.get("name") for each in own if isinstance(each, dict)}
    secrets = [*own, *({"name": name} for name in shared if name not in have)]
    return {**template, "spec": {**pod, _FIELD: secrets}}


def _names(override: KubeObject) -> Iterator[str]:
    """Names of pull secrets in the pods of an override, of either version. Accepts invalid values."""
    spec = mapping(override.get("spec"))
    parts = [*map(mapping, items(spec.get("components"))), *map(mapping, mapping(spec.get("services")).values())]
    pods = [mapping(template.get("spec")) for part in parts for template in all_templates(part)]
    pods += [mapping(part.get("extraPodSpec")) for part in parts]
    for pod in pods:
        yield from filter(None, (text(mapping(secret).get("name")) for secret in items(pod.get(_FIELD))))
