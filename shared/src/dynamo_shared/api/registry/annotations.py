"""Annotations that the platform sets or reads."""

from functools import partial

from dynamo_shared.api.registry.catalog import Catalog, Stability

CATALOG = Catalog(
    "Annotations",
    "Annotations switch behaviour on and off, and store data that no selector needs.",
    "Annotation",
    "Values",
    set_by="user",
    read_by="pod-builder",
)
_add = CATALOG.add
_evolving = partial(CATALOG.add, stability=Stability.EVOLVING)
# By the objects with the annotation, if several annotations share them.
_of_graphs, _of_templates = partial(_add, where="DGDs"), partial(_add, where="pod templates")
_of_both = partial(_add, where="DGDs, pod templates")
_of_snapshot_pods = partial(_evolving, set_by="pod-builder", read_by="snapshot agent", where="pods")

ENABLE_METRICS = _of_both(
    "nvidia.com/enable-metrics",
    "Excludes a graph or a component from the PodMonitors.",
    values="`false` disables metrics; any other value leaves them on",
)
TOPOLOGY_LABEL_KEY = _evolving(
    "nvidia.com/topology-label-key",
    "Label that a pod gets from its node, so that a worker knows its own topology domain.",
    set_by="pod-builder",
    values="key of a label of nodes",
    where="pods of workers whose graph has a kvTransferPolicy",
)
LAST_APPLIED_HASH = _add(
    "nvidia.com/last-applied-hash",
    "Hash of the object as the platform last wrote it, so that unchanged objects are not written again.",
    set_by="pod-builder, scaler",
    read_by="pod-builder, scaler",
    values="sha256 (hex) of the desired object",
    where="all children",
)
LAST_APPLIED_GENERATION = _add(
    "nvidia.com/last-applied-generation",
    "Generation of the object after the Go operator's last write; read when the platform takes over its objects.",
    set_by="Go operator",
    values="integer",
    where="all children",
    stability=Stability.COMPATIBILITY,
)
OPERATOR_ORIGIN_VERSION = _of_both(
    "nvidia.com/dynamo-operator-origin-version",
    "Version of the control plane that first reconciled a graph; newer defaults do not change existing graphs.",
    set_by="admission",
    values="semantic version",
)
DISCOVERY_BACKEND = _of_both(
    "nvidia.com/dynamo-discovery-backend",
    "Overrides the discovery backend in which the workers of a graph or a component register.",
    values="`kubernetes`, `etcd`",
)
KUBE_DISCOVERY_MODE = _of_both(
    "nvidia.com/dynamo-kube-discovery-mode",
    "Whether discovery registers a pod, or each of its containers. Failover within a pod needs `container`.",
    read_by="pod-builder, admission",
    values="`pod` (default), `container`",
)
VLLM_DISTRIBUTED_EXECUTOR_BACKEND = _of_both(
    "nvidia.com/vllm-distributed-executor-backend",
    "Backend of vLLM for several nodes; if absent, the origin version selects it.",
    read_by="pod-builder, admission",
    values="`mp`, `ray`, in any case",
)
DEPLOYMENT_STRATEGY = _of_templates(
    "nvidia.com/deployment-strategy",
    "Update strategy of a component's Deployment.",
    values="`RollingUpdate` (default), `Recreate`",
)
DEPLOYMENT_MAX_SURGE = _of_templates(
    "nvidia.com/deployment-rolling-update-max-surge",
    "Pods above the desired number during an update of a component.",
    values="number or percentage, `25%` by default",
)
DEPLOYMENT_MAX_UNAVAILABLE = _of_templates(
    "nvidia.com/deployment-rolling-update-max-unavailable",
    "Pods that may be unavailable during an update of a component.",
    values="number or percentage, `25%` by default",
)
DISABLE_IMAGE_PULL_SECRET_DISCOVERY = _of_templates(
    "nvidia.com/disable-image-pull-secret-discovery",
    "Leaves imagePullSecrets as written, instead of adding the namespace's secrets for the registries of the images.",
    values="`true` disables",
)
AUTOSCALING = _of_graphs(
    "nvidia.com/dynamo-autoscaling",
    "Autoscalers that the platform creates for the adapters of a graph's components.",
    read_by="scaler, admission",
    values="YAML or JSON: the contract dynamo-autoscaling",
)
ENABLE_GROVE = _of_graphs(
    "nvidia.com/enable-grove",
    "Turns Grove off for a graph, if Grove is installed.",
    values="`false` disables, in upper or lower case",
)
WORKLOAD_PROVIDER = _of_graphs(
    "nvidia.com/workload-provider",
    "Workload provider of a graph. It takes precedence over other settings, even if it is not installed, "
    "and cannot be changed. Dynamo 1.5 writes it.",
    set_by="user, Dynamo 1.5",
    read_by="pod-builder, admission",
    values="`grove`, `component`; if absent, `nvidia.com/enable-grove` decides, and whether Grove is installed",
)
GROVE_UPDATE_STRATEGY = _of_graphs(
    "nvidia.com/grove-update-strategy",
    "How Grove replaces the pods of a changed graph: it deletes them itself, or waits until each is deleted.",
    read_by="pod-builder, admission",
    values="`RollingRecreate` (Grove's default), `OnDelete`",
)
GROVE_UPDATE_STRATEGIES = ("RollingRecreate", "OnDelete")
KAI_SCHEDULER_QUEUE = _of_graphs(
    "nvidia.com/kai-scheduler-queue",
    "Queue of the KAI scheduler for the pods of a graph.",
    values="queue name, `dynamo` by default",
)
VOLCANO_QUEUE = _of_graphs(
    "nvidia.com/volcano-queue",
    "Queue of the Volcano scheduler for the pods of a graph; not allowed together with a queue of KAI.",
    values="queue name",
)
VOLCANO_POD_QUEUE = _add(
    "scheduling.volcano.sh/queue-name",
    "Queue in which Volcano keeps a pod until it can be scheduled.",
    set_by="pod-builder",
    read_by="Volcano",
    values="queue name",
    where="DCDs, pods",
)
GROVE_VOLCANO_QUEUE = _add(
    "scheduling.grove.io/volcano-queue",
    "Queue of Volcano in which Grove creates the PodGroups of a graph; if absent, `default`.",
    set_by="pod-builder",
    read_by="Grove",
    values="queue name",
    where="PodCliqueSets",
)
RESTART_AT = _of_templates(
    "nvidia.com/restartAt",
    "Restarts the pods of a component when the value changes.",
    set_by="pod-builder, from spec.restart.id",
    read_by="Kubernetes (a changed pod template starts a roll-out)",
    values="the id of the restart",
)
CURRENT_WORKER_HASH = _of_graphs(
    "nvidia.com/current-worker-hash",
    "Generation of workers that a graph ran under the Go operator, with the operator's first hash "
    "algorithm. In a graph with a planner component: the generation that serves.",
    set_by="Go operator, pod-builder",
    read_by="pod-builder (adoption), Dynamo's planner",
    values="8 hex digits, or `legacy`",
)
CURRENT_WORKER_HASH_V2 = _of_graphs(
    "nvidia.com/current-worker-hash-v2",
    "The same with the hash over the generated worker components; it takes precedence over the first hash.",
    set_by="Go operator, pod-builder",
    read_by="pod-builder (adoption), Dynamo's planner",
    values="8 hex digits",
)
BASE_MODEL = _add(
    "nvidia.com/dynamo-base-model",
    "Full name of the base model that a component serves.",
    set_by="pod-builder",
    read_by="model-discovery, kubectl users",
    values="model name",
    where="Deployments, model Services",
)
PRESERVED_FIELDS = _add(
    "nvidia.com/preserved-fields",
    "Data that the object's API version cannot represent, kept for conversion back; fields of the object take precedence.",
    set_by="admission (conversion)",
    read_by="admission (conversion), all programs that convert in process",
    values="JSON, versioned; compressed with `zlib:` and base64 if it would be too long",
    where="DGDs, DCDs, DGDSAs, DGDRs",
)


