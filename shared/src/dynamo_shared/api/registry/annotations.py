"""Annotations that the platform puts on objects or reads from them."""

from functools import partial

from dynamo_shared.api.registry.catalog import Catalog, Stability

CATALOG = Catalog(
    "Annotations",
    "Annotations switch behaviour on and off, and remember what a selector need not find.",
    "Annotation",
    "Values",
    set_by="user",
    read_by="pod-builder",
)
_add = CATALOG.add
_evolving = partial(CATALOG.add, stability=Stability.EVOLVING)
# By which objects have them, where several have the same.
_of_graphs, _of_templates = partial(_add, where="DGDs"), partial(_add, where="pod templates")
_of_both = partial(_add, where="DGDs, pod templates")
_of_snapshot_pods = partial(_evolving, set_by="pod-builder", read_by="snapshot agent", where="pods")

ENABLE_METRICS = _of_both(
    "nvidia.com/enable-metrics",
    "Keeps the PodMonitors away from a graph or a component.",
    values="`false` disables; anything else leaves metrics on",
)
TOPOLOGY_LABEL_KEY = _evolving(
    "nvidia.com/topology-label-key",
    "Label that a pod gets from its node, so that a worker knows the domain of the topology that it is in.",
    set_by="pod-builder",
    values="key of a label of nodes",
    where="pods of workers whose graph has a kvTransferPolicy",
)
LAST_APPLIED_HASH = _add(
    "nvidia.com/last-applied-hash",
    "Remembers what was written last, so that an object which has not changed is not written again.",
    set_by="pod-builder, scaler",
    read_by="pod-builder, scaler",
    values="sha256 (hex) of the desired object",
    where="all children",
)
LAST_APPLIED_GENERATION = _add(
    "nvidia.com/last-applied-generation",
    "Generation that the last write of the Go operator left behind; read when its objects are taken over.",
    set_by="Go operator",
    values="integer",
    where="all children",
    stability=Stability.COMPATIBILITY,
)
OPERATOR_ORIGIN_VERSION = _of_both(
    "nvidia.com/dynamo-operator-origin-version",
    "Version of the control plane that first saw a graph; new defaults never change graphs from before them.",
    set_by="admission",
    values="semantic version",
)
DISCOVERY_BACKEND = _of_both(
    "nvidia.com/dynamo-discovery-backend",
    "Overrides where the workers of a graph or a component register themselves.",
    values="`kubernetes`, `etcd`",
)
KUBE_DISCOVERY_MODE = _of_both(
    "nvidia.com/dynamo-kube-discovery-mode",
    "Whether discovery registers a pod or each of its containers. Failover within a pod needs `container`.",
    read_by="pod-builder, admission",
    values="`pod` (default), `container`",
)
VLLM_DISTRIBUTED_EXECUTOR_BACKEND = _of_both(
    "nvidia.com/vllm-distributed-executor-backend",
    "How vLLM spreads over nodes; where absent, the origin version decides.",
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
    "Pods above the desired number while a component is updated.",
    values="number or percentage, `25%` by default",
)
DEPLOYMENT_MAX_UNAVAILABLE = _of_templates(
    "nvidia.com/deployment-rolling-update-max-unavailable",
    "Pods that may be missing while a component is updated.",
    values="number or percentage, `25%` by default",
)
DISABLE_IMAGE_PULL_SECRET_DISCOVERY = _of_templates(
    "nvidia.com/disable-image-pull-secret-discovery",
    "Leaves imagePullSecrets as written, instead of adding the namespace's secrets of the images' registries.",
    values="`true` disables",
)
AUTOSCALING = _of_graphs(
    "nvidia.com/dynamo-autoscaling",
    "Autoscalers that the platform makes next to the adapters of a graph's components.",
    read_by="scaler, admission",
    values="YAML or JSON: the contract dynamo-autoscaling",
)
ENABLE_GROVE = _of_graphs(
    "nvidia.com/enable-grove",
    "Keeps a graph off Grove where Grove is installed.",
    values="`false` disables, in any case",
)
WORKLOAD_PROVIDER = _of_graphs(
    "nvidia.com/workload-provider",
    "What runs a graph, whatever else says so and whether it is there or not; it cannot be changed. Dynamo 1.5 writes it.",
    set_by="user, Dynamo 1.5",
    read_by="pod-builder, admission",
    values="`grove`, `component`; without it `nvidia.com/enable-grove` counts, and whether Grove is there",
)
GROVE_UPDATE_STRATEGY = _of_graphs(
    "nvidia.com/grove-update-strategy",
    "How Grove replaces the pods of a changed graph: by itself, or each once it is deleted.",
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
    "Queue of the Volcano scheduler for the pods of a graph; not together with a queue of KAI.",
    values="queue name",
)
VOLCANO_POD_QUEUE = _add(
    "scheduling.volcano.sh/queue-name",
    "Queue in which Volcano keeps a pod until there is room for it.",
    set_by="pod-builder",
    read_by="Volcano",
    values="queue name",
    where="DCDs, pods",
)
GROVE_VOLCANO_QUEUE = _add(
    "scheduling.grove.io/volcano-queue",
    "Queue of Volcano in which Grove makes the PodGroups of a graph; without it, `default`.",
    set_by="pod-builder",
    read_by="Grove",
    values="queue name",
    where="PodCliqueSets",
)
RESTART_AT = _of_templates(
    "nvidia.com/restartAt",
    "Rolls the pods of a component when it changes.",
    set_by="pod-builder, from spec.restart.id",
    read_by="Kubernetes (a changed pod template rolls)",
    values="the id of the restart",
)
CURRENT_WORKER_HASH = _of_graphs(
    "nvidia.com/current-worker-hash",
    "Generation of workers that a graph ran under the Go operator, as the first generation of hashes counts it. Of a graph with "
    "a planner among its components: the one that serves.",
    set_by="Go operator, pod-builder",
    read_by="pod-builder (adoption), Dynamo's planner",
    values="8 hex digits, or `legacy`",
)
CURRENT_WORKER_HASH_V2 = _of_graphs(
    "nvidia.com/current-worker-hash-v2",
    "The same over the generated worker components; it counts before the other one.",
    set_by="Go operator, pod-builder",
    read_by="pod-builder (adoption), Dynamo's planner",
    values="8 hex digits",
)
BASE_MODEL = _add(
    "nvidia.com/dynamo-base-model",
    "Base model that a component serves, with its name in full.",
    set_by="pod-builder",
    read_by="model-discovery, kubectl users",
    values="model name",
    where="Deployments, model Services",
)
PRESERVED_FIELDS = _add(
    "nvidia.com/preserved-fields",
    "What an object says and its API version cannot, kept for the way back; live fields win over it.",
    set_by="admission (conversion)",
    read_by="admission (conversion), all who convert in process",
    values="JSON, versioned; `zlib:` and base64 where it would be too long",
    where="DGDs, DCDs, DGDSAs, DGDRs",
)


