"""The desired autoscaling: the annotation of v1beta1, or the `autoscaling` section of a service in v1alpha1. Pure."""

from collections.abc import Set
from typing import Any

from dynamo_shared.api.contracts import Autoscaling, ComponentAutoscaling, contract_checks
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.legacy_fields import NO_SERVICE, legacy_graph_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import AUTOSCALING
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.yaml_text import documents

_ANNOTATION = f"metadata.annotations[{AUTOSCALING!r}]"
_OF_ALPHA = ("minReplicas", "maxReplicas", "metrics", "behavior")
#: Kinds of authentications of a KEDA trigger whose secrets are in the graph's namespace. "" is KEDA's default.
_OF_NAMESPACE = ("", "TriggerAuthentication")


class InvalidAutoscalingError(ValueError):
    """The request is invalid; the message says where and why."""


def desired_autoscaling(
    graph: KubeObject, component: str, cluster_authentications: Set[str] = frozenset()
) -> ComponentAutoscaling | None:
    """The desired autoscaler of a component, or None. InvalidAutoscalingError if the request is invalid.

    The annotation has priority if both exist, because it is newer. `cluster_authentications` are the
    ClusterTriggerAuthentications that graphs may name.
    """
    annotations = graph["metadata"].get("annotations") or {}
    desired = _annotated(annotations.get(AUTOSCALING, ""), component)
    place = f"{_ANNOTATION}.{component}"
    if desired is None and (desired := _of_alpha(graph, component)) is not None:
        place = f"spec.services.{component}.autoscaling"
    if desired is None:
        return None
    if errors := contract_checks.errors(Autoscaling, {component: desired}):
        raise InvalidAutoscalingError(
            "; ".join(f"{place}{each.path.removeprefix(component)}: {each.message}" for each in errors)
        )
    settings = Autoscaling.model_validate({component: desired}).components[component]
    _check_authentications(settings, f"{place}.triggers", cluster_authentications)
    return settings


def _check_authentications(settings: ComponentAutoscaling, place: str, allowed: Set[str]) -> None:
    """Refuse other authentications: KEDA sends their secrets to the server of the trigger, and the author of a graph
    names both.
    """
    for index, trigger in enumerate(settings.triggers):
        reference = trigger.get("authenticationRef")
        # The API server refuses a value that is not an object.
        if not isinstance(reference, dict) or reference.get("kind", "") in _OF_NAMESPACE:
            continue
        name = reference.get("name")
        if reference["kind"] != "ClusterTriggerAuthentication":
            known = "set TriggerAuthentication, or remove kind"
            raise InvalidAutoscalingError(f"{place}[{index}].authenticationRef.kind: {known}")
        if not isinstance(name, str) or name not in allowed:
            shown = repr(str(name)[:63])
            raise InvalidAutoscalingError(
                f"{place}[{index}].authenticationRef: ClusterTriggerAuthentication {shown} serves the whole cluster; use a "
                f"TriggerAuthentication of this namespace, or ask the platform's administrators to add {shown} to "
                "platform.scaler.clusterTriggerAuthentications"
            )


def _annotated(text: str, component: str) -> Any:
    place = _ANNOTATION
    try:
        read = documents(text, SETTINGS)
    except InvalidManifest as error:
        raise InvalidAutoscalingError(f"{place}: {error}") from error
    if len(read) > 1:
        raise InvalidAutoscalingError(f"{place}: has {len(read)} YAML documents, but only one is allowed")
    components: Any = read[0] if read else {}
    if not isinstance(components, dict):
        raise InvalidAutoscalingError(f"{place}: must be a map of components to their autoscalers")
    return components.get(component)


def _of_alpha(graph: KubeObject, component: str) -> KubeObject | None:
    section = legacy_graph_of(graph).services.get(component, NO_SERVICE).autoscaling
    if not section.get("enabled"):
        return None
    return {name: section[name] for name in _OF_ALPHA if section.get(name) is not None}
