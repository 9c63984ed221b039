"""The LeaderWorkerSet of a component with multinode replicas."""

from collections.abc import Mapping

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import LEADER_WORKER_SETS

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.metadata import new_object, object_annotations, object_labels, pod_labels
from dynamo_pod_builder.render.pod import placement
from dynamo_pod_builder.render.pod.placement import PodPlacement
from dynamo_pod_builder.render.pod.pod import pod_spec


def leader_worker_set(context: PodContext, own_labels: Mapping[str, str], owner: KubeObject) -> KubeObject:
    """LeaderWorkerSet of a component: each replica is a leader with its workers, and they are replaced together."""
    group, nodes = placement.leader_worker_set(context.nodes), context.nodes
    spec: KubeObject = {
        "replicas": context.replicas,
        "startupPolicy": "LeaderCreated",
        "leaderWorkerTemplate": {
            "size": nodes,
            "restartPolicy": "RecreateGroupOnPodRestart",
            "leaderTemplate": _template(context, own_labels, placement.leader(group, nodes)),
            "workerTemplate": _template(context, own_labels, placement.worker(group, nodes)),
        },
    }
    name = context.observed.leader_worker_set or names.leader_worker_set(context.name)
    label_set = object_labels(context, own_labels)
    return new_object(LEADER_WORKER_SETS, name, context.namespace, label_set, owner=owner, spec=spec)


def addressed(desired: KubeObject, stored: KubeObject) -> KubeObject:
    """A LeaderWorkerSet whose pods find each other; `stored` is it after admission.

    Its controller creates a headless Service for the names of the pods, with the name of the LeaderWorkerSet, unless a
    Service of that name exists. The Service of the component has that name, so workers would wait for their leader
    without end. Therefore each replica gets its own Service. If the controller's webhook fills in no policy, it would
    not create such Services. A LeaderWorkerSet of the reference has a separate name, and stays unchanged.
    """
    owner = objects.controller_of(desired) or {"name": ""}
    of_operator = objects.name(desired) == names.leader_worker_set_of_operator(owner["name"])
    if "networkConfig" not in stored["spec"] or of_operator:
        return desired
    return {**desired, "spec": {**desired["spec"], "networkConfig": {"subdomainPolicy": "UniquePerReplica"}}}


def _template(context: PodContext, own_labels: Mapping[str, str], place: PodPlacement) -> KubeObject:
    placed = context.placed(place)
    # A component deployment of a graph has the labels of its leader's template; a role with its own template does not.
    of_others = context.template_labels.keys() - placed.template_labels.keys()
    own = {name: value for name, value in own_labels.items() if name not in of_others}
    label_set = {**pod_labels(placed, own), labels.ROLE: place.role.value}
    # A LeaderWorkerSet selects its pods by its own labels.
    del label_set[labels.SELECTOR]
    metadata: KubeObject = {"labels": label_set}
    if annotations := object_annotations(placed):
        metadata["annotations"] = annotations
    return {"metadata": metadata, "spec": pod_spec(placed)}