def _operators(name: str, what: str, where: str, read_by: str) -> str:
    return _add(
        f"nvidia.com/{name}",
        f"What the Go operator kept of a {what} for its other version; read and removed when it gets to that version.",
        set_by="Go operator",
        read_by=f"Go operator, admission (conversion), {read_by}",
        values="JSON, versioned",
        where=where,
        stability=Stability.COMPATIBILITY,
    )


OPERATOR_GRAPH_SPEC = _operators("dgd-spec", "graph", "DGDs", "pod-builder")
OPERATOR_COMPONENT_SPEC = _operators("dcd-spec", "component deployment", "DCDs", "pod-builder")
OPERATOR_REQUEST_SPEC = _operators("dgdr-spec", "request", "DGDRs", "profiler")


# Fields that the conversion of the Go operator 1.2 keeps of a request besides, and that count where the annotations above
# say nothing. Its others stay as they are, and are read by nothing here.
def _kept_by_go(name: str, what: str) -> str:
    return _add(
        f"nvidia.com/{name}",
        f"{what}, which one API version cannot hold and the Go operator kept for the way back.",
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
    "Version of a checkpoint's files; a new one makes the platform create the checkpoint again.",
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
    "nvidia.com/snapshot-storage-type", "Kind of storage that holds the files of a pod's checkpoint.", values="`pvc`"
)
SNAPSHOT_STORAGE_BASE_PATH = _of_snapshot_pods(
    "nvidia.com/snapshot-storage-base-path",
    "Directory of that storage, below which each checkpoint has its own.",
    values="absolute path",
)
SNAPSHOT_STATUS = _evolving(
    "nvidia.com/snapshot-checkpoint-status",
    "What the snapshot agent says of its checkpoint.",
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


AUTO_CHECKPOINT = _of_snapshots(
    "auto-checkpoint", "Says that the platform has a PodSnapshot taken for a graph.", "`true`"
)
CHECKPOINT_DELETION_POLICY = _of_snapshots(
    "checkpoint-deletion-policy", "Whether it goes with its graph.", "`Delete`, `Retain`"
)
CHECKPOINT_OWNER_UID = _of_snapshots("checkpoint-owner-uid", "The very graph that it was taken for.", "UID of the DGD")
SNAPSHOT_COMPATIBILITY_VERSION = _of_snapshots(
    "snapshot-compatibility-version", "What its compatibility hash covers.", "`v2`", "PodSnapshots"
)
SNAPSHOT_COMPATIBILITY_HASH = _of_snapshots(
    "snapshot-compatibility-hash",
    "What a pod must have in common with the one that was captured: image, command, variables, volumes, GPUs, placement.",
    "sha256 (hex)",
    "PodSnapshots",
)
SNAPSHOT_GMS_MODE = _of_snapshots(
    "snapshot-gms-mode", "GPU memory service of the captured engine.", "`disabled`", "PodSnapshots"
)
RESTORE_CANDIDATE = _of_candidates(
    "checkpoint-restore-candidate", "Asks for a pod to start from a PodSnapshot, if it can.", "`true`"
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
    "restore-snapshot-gms-mode", "GPU memory service that the PodSnapshot is of.", "`disabled`"
)
RESTORE_SNAPSHOT_VERSION = _of_candidates(
    "restore-snapshot-version", "What the compatibility hash of the PodSnapshot covers.", "`v2`"
)
RESTORE_COMPATIBILITY_HASH = _of_candidates(
    "restore-snapshot-compatibility-hash", "What a pod must have in common with the captured one.", "sha256 (hex)"
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
    "Into which containers, where they are not called as the captured one.",
    set_by="admission",
    read_by="Snapshot's agent",
    values="comma-separated `captured=restored`",
    where="pods",
)
ROTATE_AUTHORITY = _add(
    "nvidia.com/rotate-authority",
    "Asks for a new authority of the webhooks' certificates now; it goes away when that is made.",
    read_by="admission",
    values="anything",
    where="the Secret of `server.webhook.secretName`",
)
REQUEST_UID = _evolving(
    "dgdr.nvidia.com/uid",
    "The very request that an object was made for, which another one of the same name is not.",
    set_by="profiler",
    read_by="profiler",
    values="UID of the DynamoGraphDeploymentRequest",
    where="DGDs, ConfigMaps, Jobs",
)
PLANNER_CONFIG = _evolving(
    "nvidia.com/planner-config",
    "Asks the planner service to scale a graph, by the PlannerConfig in a ConfigMap of its namespace.",
    set_by="profiler, user",
    read_by="planner",
    values="name of a ConfigMap in the graph's namespace, with key `planner_config.json` or `planner_config.yaml`",
    where="DGDs",
)
GPU_POWER_LIMIT = _evolving(
    "dynamo.nvidia.com/gpu-power-limit",
    "Watts that each GPU of a pod may draw: NVIDIA's Power Agent sets the limit, and the planner counts it.",
    read_by="Power Agent, planner",
    values="whole number above 0, such as `500`",
    where="pod templates of workers",
)
SCALING_POLICY = _evolving(
    "nvidia.com/scaling-policy",
    "How far and how fast scale commands may scale the components of a graph, where it differs from the settings.",
    read_by="scaler",
    values="YAML or JSON, by component or `*`: `{Decode: {min: 2, max: 8, up: {step: 2, cooldown: 30s}, down: {cooldown: 5m}}}`",
    where="DGDs",
)
SCALING_INTENTS = _evolving(
    "nvidia.com/scaling-intents",
    "What scale commands asked for and what is not done yet, for its life time: held, or refused for a budget.",
    set_by="scaler",
    read_by="scaler",
    values="JSON, by component",
    where="DGDs",
)
LAST_SCALED = _evolving(
    "nvidia.com/last-scaled",
    "What scale commands did last, so that none is carried out twice and components rest between two of them.",
    set_by="scaler",
    read_by="scaler",
    values="JSON, by component",
    where="DGDs, scaling adapters",
)
LOADED_ADAPTER = _evolving(
    "nvidia.com/loaded-adapter",
    "Which LoRA adapters workers may have loaded for a model, so that they are unloaded when it changes or goes.",
    set_by="model-discovery",
    read_by="model-discovery",
    values="JSON: name, hash of the source, earlier names",
    where="DynamoModels",
)
IDEMPOTENCY = _add(
    "dynadmin.nvidia.com/idempotency",
    "Remembers the request that created an object, so that the same request again creates no other.",
    set_by="dynadmin",
    read_by="dynadmin",
    values="sha256 (hex) of the user and the Idempotency-Key, a dot, and that of the body",
    where="DGDs, DGDRs, DynamoModels, DynamoCheckpoints",
)
BENTO_TAG = _evolving(
    "nvidia.com/bento-tag",
    "The archive that a Job builds an image of, for people.",
    set_by="image-builder",
    read_by="kubectl users",
    values="name:version",
    where="Jobs",
)
ARCHIVE_DIGEST = _evolving(
    "nvidia.com/archive-digest",
    "Digest of the archive that a Job builds an image of, for people.",
    set_by="image-builder",
    read_by="kubectl users",
    values="`sha256:` and 64 hex digits",
    where="Jobs",
)
IMAGE_DIGEST = _evolving(
    "nvidia.com/image-digest",
    "Digest of the image that a Job has pushed; the image-builder records it while the Job's pod exists.",
    set_by="image-builder",
    read_by="image-builder",
    values="`sha256:` and 64 hex digits",
    where="Jobs",
)
ISTIO_INJECT = _add(
    "sidecar.istio.io/inject",
    "Keeps the proxy of Istio out of a pod that has to end, and of endpoint pickers where Istio is the service mesh.",
    set_by="pod-builder",
    read_by="Istio",
    values="`false`",
    where="pods of checkpoint Jobs, pod templates of endpoint pickers",
)
LINKERD_INJECT = _add(
    "linkerd.io/inject",
    "Keeps the proxy of Linkerd out of a pod that has to end.",
    set_by="pod-builder",
    read_by="Linkerd",
    values="`disabled`",
    where="pods of checkpoint Jobs",
)
