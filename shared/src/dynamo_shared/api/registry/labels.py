"""Labels that the platform sets or reads."""

from functools import partial

from dynamo_shared.api.registry.catalog import Catalog, Stability

CATALOG = Catalog(
    "Labels", "Services, PodMonitors, watches and Dynamo's own discovery select objects by labels.", "Label", "Values"
)
_add = CATALOG.add
_evolving = partial(CATALOG.add, stability=Stability.EVOLVING)
# By the objects with the label, if several labels share them.
_of_nodes = partial(_add, set_by="GPU feature discovery", read_by="planner (GPU discovery)", where="Nodes")
_of_cliques = partial(_evolving, set_by="Grove", where="pods of PodCliques")

SELECTOR = _add(
    "nvidia.com/selector",
    "Connects the pods of one component with their Deployment; the only label in a Deployment's selector.",
    read_by="Kubernetes",
    values="name of the DynamoComponentDeployment",
    where="pods",
)
GRAPH_DEPLOYMENT_NAME = _add(
    "nvidia.com/dynamo-graph-deployment-name",
    "The DynamoGraphDeployment that an object belongs to.",
    read_by="all services, kubectl users",
    values="name of the DynamoGraphDeployment",
    where="DCDs, Deployments, Services, pods, scaling adapters",
)
COMPONENT = _add(
    "nvidia.com/dynamo-component",
    "The component of the graph that an object belongs to.",
    read_by="Services (selector), discovery, scaler",
    values="component name as written in spec.components[].name",
    where="DCDs, Deployments, Services, pods, scaling adapters",
)
DYNAMO_NAMESPACE = _add(
    "nvidia.com/dynamo-namespace",
    "Dynamo namespace in which the runtime registers; the workers of one graph discover each other in it.",
    read_by="Services (selector), InferencePools, Dynamo runtime",
    values="`dynamo` for a component with globalDynamoNamespace, else `<namespace>-<graph>`",
    where="DCDs, Deployments, Services, pods",
)
COMPONENT_TYPE = _add(
    "nvidia.com/dynamo-component-type",
    "Type of the component.",
    read_by="Services (selector), PodMonitors, dashboards",
    values="`frontend`, `worker`, `prefill`, `decode`, `planner`, `epp`; `default` when unset",
    where="Deployments, pods",
)
SUB_COMPONENT_TYPE = _add(
    "nvidia.com/dynamo-sub-component-type",
    "Role of a worker, for graphs in v1alpha1 (type `worker`, sub-type `prefill` or `decode`).",
    read_by="router, planner",
    values="`prefill`, `decode`, or any other `subComponentType` of v1alpha1",
    where="Deployments, Services, pods",
)
COMPONENT_CLASS = _add(
    "nvidia.com/dynamo-component-class",
    "The same value for every type of worker, so that an InferencePool selects all of them with one label.",
    set_by="pod-builder, in graphs with an endpoint picker",
    read_by="InferencePools",
    values="`worker`",
    where="DCDs, pods",
)
BASE_MODEL = _add(
    "nvidia.com/dynamo-base-model",
    "Base model of the pods of a component, for selectors of users; an annotation has the full name.",
    read_by="kubectl users",
    values="model name, with `--` for `/`, at most 63 characters: `Qwen--Qwen3-0.6B`",
    where="pods",
)
BASE_MODEL_HASH = _add(
    "nvidia.com/dynamo-base-model-hash",
    "Selects the pods, Services and EndpointSlices of a base model, with any characters in its name.",
    read_by="model Services (selector), model-discovery",
    values="first 8 hex digits of the sha256 of the model name",
    where="Services, EndpointSlices, pods",
)
DISCOVERY_BACKEND = _add(
    "nvidia.com/dynamo-discovery-backend",
    "Discovery backend in which the workers of an object register.",
    read_by="Dynamo runtime",
    values="`kubernetes`",
    where="Services, EndpointSlices, pods",
)
DISCOVERY_ENABLED = _add(
    "nvidia.com/dynamo-discovery-enabled",
    "Makes an object visible to Dynamo's discovery through Kubernetes.",
    read_by="Dynamo runtime",
    values="`true`",
    where="Services, EndpointSlices, pods",
)
WORKER_HASH = _add(
    "nvidia.com/dynamo-worker-hash",
    "Generation of a graph's workers: workers with different hashes never serve one request together.",
    read_by="pod-builder (rolling updates), Dynamo runtime",
    values="8 hex digits over the worker specs; `legacy` for workers created before the hash existed",
    where="DCDs, pods of workers",
)
METRICS_ENABLED = _add(
    "nvidia.com/metrics-enabled",
    "Includes a pod in the PodMonitors. The annotation nvidia.com/enable-metrics turns it off.",
    read_by="PodMonitors",
    values="`true`",
    where="pods",
)
COMPONENT_POD = _add(
    "nvidia.com/dynamo-component-pod",
    "On the ServiceAccount that component pods use if they name none.",
    set_by="user",
    read_by="pod-builder",
    values="`true`",
    where="ServiceAccounts",
)
FAILOVER_ENGINE_GROUP_MEMBER = _evolving(
    "nvidia.com/dynamo-failover-engine-group-member",
    "Engines that share GPU memory between pods and fail over together.",
    read_by="pod-builder (failover cascade)",
    values="`true`",
    where="pods",
)
ROLE = _add(
    "role",
    "Position of a pod in a multi-node group; Services send traffic to leaders.",
    read_by="Services (selector)",
    values="`leader`, `worker`",
    where="pods of LeaderWorkerSets",
)
MANAGED_BY = _add(
    "nvidia.com/managed-by",
    "On model Services and profiling objects that the control plane created.",
    set_by="pod-builder, planner",
    read_by="kubectl users",
    values="`dynamo-operator`",
    where="model Services, profiling objects",
)
APP_MANAGED_BY = _add(
    "app.kubernetes.io/managed-by",
    "The usual Kubernetes label for the manager of an object.",
    read_by="kubectl users, dashboards",
    values="`dynamo-operator`",
    where="ServiceAccounts, Roles, RoleBindings, Secrets",
)
APP_COMPONENT = _add(
    "app.kubernetes.io/component",
    "The usual Kubernetes label for the part of an application that an object belongs to.",
    set_by="pod-builder; the installer of the snapshot agent",
    read_by="kubectl users; pod-builder, for the volume of the snapshot agent",
    values="`rbac`, `checkpoint-storage`; `snapshot-agent`",
    where="ServiceAccounts, Roles, RoleBindings, PersistentVolumeClaims; DaemonSets",
)
APP_NAME = _add(
    "app.kubernetes.io/name",
    "The usual Kubernetes label for the name of an application.",
    read_by="kubectl users",
    values="name of the ServiceAccount that the object serves",
    where="ServiceAccounts, Roles, RoleBindings",
)
KAI_QUEUE = _add(
    "kai.scheduler/queue",
    "Queue of the KAI scheduler in which a pod waits.",
    read_by="KAI scheduler",
    values="queue name, `dynamo` by default",
    where="pods",
)
CHECKPOINT_ID = _evolving(
    "nvidia.com/snapshot-checkpoint-id",
    "Connects a checkpoint, its Job and the pods that start from it.",
    read_by="snapshot agent, pod-builder",
    values="first 16 hex digits of the sha256 of the checkpoint's identity",
    where="DynamoCheckpoints, Jobs, pods",
)
CHECKPOINT_SOURCE = _evolving(
    "nvidia.com/snapshot-is-checkpoint-source",
    "Requests that the snapshot agent checkpoints a pod.",
    read_by="snapshot agent",
    values="`true`",
    where="pods of checkpoint jobs",
)
RESTORE_TARGET = _evolving(
    "nvidia.com/snapshot-is-restore-target",
    "Informs the snapshot agent that a pod starts from a checkpoint.",
    read_by="snapshot agent",
    values="`true`",
    where="pods",
)
REQUEST_NAME = _evolving(
    "dgdr.nvidia.com/name",
    "The DynamoGraphDeploymentRequest that an object was created for.",
    set_by="profiler",
    read_by="profiler, kubectl users",
    values="name of the DynamoGraphDeploymentRequest",
    where="DGDs, Jobs, ConfigMaps",
)
REQUEST_NAMESPACE = _evolving(
    "dgdr.nvidia.com/namespace",
    "Namespace of the DynamoGraphDeploymentRequest that an object was created for.",
    set_by="profiler",
    read_by="profiler, kubectl users",
    values="namespace name",
    where="DGDs, Jobs, ConfigMaps",
)
APP_PART_OF = _add(
    "app.kubernetes.io/part-of",
    "The usual Kubernetes label for the application that an object belongs to.",
    set_by="admission, all services without etcd",
    read_by="kubectl users",
    values="`dynamo-platform`",
    where="webhook configurations, Leases of services",
)
SERVICE_NAME = _add(
    "kubernetes.io/service-name",
    "Service that an EndpointSlice belongs to.",
    set_by="Kubernetes",
    read_by="model-discovery",
    values="name of the Service",
    where="EndpointSlices",
)
PROFILER_APP = _evolving(
    "app",
    "On Jobs and pods of the profiler.",
    set_by="profiler",
    read_by="kubectl users",
    values="`dynamo-profiler`",
    where="profiling Jobs and their pods",
)
PROFILER_REQUEST = _evolving(
    "dgdr",
    "The DynamoGraphDeploymentRequest that a profiling Job was created for.",
    set_by="profiler",
    read_by="kubectl users",
    values="name of the DynamoGraphDeploymentRequest",
    where="profiling Jobs and their pods",
)
GPU_COUNT = _of_nodes("nvidia.com/gpu.count", "GPUs of a node.", values="integer")
GPU_PRODUCT = _of_nodes(
    "nvidia.com/gpu.product",
    "GPU model of a node; the profiler derives gpuSku from it.",
    values="product name, such as `NVIDIA-H200`",
)
GPU_MEMORY = _of_nodes("nvidia.com/gpu.memory", "Memory of each GPU of a node.", values="MiB")
GROVE_POD_INDEX = _of_cliques(
    "grove.io/podclique-pod-index",
    "Index of a pod in its PodClique; engines of a failover group get it as ENGINE_ID.",
    read_by="pods, through the downward API; pod-builder",
    values="integer from 0",
)
GROVE_POD_CLIQUE = _of_cliques(
    "grove.io/podclique",
    "PodClique of a pod; a graph's status uses it to select pods with problems.",
    read_by="pod-builder, autoscalers (selector of adapters)",
    values="name of the PodClique",
)
GROVE_SCALING_GROUP = _of_cliques(
    "grove.io/podcliquescalinggroup",
    "PodCliqueScalingGroup of a pod.",
    read_by="pod-builder, planner",
    values="name of the PodCliqueScalingGroup",
)
GROVE_SCALING_GROUP_REPLICA = _of_cliques(
    "grove.io/podcliquescalinggroup-replica-index",
    "Replica of a pod in its PodCliqueScalingGroup; engines of one failover group have the same value.",
    read_by="pod-builder, planner",
    values="integer from 0",
)
JOB_NAME = _add(
    "batch.kubernetes.io/job-name",
    "Job of a pod; a checkpoint's status uses it to select a pod with problems.",
    set_by="Kubernetes",
    read_by="pod-builder",
    values="name of the Job",
    where="pods of Jobs",
)
LWS_NAME = _evolving(
    "leaderworkerset.sigs.k8s.io/name",
    "LeaderWorkerSet of a pod; a component's status uses it to select pods with problems.",
    set_by="LeaderWorkerSet",
    read_by="pod-builder, planner",
    values="name of the LeaderWorkerSet",
    where="pods of LeaderWorkerSets",
)
LWS_GROUP = _evolving(
    "leaderworkerset.sigs.k8s.io/group-index",
    "Group of a pod in its LeaderWorkerSet; a component's status uses it to identify the group whose pods are refused.",
    set_by="LeaderWorkerSet",
    read_by="pod-builder, planner",
    values="integer from 0",
    where="pods of LeaderWorkerSets",
)
IMAGE_BUILD = _evolving(
    "nvidia.com/dynamo-image-build",
    "Image build of a Job and its pod.",
    set_by="image-builder",
    read_by="image-builder",
    values="16 hex digits: the same for the same tag, archive and image",
    where="Jobs, pods",
)
IMAGE_NAMESPACE = _evolving(
    "nvidia.com/dynamo-image-namespace",
    "Namespace of the request that began an image build; the number of its builds is limited.",
    set_by="image-builder",
    read_by="image-builder",
    values="name of a namespace",
    where="Jobs, pods",
)
