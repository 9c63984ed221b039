"""The desired autoscaling: the annotation of v1beta1, or the `autoscaling` section of a service in v1alpha1. Pure."""

from typing import Any

from dynamo_shared.api.contracts import Autoscaling, ComponentAutoscaling, contract_errors
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.legacy_fields import NO_SERVICE, legacy_graph_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import AUTOSCALING
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.yaml_text import documents

CONTRACT = "dynamo-autoscaling"
_OF_ALPHA = ("minReplicas", "maxReplicas", "metrics", "behavior")


class InvalidAutoscalingError(ValueError):
    """The request is not valid; the message says where and why."""


def desired_autoscaling(graph: KubeObject, component: str) -> ComponentAutoscaling | None:
    """The desired autoscaler of a component, or None. InvalidAutoscalingError where the request is not valid.

    The annotation counts where both are there: it is the newer way.
    """
    annotations = graph["metadata"].get("annotations") or {}
    desired = _annotated(annotations.get(AUTOSCALING, ""), component)
    place = f"metadata.annotations[{AUTOSCALING!r}].{component}"
    if desired is None and (desired := _of_alpha(graph, component)) is not None:
        place = f"spec.services.{component}.autoscaling"
    if desired is None:
        return None
    if errors := contract_errors(CONTRACT, {component: desired}):
        raise InvalidAutoscalingError(
            "; ".join(f"{place}{each.path.removeprefix(component)}: {each.message}" for each in errors)
        )
    return Autoscaling.model_validate({component: desired}).components[component]


def _annotated(text: str, component: str) -> Any:
    place = f"metadata.annotations[{AUTOSCALING!r}]"
    try:
        read = documents(text, SETTINGS)
    except InvalidManifest as error:
        raise InvalidAutoscalingError(f"{place}: {error}") from error
    if len(read) > 1:
        raise InvalidAutoscalingError(f"{place}: has {len(read)} YAML documents, of which only one would be read")
    components: Any = read[0] if read else {}
    if not isinstance(components, dict):
        raise InvalidAutoscalingError(f"{place}: must be a map of components to their autoscalers")
    return components.get(component)


def _of_alpha(graph: KubeObject, component: str) -> KubeObject | None:
    section = legacy_graph_of(graph).services.get(component, NO_SERVICE).autoscaling
    if not section.get("enabled"):
        return None
    return {name: section[name] for name in _OF_ALPHA if section.get(name) is not None}