def _operators(name: str, what: str, where: str, read_by: str) -> str:
    return _add(
        f"nvidia.com/{name}",
        f"Data of a {what} that the Go operator kept for the other API version; read and removed in the "
        "conversion to that version.",
        set_by="Go operator",
        read_by=f"Go operator, admission (conversion), {read_by}",
        values="JSON, versioned",
        where=where,
        stability=Stability.COMPATIBILITY,
    )


OPERATOR_GRAPH_SPEC = _operators("dgd-spec", "graph", "DGDs", "pod-builder")
OPERATOR_COMPONENT_SPEC = _operators("dcd-spec", "component deployment", "DCDs", "pod-builder")
OPERATOR_REQUEST_SPEC = _operators("dgdr-spec", "request", "DGDRs", "profiler")


# Further fields that the conversion of the Go operator 1.2 keeps for a request. They apply if the annotations above do
# not set the field. The platform leaves the Go operator's other annotations unchanged, and does not read them.
def _kept_by_go(name: str, what: str) -> str:
    return _add(
        f"nvidia.com/{name}",
        f"{what}: one API version cannot represent this, and the Go operator kept it for conversion back.",
        set_by="Go operator",
        read_by="Go operator, planner",
        values="JSON",
        where="DGDRs",
        stability=Stability.COMPATIBILITY,
    )


