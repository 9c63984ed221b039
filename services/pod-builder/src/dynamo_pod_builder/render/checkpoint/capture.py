"""The SnapshotJob that captures a component's engine for its graph, and the hash that restored pods must share.

Source: Dynamo 1.5, deploy/operator `internal/controller/dgd_checkpoints_reconciler.go`
(`buildCheckpointJobPodTemplate`, `buildAutomaticSnapshotJob`), `internal/checkpoint/compatibility.go` and `hash.go`.
The Snapshot operator adds what its agent needs to the pod. The hash differs from the reference's: that covers what its
operator renders, field by field of a Go struct, so a PodSnapshot that it took has another hash.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from dynamo_shared.api import snapshots
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.probes import PROBES
from dynamo_shared.api.registry import annotations, labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, SNAPSHOT_JOBS, controller_reference
from dynamo_shared.api.untrusted.reading import items, mapping, text
from dynamo_shared.api.v1beta1 import DynamoComponentDeployment, DynamoGraphDeployment
from dynamo_shared.api.v1beta1.experimental import CaptureJob, ComponentCheckpoint, Experimental

from dynamo_pod_builder.render.backends import backend_of
from dynamo_pod_builder.render.checkpoint.auto import alone
from dynamo_pod_builder.render.config import ObservedComponent, RenderConfig
from dynamo_pod_builder.render.context import PodContext, context_of
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.hashing import digest
from dynamo_pod_builder.render.metadata import new_object, pod_annotations
from dynamo_pod_builder.render.pod.env import merge_env
from dynamo_pod_builder.render.pod.merge import merge
from dynamo_pod_builder.render.pod.pod import pod_spec

#: Limit for scheduling, loading and capturing. Seconds.
DEADLINE = 3600
_AT = "experimental.checkpoint"
#: Variables that a restored engine gets from its new pod.
_REFRESHED = frozenset(
    {
        *("CONTAINER_NAME", "DYN_COMPONENT", "DYN_DISCOVERY_BACKEND", "DYN_EVENT_PLANE", "DYN_EVENT_PLANE_HOST"),
        *("DYN_GMS_USE_V1", "DYN_HEALTH_CHECK_ENABLED", "DYN_KUBE_DISCOVERY_MODE", "DYN_NAMESPACE"),
        *("DYN_NAMESPACE_WORKER_SUFFIX", "DYN_PARENT_DGD_K8S_NAME", "DYN_PARENT_DGD_K8S_NAMESPACE"),
        *("DYN_REQUEST_PLANE", "DYN_SYSTEM_HEALTH_PATH", "DYN_SYSTEM_HOST", "DYN_SYSTEM_LIVE_PATH"),
        *("DYN_SYSTEM_PORT", "DYN_SYSTEM_STARTING_HEALTH_STATUS", "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS"),
        *("DYN_TCP_RESPONSE_STREAM_HOST", "DYN_TCP_RESPONSE_STREAM_PORT", "DYN_TCP_RPC_HOST", "DYN_TCP_RPC_PORT"),
        *("DYN_VLLM_GMS_SHADOW_MODE", "ENGINE_ID", "ETCD_ENDPOINTS", "FAILOVER_LOCK_PATH", "MODEL_EXPRESS_URL"),
        *("NATS_SERVER", "POD_NAME", "POD_NAMESPACE", "POD_UID", "PROMETHEUS_ENDPOINT"),
    }
)
#: Fields about the life of a container, not about its process.
_NOT_OF_THE_PROCESS = frozenset(
    {
        *PROBES,
        *("env", "lifecycle", "ports", "terminationMessagePath", "terminationMessagePolicy", "resizePolicy"),
        *("stdin", "stdinOnce", "tty"),
    }
)
_OF_THE_POD = (
    *("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "securityContext", "runtimeClassName", "nodeName"),
    *("nodeSelector", "schedulerName", "resourceClaims"),
)


def capture_of(
    component: DynamoComponentDeployment,
    graph: DynamoGraphDeployment,
    generation: str,
    config: RenderConfig,
    around: ObservedComponent,
) -> KubeObject:
    """The SnapshotJob of a component of a graph, whose workers have the hash `generation`.

    Raises RenderError if it cannot be captured.
    """
    start = (component.spec.experimental or Experimental()).start or ComponentCheckpoint()
    name, target = component.spec.name or "", start.target_container_name or MAIN
    context = context_of(alone(component, MAIN, target), config, replace(around, restore=None))
    template = _overridden(_template(context, target), start.job)
    pod, backend = template["spec"], backend_of(context).name
    container = next(each for each in pod["containers"] if each["name"] == target)
    if not snapshots.can_be_restored([*(container.get("command") or ()), *(container.get("args") or ())]):
        how = "set its command to python3 -m dynamo.<engine>, without a shell"
        raise RenderError(name, _AT, f"container {target} starts no engine that can be restored", how)
    hash_ = digest({key: value for key, value in _in_common(pod, container, backend).items() if value})
    own = {labels.GRAPH_DEPLOYMENT_NAME: graph.metadata.name, labels.COMPONENT: name}
    own |= {labels.WORKER_HASH: generation} if generation else {}
    # Everything that counts pods of a component uses this label, for example autoscalers; this pod serves no requests.
    of_pod = template["metadata"]["labels"] | own
    template["metadata"]["labels"] = {key: value for key, value in of_pod.items() if key != labels.COMPONENT}
    policy = start.deletion_policy.value if start.deletion_policy else snapshots.DELETE
    uid = graph.metadata.uid or ""
    taken = {
        annotations.AUTO_CHECKPOINT: "true",
        annotations.CHECKPOINT_DELETION_POLICY: policy,
        annotations.CHECKPOINT_OWNER_UID: uid,
    }
    of_snapshot = {
        **taken,
        annotations.SNAPSHOT_COMPATIBILITY_VERSION: snapshots.VERSION,
        annotations.SNAPSHOT_COMPATIBILITY_HASH: hash_,
        annotations.SNAPSHOT_GMS_MODE: snapshots.NO_MEMORY_SERVICE,
    }
    owner = controller_reference(DYNAMO_GRAPH_DEPLOYMENTS, graph.metadata.name, uid)
    id_ = _id(context.namespace, graph.metadata.name, uid, name, generation, hash_)
    return new_object(
        SNAPSHOT_JOBS,
        f"checkpoint-{id_}",
        context.namespace,
        own,
        annotations=taken,
        # A retained one has no owner, because it outlives the graph.
        owner=owner if policy == snapshots.DELETE else None,
        spec={
            "podTemplate": template,
            "activeDeadlineSeconds": DEADLINE,
            "podSnapshotTemplate": {
                "metadata": {"labels": dict(own), "annotations": of_snapshot},
                "targetContainers": [target],
            },
        },
    )


def hash_of(job: KubeObject) -> str:
    """The hash of what a pod must share with the captured one; "" if the CRD of the SnapshotJob dropped it."""
    template = mapping(mapping(job.get("spec")).get("podSnapshotTemplate"))
    given = mapping(mapping(template.get("metadata")).get("annotations"))
    return text(given.get(annotations.SNAPSHOT_COMPATIBILITY_HASH))


def _template(context: PodContext, target: str) -> KubeObject:
    pod = {**pod_spec(context), "restartPolicy": "Never"}
    pod["containers"] = [each for each in pod["containers"] if each["name"] == target]
    if not pod["containers"]:
        how = "name one of podTemplate.spec.containers"
        raise RenderError(context.component, f"{_AT}.targetContainerName", f"names {target}, which does not exist", how)
    metadata = {"labels": dict(context.template_labels), "annotations": pod_annotations(context.template_annotations)}
    return {"metadata": metadata, "spec": pod}


#: Lists of a pod in which `checkpoint.job` changes entries by name.
_NAMED = ("containers", "initContainers", "volumes")


def _overridden(template: KubeObject, job: CaptureJob | None) -> KubeObject:
    """The template, overridden by the user's settings for the captured pod."""
    given = (job.pod_template if job is not None else None) or {}
    metadata, spec = given.get("metadata") or {}, given.get("spec") or {}
    pod = merge(template["spec"], {key: value for key, value in spec.items() if key not in _NAMED})
    for name in _NAMED:
        if entries := spec.get(name):
            over = {each["name"]: each for each in entries}
            laid = _container if name == "containers" else _replaced
            present = [laid(each, over.pop(each["name"], None)) for each in pod.get(name) or ()]
            pod[name] = [*present, *over.values()]
    laid_over = {key: {**template["metadata"][key], **(metadata.get(key) or {})} for key in ("labels", "annotations")}
    return {"metadata": laid_over, "spec": pod}


