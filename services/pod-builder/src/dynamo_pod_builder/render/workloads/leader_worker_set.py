"""The LeaderWorkerSet of a component whose replicas span several nodes."""

from __future__ import annotations

from collections.abc import Mapping

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import LEADER_WORKER_SETS

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.metadata import object_annotations, object_labels, object_metadata, pod_labels
from dynamo_pod_builder.render.pod import placement
from dynamo_pod_builder.render.pod.placement import PodPlacement
from dynamo_pod_builder.render.pod.pod import pod_spec


def leader_worker_set(context: PodContext, own_labels: Mapping[str, str], owner: KubeObject) -> KubeObject:
    """LeaderWorkerSet of the component's name: each replica is a leader and its workers, replaced together."""
    group, nodes = placement.leader_worker_set(context.nodes), context.nodes
    annotations = object_annotations(context)
    spec: KubeObject = {
        "replicas": 1 if context.spec.replicas is None else context.spec.replicas,
        "startupPolicy": "LeaderCreated",
        "leaderWorkerTemplate": {
            "size": nodes,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": _template(context, own_labels, annotations, placement.leader(group, nodes)),
            "workerTemplate": _template(context, own_labels, annotations, placement.worker(group, nodes)),
        },
    }
    return {
        **LEADER_WORKER_SETS.type_meta,
        "metadata": object_metadata(
            context.name, context.namespace, object_labels(context, own_labels), annotations, owner
        ),
        "spec": spec,
    }


def _template(
    context: PodContext, own_labels: Mapping[str, str], annotations: dict[str, str], place: PodPlacement
) -> KubeObject:
    label_set = {**pod_labels(context, own_labels), labels.ROLE: place.role.value}
    # A LeaderWorkerSet selects its pods by labels of its own.
    del label_set[labels.SELECTOR]
    metadata: KubeObject = {"labels": label_set}
    if annotations:
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": pod_spec(context.placed(place))}