DGDR_CONFIG_MAP_REF = _kept_by_go("dgdr-config-map-ref", "spec.profilingConfig.configMapRef")
DGDR_OUTPUT_PVC = _kept_by_go("dgdr-output-pvc", "spec.profilingConfig.outputPVC")
DGDR_PROFILING_CONFIG = _kept_by_go("dgdr-profiling-config", "Keys of spec.profilingConfig.config")
DGDR_ENABLE_GPU_DISCOVERY = _kept_by_go("dgdr-enable-gpu-discovery", "spec.enableGpuDiscovery")
DGDR_DEPLOYMENT_OVERRIDES = _kept_by_go("dgdr-deployment-overrides", "spec.deploymentOverrides")
SNAPSHOT_ARTIFACT_VERSION = _evolving(
    "nvidia.com/snapshot-artifact-version",
    "Version of a checkpoint's files; with a new version the platform creates the checkpoint again.",
    set_by="user, pod-builder",
    read_by="pod-builder, snapshot agent",
    values="`1` by default",
    where="DynamoCheckpoints, Jobs, pods",
)
SNAPSHOT_TARGET_CONTAINERS = _of_snapshot_pods(
    "nvidia.com/snapshot-target-containers",
    "Containers of a pod that the snapshot agent checkpoints or restores.",
    values="comma-separated container names",
)
SNAPSHOT_STORAGE_TYPE = _of_snapshot_pods(
    "nvidia.com/snapshot-storage-type", "Type of the storage with the files of a pod's checkpoint.", values="`pvc`"
)
SNAPSHOT_STORAGE_BASE_PATH = _of_snapshot_pods(
    "nvidia.com/snapshot-storage-base-path",
    "Directory of that storage, with a subdirectory for each checkpoint.",
    values="absolute path",
)
SNAPSHOT_STATUS = _evolving(
    "nvidia.com/snapshot-checkpoint-status",
    "Status of the checkpoint, reported by the snapshot agent.",
    set_by="snapshot agent",
    values="`completed`, `failed`",
    where="checkpoint Jobs",
)


def _of_snapshots(name: str, summary: str, values: str, where: str = "SnapshotJobs, PodSnapshots") -> str:
    return _evolving(f"nvidia.com/dynamo-{name}", summary, set_by="pod-builder", values=values, where=where)


def _of_candidates(name: str, summary: str, values: str) -> str:
    return _evolving(
        f"nvidia.com/dynamo-{name}",
        summary,
        set_by="pod-builder",
        read_by="admission",
        values=values,
        where="pod templates of workers; pods that start from a PodSnapshot lose it",
    )