def _replaced(present: KubeObject, given: KubeObject | None) -> KubeObject:
    return present if given is None else given


def _container(present: KubeObject, given: KubeObject | None) -> KubeObject:
    if given is None:
        return present
    merged = merge({key: value for key, value in present.items() if key not in PROBES or not given.get(key)}, given)
    return {**merged, "env": merge_env(present.get("env") or (), given.get("env") or ())}


def _in_common(pod: KubeObject, container: KubeObject, backend: str) -> KubeObject:
    """What a pod shares with all pods that are restored from its PodSnapshot."""
    first = pod.get("initContainers") or []
    parts = (container, *first)
    used = {
        mapping(each).get("name")
        for part in parts
        for key in ("volumeMounts", "volumeDevices")
        for each in items(part.get(key))
    }
    return {
        "version": snapshots.VERSION,
        "backendFramework": backend,
        "gmsMode": snapshots.NO_MEMORY_SERVICE,
        "targetContainer": _process({key: value for key, value in container.items() if key != "name"}),
        "initContainers": [_process(each) for each in first],
        "volumes": [each for each in pod.get("volumes") or () if each["name"] in used],
        "nodeAffinity": mapping(pod.get("affinity")).get("nodeAffinity"),
        **{name: pod.get(name) for name in _OF_THE_POD},
    }


def _process(container: Mapping[str, Any]) -> KubeObject:
    """A container, reduced to what its process depends on."""
    kept = {key: value for key, value in container.items() if key not in _NOT_OF_THE_PROCESS}
    return {**kept, "env": [each for each in container.get("env") or () if each["name"] not in _REFRESHED]}


def _id(*parts: str) -> str:
    """The id of a capture: of the graph, component and generation, and of its content."""
    names = ("namespace", "dgdName", "dgdUID", "componentName", "workerHash", "compatibilityHash")
    given: Iterable[tuple[str, str]] = [*zip(names, parts, strict=True), ("compatibilityVersion", snapshots.VERSION)]
    text = json.dumps({name: value for name, value in given if value}, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
