"""The Deployment of a component on a single node."""

import re
from collections.abc import Mapping

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import DEPLOYMENT_MAX_SURGE, DEPLOYMENT_MAX_UNAVAILABLE, DEPLOYMENT_STRATEGY
from dynamo_shared.api.resources import DEPLOYMENTS

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.metadata import (
    new_object,
    object_annotations,
    object_labels,
    pod_labels,
    restore_annotations,
)
from dynamo_pod_builder.render.pod.pod import pod_spec

RECREATE = "Recreate"
_DEFAULT_MARGIN = "25%"
#: Kubernetes accepts at most about two thousand million.
_MARGIN = re.compile(r"[0-9]{1,9}%?")


def deployment(context: PodContext, own_labels: Mapping[str, str], owner: KubeObject) -> KubeObject:
    """Deployment with the component's name. If the component has no replicas, neither has it: an autoscaler owns them."""
    own_annotations = object_annotations(context)
    template: KubeObject = {"metadata": {"labels": pod_labels(context, own_labels)}, "spec": pod_spec(context)}
    if of_pods := {**own_annotations, **restore_annotations(context)}:
        template["metadata"]["annotations"] = of_pods
    spec: KubeObject = {
        "selector": {"matchLabels": {labels.SELECTOR: context.name}},
        "strategy": strategy(context.component, context.template_annotations),
        "template": template,
    }
    if context.spec.replicas is not None:
        spec["replicas"] = context.spec.replicas
    label_set = object_labels(context, own_labels)
    return new_object(
        DEPLOYMENTS, context.name, context.namespace, label_set, annotations=own_annotations, owner=owner, spec=spec
    )


def strategy(component: str, annotations: Mapping[str, str]) -> KubeObject:
    """Rollout strategy from annotations of the pod template: RollingUpdate with 25%/25% by default."""
    if annotations.get(DEPLOYMENT_STRATEGY) == RECREATE:
        return {"type": RECREATE}
    surge = margin(component, DEPLOYMENT_MAX_SURGE, annotations)
    unavailable = margin(component, DEPLOYMENT_MAX_UNAVAILABLE, annotations)
    if surge in (0, "0%") and unavailable in (0, "0%"):
        surge = 1  # with both zero, no pod could be replaced
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def margin(component: str, annotation: str, annotations: Mapping[str, str]) -> int | str:
    """Pods or percentage of a rollout annotation, which may be empty. Raises RenderError if it is neither."""
    text = annotations.get(annotation, "").strip() or _DEFAULT_MARGIN
    if _MARGIN.fullmatch(text) is None:
        raise RenderError(
            component,
            f"podTemplate.metadata.annotations[{annotation}]",
            f"{shown(text)} is neither a number of pods nor a percentage",
            "set a value such as 1 or 25%",
        )
    return text if text.endswith("%") else int(text)