AUTO_CHECKPOINT = _of_snapshots("auto-checkpoint", "The platform requested this PodSnapshot for a graph.", "`true`")
CHECKPOINT_DELETION_POLICY = _of_snapshots(
    "checkpoint-deletion-policy", "Whether it is deleted with its graph.", "`Delete`, `Retain`"
)
CHECKPOINT_OWNER_UID = _of_snapshots(
    "checkpoint-owner-uid", "UID of the graph that it was taken for.", "UID of the DGD"
)
SNAPSHOT_COMPATIBILITY_VERSION = _of_snapshots(
    "snapshot-compatibility-version", "Version of the inputs of its compatibility hash.", "`v2`", "PodSnapshots"
)
SNAPSHOT_COMPATIBILITY_HASH = _of_snapshots(
    "snapshot-compatibility-hash",
    "Hash of what a pod must have in common with the captured pod: image, command, variables, volumes, GPUs, placement.",
    "sha256 (hex)",
    "PodSnapshots",
)
SNAPSHOT_GMS_MODE = _of_snapshots(
    "snapshot-gms-mode", "GPU memory service of the captured engine.", "`disabled`", "PodSnapshots"
)
RESTORE_CANDIDATE = _of_candidates(
    "checkpoint-restore-candidate", "Requests that a pod starts from a PodSnapshot, if possible.", "`true`"
)
RESTORE_SOURCE = _of_candidates(
    "checkpoint-name", "The SnapshotJob or PodSnapshot that a pod starts from.", "name of an object in its namespace"
)
RESTORE_SOURCE_KIND = _of_candidates("restore-source-kind", "Which of the two that is.", "`SnapshotJob`, `PodSnapshot`")
RESTORE_JOB_UID = _of_candidates("restore-snapshot-job-uid", "That very SnapshotJob.", "UID")
RESTORE_SNAPSHOT_UID = _of_candidates("restore-snapshot-uid", "That very PodSnapshot.", "UID")
RESTORE_SNAPSHOT_CONTENT = _of_candidates(
    "restore-snapshot-content", "The PodSnapshotContent of the PodSnapshot.", "name of a PodSnapshotContent"
)
RESTORE_SNAPSHOT_GMS_MODE = _of_candidates(
    "restore-snapshot-gms-mode", "GPU memory service of the engine in the PodSnapshot.", "`disabled`"
)
RESTORE_SNAPSHOT_VERSION = _of_candidates(
    "restore-snapshot-version", "Version of the inputs of the PodSnapshot's compatibility hash.", "`v2`"
)
RESTORE_COMPATIBILITY_HASH = _of_candidates(
    "restore-snapshot-compatibility-hash",
    "Hash of what a pod must have in common with the captured pod.",
    "sha256 (hex)",
)
RESTORE_TARGETS = _of_candidates(
    "restore-target-containers", "Containers that are restored.", "comma-separated container names"
)
RESTORE_STARTUP_POLICY = _of_candidates(
    "checkpoint-startup-policy", "Whether a pod may start without it.", "`Immediate`, `WaitForCheckpoint`"
)
RESTORE_FROM = _evolving(
    "nvidia.com/restore-from",
    "The PodSnapshot that Snapshot's agent restores into a pod.",
    set_by="admission",
    read_by="Snapshot's agent",
    values="name of a PodSnapshot in the pod's namespace",
    where="pods",
)
RESTORE_CONTAINER_MAP = _evolving(
    "nvidia.com/restore-container-map",
    "Containers into which it is restored, if their names differ from the captured ones.",
    set_by="admission",
    read_by="Snapshot's agent",
    values="comma-separated `captured=restored`",
    where="pods",
)
ROTATE_AUTHORITY = _add(
    "nvidia.com/rotate-authority",
    "Requests a new CA for the webhooks' certificates now; the platform removes the annotation when the CA is created.",
    read_by="admission",
    values="anything",
    where="the Secret of `server.webhook.secretName`",
)
REQUEST_UID = _evolving(
    "dgdr.nvidia.com/uid",
    "UID of the request that an object was created for; another request with the same name has a different UID.",
    set_by="profiler",
    read_by="profiler",
    values="UID of the DynamoGraphDeploymentRequest",
    where="DGDs, ConfigMaps, Jobs",
)
PLANNER_CONFIG = _evolving(
    "nvidia.com/planner-config",
    "Requests that the planner service scales a graph, with the PlannerConfig in a ConfigMap of the graph's namespace.",
    set_by="profiler, user",
    read_by="planner",
    values="name of a ConfigMap in the graph's namespace, with key `planner_config.json` or `planner_config.yaml`",
    where="DGDs",
)
GPU_POWER_LIMIT = _evolving(
    "dynamo.nvidia.com/gpu-power-limit",
    "Power limit of each GPU of a pod, in watts: NVIDIA's Power Agent sets the limit, and the planner includes it in its budget.",
    read_by="Power Agent, planner",
    values="whole number above 0, such as `500`",
    where="pod templates of workers",
)
SCALING_POLICY = _evolving(
    "nvidia.com/scaling-policy",
    "Limits for the size and speed of scale commands for the components of a graph, if they differ from the settings.",
    read_by="scaler",
    values="YAML or JSON, by component or `*`: `{Decode: {min: 2, max: 8, up: {step: 2, cooldown: 30s}, down: {cooldown: 5m}}}`",
    where="DGDs",
)
SCALING_INTENTS = _evolving(
    "nvidia.com/scaling-intents",
    "Scale commands that are not done yet, for as long as they are valid: held, or refused for a budget.",
    set_by="scaler",
    read_by="scaler",
    values="JSON, by component",
    where="DGDs",
)
LAST_SCALED = _evolving(
    "nvidia.com/last-scaled",
    "The last scale commands, so that none is executed twice, and components have a cooldown between two commands.",
    set_by="scaler",
    read_by="scaler",
    values="JSON, by component",
    where="DGDs, scaling adapters",
)
LOADED_ADAPTER = _evolving(
    "nvidia.com/loaded-adapter",
    "LoRA adapters that workers may have loaded for a model, so that they are unloaded if the model changes or is deleted.",
    set_by="model-discovery",
    read_by="model-discovery",
    values="JSON: name, hash of the source, earlier names",
    where="DynamoModels",
)
IDEMPOTENCY = _add(
    "dynadmin.nvidia.com/idempotency",
    "Identifies the request that created an object, so that a repeated request creates no second object.",
    set_by="dynadmin",
    read_by="dynadmin",
    values="sha256 (hex) of the user and the Idempotency-Key, a dot, and the sha256 of the body",
    where="DGDs, DGDRs, DynamoModels, DynamoCheckpoints",
)
BENTO_TAG = _evolving(
    "nvidia.com/bento-tag",
    "Archive from which a Job builds an image; for users only.",
    set_by="image-builder",
    read_by="kubectl users",
    values="name:version",
    where="Jobs",
)
ARCHIVE_DIGEST = _evolving(
    "nvidia.com/archive-digest",
    "Digest of the archive from which a Job builds an image; for users only.",
    set_by="image-builder",
    read_by="kubectl users",
    values="`sha256:` and 64 hex digits",
    where="Jobs",
)
IMAGE_DIGEST = _evolving(
    "nvidia.com/image-digest",
    "Digest of the image that a Job pushed; the image-builder records it while the Job's pod exists.",
    set_by="image-builder",
    read_by="image-builder",
    values="`sha256:` and 64 hex digits",
    where="Jobs",
)
ISTIO_INJECT = _add(
    "sidecar.istio.io/inject",
    "Keeps the Istio proxy out of pods that must end, and out of endpoint pickers if Istio is the service mesh.",
    set_by="pod-builder",
    read_by="Istio",
    values="`false`",
    where="pods of checkpoint Jobs, pod templates of endpoint pickers",
)
LINKERD_INJECT = _add(
    "linkerd.io/inject",
    "Keeps the Linkerd proxy out of a pod that must end.",
    set_by="pod-builder",
    read_by="Linkerd",
    values="`disabled`",
    where="pods of checkpoint Jobs",
)
