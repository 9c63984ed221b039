"""Environment variables that the platform sets in containers of a graph, or reads from them."""

from functools import partial

from dynamo_shared.api.registry.catalog import Catalog, Stability

CATALOG = Catalog(
    "Environment variables",
    "A variable that a user sets on a container takes precedence over the platform's. The settings of the"
    " platform's own services have variables, too: [configuration](configuration.md) lists them.",
    "Variable",
    "Values",
    read_by="Dynamo runtime",
)
_EVERY = "every main container"
_WORKERS = "workers"
_add = CATALOG.add
_evolving = partial(CATALOG.add, stability=Stability.EVOLVING)
# By the containers with the variable, if several variables share them.
_of_all, _of_workers = partial(_add, where=_EVERY), partial(_add, where=_WORKERS)
_of_policies = partial(_evolving, where="workers whose graph has a kvTransferPolicy")
_of_failover = partial(_evolving, where="engines of a failover group")
_of_planners = partial(_add, set_by="user", read_by="planners after 1.1", where="planners")
_if_configured = partial(_add, where="main containers, if configured")
_of_pickers = partial(_add, read_by="EPP", where="endpoint pickers")
_of_elastic_experts = partial(_add, where="vLLM workers on one node with elastic experts")
_of_lws = partial(
    _add, set_by="LeaderWorkerSet", read_by="commands that pod-builder writes", where="pods of LeaderWorkerSets"
)
_of_grove = partial(_evolving, set_by="Grove", read_by="commands that pod-builder writes")
_of_waiting = partial(_add, read_by="the script wait-for-leader.py", where="init containers of multi-node vLLM workers")
_of_restored = partial(_evolving, set_by="admission", where="containers that start from a PodSnapshot")
_of_platform = partial(_evolving, set_by="the installer", where="pods of the platform")
_of_profiling = partial(_evolving, set_by="profiler", read_by="profiler", where="profiling jobs")

# Identity and location of the container
DYN_NAMESPACE = _of_all(
    "DYN_NAMESPACE", "Dynamo namespace in which the component registers.", values="`dynamo`, or `<namespace>-<graph>`"
)
DYN_NAMESPACE_PREFIX = _add(
    "DYN_NAMESPACE_PREFIX",
    "Prefix of the Dynamo namespaces whose models are served.",
    values="Dynamo namespace",
    where="frontends, endpoint pickers",
)
DYN_NAMESPACE_PREFIX_STRICT = _add(
    "DYN_NAMESPACE_PREFIX_STRICT",
    "Whether only one generation of the graph's own workers may match that prefix.",
    values="`true`",
    where="frontends, and endpoint pickers without `eppConfig`, whose `runtimeVersionOverride` is 1.6.0 or later",
)
DYN_NAMESPACE_WORKER_SUFFIX = _of_workers(
    "DYN_NAMESPACE_WORKER_SUFFIX", "Separates generations of workers during an update of a graph.", values="worker hash"
)
DYN_COMPONENT = _of_all(
    "DYN_COMPONENT",
    "Type of the component (not its name).",
    values="`frontend`, `worker`, `prefill`, `decode`, `planner`, `epp`",
)
DYN_PARENT_DGD_K8S_NAME = _of_all(
    "DYN_PARENT_DGD_K8S_NAME",
    "Graph that the pod belongs to; the planner scales it.",
    read_by="Dynamo runtime, planner",
    values="name of the DGD; of the DCD if it has no graph",
)
DYN_PARENT_DGD_K8S_NAMESPACE = _of_all(
    "DYN_PARENT_DGD_K8S_NAMESPACE",
    "Kubernetes namespace of the graph.",
    read_by="Dynamo runtime, planner",
    values="namespace name",
)
POD_NAME = _of_all("POD_NAME", "Name of the pod.", values="downward API metadata.name")
POD_NAMESPACE = _add(
    "POD_NAMESPACE",
    "Kubernetes namespace of the pod.",
    set_by="pod-builder; the installer",
    read_by="Dynamo runtime; admission",
    values="downward API metadata.namespace",
    where=f"{_EVERY}; pods of the platform",
)
POD_UID = _of_all("POD_UID", "UID of the pod.", values="downward API metadata.uid")
CONTAINER_NAME = _add(
    "CONTAINER_NAME",
    "Container that registers, if discovery registers containers instead of pods.",
    values="container name",
    where="main containers and frontend sidecars with discovery mode `container`",
)

_ON_NODES = (
    "main containers of components on several nodes that read one of the two, or whose `runtimeVersionOverride` "
    "is 1.6.0 or later"
)
DYNAMO_RANK = _evolving(
    "DYNAMO_RANK",
    "Index of the container's node in its replica. With Grove and more than two nodes it needs Grove 0.1.0-alpha.14.",
    read_by="commands of the user",
    values="integer from 0; 0 is the leader",
    where=_ON_NODES,
)
DYNAMO_LEADER_ADDRESS = _evolving(
    "DYNAMO_LEADER_ADDRESS",
    "Host name of the leader, without a port. With Grove it needs Grove 0.1.0-alpha.14.",
    read_by="commands of the user",
    values="host name",
    where=_ON_NODES,
)

# Discovery and infrastructure
DYN_DISCOVERY_BACKEND = _add(
    "DYN_DISCOVERY_BACKEND",
    "Discovery backend of the components; if absent, etcd.",
    values="`kubernetes`",
    where="main containers, unless discovery uses etcd",
)
DYN_KUBE_DISCOVERY_MODE = _add(
    "DYN_KUBE_DISCOVERY_MODE",
    "Whether a pod or a container is one instance.",
    values="`container`",
    where="main containers with discovery mode `container`",
)
NATS_SERVER = _if_configured(
    "NATS_SERVER",
    "NATS of the workloads. The platform never sets its own NATS here, because the runtime connects if the variable is set.",
    values="URL, from infrastructure.natsAddress",
)
ETCD_ENDPOINTS = _if_configured(
    "ETCD_ENDPOINTS", "etcd of the workloads.", values="URL, from infrastructure.etcdAddress"
)


def _tls(name: str, what: str, setting: str) -> str:
    return _if_configured(name, f"{what}.", values=f"from infrastructure.{setting}", stability=Stability.COMPATIBILITY)


#: TLS between the components of a graph, and to the workloads' NATS; pod templates mount the files.
NATS_TLS_CA_CERT_PATH = _tls("NATS_TLS_CA_CERT_PATH", "CA certificates for the workloads' NATS", "natsTLSCAPath")
NATS_TLS_CLIENT_CERT_PATH = _tls("NATS_TLS_CLIENT_CERT_PATH", "Certificate to NATS", "natsTLSClientCertPath")
NATS_TLS_CLIENT_KEY_PATH = _tls("NATS_TLS_CLIENT_KEY_PATH", "Its key", "natsTLSClientKeyPath")
DYN_TCP_TLS_CERT_PATH = _tls("DYN_TCP_TLS_CERT_PATH", "Certificate of TCP servers", "tcpTLSCertPath")
DYN_TCP_TLS_KEY_PATH = _tls("DYN_TCP_TLS_KEY_PATH", "Its key", "tcpTLSKeyPath")
DYN_TCP_TLS_CA_CERT_PATH = _tls("DYN_TCP_TLS_CA_CERT_PATH", "Authorities of TCP peers", "tcpTLSCAPath")
DYN_TCP_TLS_CLIENT_CERT_PATH = _tls(
    "DYN_TCP_TLS_CLIENT_CERT_PATH", "Client certificate for TCP servers", "tcpTLSClientCertPath"
)
DYN_TCP_TLS_CLIENT_KEY_PATH = _tls("DYN_TCP_TLS_CLIENT_KEY_PATH", "Its key", "tcpTLSClientKeyPath")
DYN_TCP_TLS_CLIENT_CA_CERT_PATH = _tls(
    "DYN_TCP_TLS_CLIENT_CA_CERT_PATH", "CA certificates for TCP clients", "tcpTLSClientCAPath"
)
DYN_TCP_TLS_SERVER_NAME = _tls(
    "DYN_TCP_TLS_SERVER_NAME", "Host name in the certificate of TCP servers", "tcpTLSServerName"
)
MODEL_EXPRESS_URL = _if_configured(
    "MODEL_EXPRESS_URL",
    "Model Express server from which workers fetch weights.",
    values="URL, from infrastructure.modelExpressURL",
)
PROMETHEUS_ENDPOINT = _if_configured(
    "PROMETHEUS_ENDPOINT",
    "Prometheus server that the planner queries.",
    read_by="planner",
    values="URL, from infrastructure.prometheusEndpoint",
)

# Frontend
DYNAMO_PORT = _add("DYNAMO_PORT", "Port of the frontend's API (older name).", values="`8000`", where="frontends")
DYN_HTTP_PORT = _add("DYN_HTTP_PORT", "Port of the frontend's API.", values="`8000`", where="frontends")

# Workers
DYN_SYSTEM_ENABLED = _of_workers("DYN_SYSTEM_ENABLED", "Enables the system port.", values="`true`")
DYN_SYSTEM_PORT = _add(
    "DYN_SYSTEM_PORT", "Port of health, metrics and LoRA management.", values="`9090`", where="workers, planners"
)
DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS = _of_workers(
    "DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS",
    "Endpoints whose health determines the status of /health.",
    values='JSON list, `["generate"]`',
)
DYN_SYSTEM_STARTING_HEALTH_STATUS = _of_failover(
    "DYN_SYSTEM_STARTING_HEALTH_STATUS",
    "Health status until the engine reports its own; shadow engines start as not ready.",
    values="`notready`",
)
DYN_HEALTH_CHECK_ENABLED = _of_workers(
    "DYN_HEALTH_CHECK_ENABLED", "Whether the worker checks itself with canary requests.", values="`false`, `true`"
)
DYN_HEALTH_CHECK_PAYLOAD = _of_workers(
    "DYN_HEALTH_CHECK_PAYLOAD", "Canary request, as JSON, instead of the engine's default.", set_by="user"
)
NIXL_TELEMETRY_ENABLE = _of_workers("NIXL_TELEMETRY_ENABLE", "Telemetry of NIXL.", read_by="NIXL", values="`n`, `y`")
NIXL_TELEMETRY_EXPORTER = _of_workers(
    "NIXL_TELEMETRY_EXPORTER", "Exporter of NIXL's telemetry.", read_by="NIXL", values="`prometheus`"
)
NIXL_TELEMETRY_PROMETHEUS_PORT = _of_workers(
    "NIXL_TELEMETRY_PROMETHEUS_PORT", "Port of NIXL's telemetry.", read_by="NIXL", values="`19090`"
)
DYN_FORWARDPASS_METRIC_PORT = _of_workers(
    "DYN_FORWARDPASS_METRIC_PORT", "Port of forward-pass metrics.", values="`20380`, plus the engine's index"
)
VLLM_CACHE_ROOT = _add(
    "VLLM_CACHE_ROOT",
    "Directory in which vLLM caches compiled kernels.",
    read_by="vLLM",
    values="mount path of spec.compilationCache",
    where="vLLM workers with a compilation cache",
)

# Planner and endpoint picker
PLANNER_PROMETHEUS_PORT = _add(
    "PLANNER_PROMETHEUS_PORT", "Port of the planner's metrics.", read_by="planner", values="`9085`", where="planners"
)
USE_STREAMING = _of_pickers("USE_STREAMING", "Mode of streaming between gateway and picker.", values="`true`")
RUST_LOG = _of_pickers("RUST_LOG", "Log filter of the picker's router.", values="tracing filter")
HOME = _add(
    "HOME",
    "Home directory, in which the picker of 1.5.0 and later stores downloaded model files.",
    read_by="EPP",
    values="`/home/dynamo`",
    where="endpoint pickers without eppConfig",
)
DYN_ENFORCE_DISAGG = _of_pickers(
    "DYN_ENFORCE_DISAGG",
    "Whether requests must wait for a prefill worker, instead of going to a decode worker only.",
    values="`false`",
)
DYN_DEPLOYMENT_CONFIG = _add(
    "DYN_DEPLOYMENT_CONFIG",
    "Configuration of older graphs: the platform applies its workers, resources and routing, and writes "
    "the frontend's port, namespace and component into it.",
    set_by="user, pod-builder",
    read_by="pod-builder, Dynamo runtime",
    values="JSON or YAML, [described here](contracts.md#dyn_deployment_config)",
    where="main containers",
    stability=Stability.COMPATIBILITY,
)

DYN_ROUTER_MODE = _add(
    "DYN_ROUTER_MODE",
    "How a frontend selects a worker; from DYN_DEPLOYMENT_CONFIG if that sets routing.",
    set_by="user, pod-builder, dynadmin",
    read_by="frontend",
    values="`kv`, `round-robin`, `random`",
    where="frontends",
)

# Several nodes
POD_IP = _of_elastic_experts(
    "POD_IP",
    "Address of the pod, under which its Ray head registers.",
    read_by="Ray",
    values="downward API status.podIP",
)
VLLM_DP_MASTER_IP = _of_elastic_experts(
    "VLLM_DP_MASTER_IP",
    "Address of the Ray node that data-parallel engines connect to.",
    read_by="vLLM",
    values="downward API status.podIP",
)
VLLM_NIXL_SIDE_CHANNEL_HOST = _add(
    "VLLM_NIXL_SIDE_CHANNEL_HOST",
    "Address at which other nodes reach a worker's NIXL.",
    read_by="vLLM",
    values="downward API status.podIP",
    where="multi-node vLLM workers",
)
OMPI_MCA_ORTE_KEEP_FQDN_HOSTNAMES = _add(
    "OMPI_MCA_orte_keep_fqdn_hostnames",
    "Keeps full host names, because pods have no short ones.",
    read_by="mpirun",
    values="`1`",
    where="multi-node TensorRT-LLM workers",
)

# GPU memory service and failover
ENGINE_ID = _of_failover("ENGINE_ID", "Index of an engine in its failover group.", values="integer from 0")
FAILOVER_LOCK_PATH = _of_failover(
    "FAILOVER_LOCK_PATH",
    "Lock file that the active engine holds.",
    values="path in the volume shared with the GPU memory service",
)
DYN_VLLM_GMS_SHADOW_MODE = _of_failover(
    "DYN_VLLM_GMS_SHADOW_MODE", "Lets an engine wait with its weights loaded until it holds the lock.", values="`true`"
)
GMS_SOCKET_DIR = _evolving(
    "GMS_SOCKET_DIR",
    "Directory with the sockets of the GPU memory service.",
    read_by="GPU memory service, engines",
    values="absolute path",
    where="containers with GPU memory service",
)
VLLM_NIXL_SIDE_CHANNEL_PORT = _of_failover(
    "VLLM_NIXL_SIDE_CHANNEL_PORT",
    "Port of NIXL's side channel, one for each engine of a pod.",
    read_by="vLLM",
    values="5600 plus the engine's index",
)
DYN_VLLM_KV_EVENT_PORT = _of_failover(
    "DYN_VLLM_KV_EVENT_PORT", "Port of an engine's KV cache events.", values="20080 plus the engine's index"
)
NNODES = _evolving(
    "NNODES", "Number of nodes of a component.", values="integer", where="engines of multi-node failover groups"
)
DYN_TOPOLOGY_ENABLED = _of_policies(
    "DYN_TOPOLOGY_ENABLED", "Makes a worker read its topology domains from files, and register them.", values="`true`"
)
DYN_TOPOLOGY_MOUNT_PATH = _of_policies(
    "DYN_TOPOLOGY_MOUNT_PATH",
    "Directory with a file for each kind of domain; each file contains the worker's own domain.",
    values="`/etc/dynamo/topology`",
)
DYN_KV_TRANSFER_DOMAIN = _of_policies(
    "DYN_KV_TRANSFER_DOMAIN",
    "Kind of domain within which KV caches move between prefill and decode workers.",
    values="name of a file in `DYN_TOPOLOGY_MOUNT_PATH`, such as `zone`",
)
DYN_KV_TRANSFER_ENFORCEMENT = _of_policies(
    "DYN_KV_TRANSFER_ENFORCEMENT",
    "Whether it is required that KV caches stay in their domain, or only preferred.",
    values="`required`, `preferred`",
)
DYN_KV_TRANSFER_PREFERRED_WEIGHT = _of_policies(
    "DYN_KV_TRANSFER_PREFERRED_WEIGHT",
    "Weight of the preference for decode workers in the same domain.",
    values="0 to 1",
)
DYN_SNAPSHOT_CONTROL_DIR = _evolving(
    "DYN_SNAPSHOT_CONTROL_DIR",
    "Directory for signal files between a container and the snapshot agent.",
    read_by="Dynamo runtime, snapshot agent",
    values="`/snapshot-control`",
    where="containers of checkpoint jobs",
)
SNAPSHOT_CONTROL_DIR = _of_restored(
    "SNAPSHOT_CONTROL_DIR",
    "Directory for signal files between a container and Snapshot's agent.",
    read_by="Dynamo runtime, Snapshot's agent",
    values="`/snapshot-control`",
)
SNAPSHOT_RESTORE_STANDBY = _of_restored(
    "SNAPSHOT_RESTORE_STANDBY",
    "Makes an engine wait for Snapshot's agent, which replaces it with the captured processes.",
    values="`1`",
)

# Several nodes, set by the controllers of the groups
LWS_LEADER_ADDRESS = _of_lws("LWS_LEADER_ADDRESS", "Host name of the leader of a pod's group.", values="host name")
LWS_WORKER_INDEX = _of_lws("LWS_WORKER_INDEX", "Rank of a pod in its group.", values="integer, 0 for the leader")
LEADER_HOST = _of_waiting("LEADER_HOST", "Leader that a vLLM worker waits for before it starts.", values="host name")
LEADER_PORT = _of_waiting("LEADER_PORT", "Port of that leader.", values="`29500`")
GROVE_PCSG_NAME = _of_grove(
    "GROVE_PCSG_NAME",
    "PodCliqueScalingGroup of a pod; the host names in the group begin with its name.",
    values="name",
    where="pods of PodCliqueScalingGroups",
)
GROVE_PCSG_INDEX = _of_grove(
    "GROVE_PCSG_INDEX",
    "Index of the pod's replica in its PodCliqueScalingGroup.",
    values="integer from 0",
    where="pods of PodCliqueScalingGroups",
)
GROVE_PCLQ_POD_INDEX = _of_grove(
    "GROVE_PCLQ_POD_INDEX", "Index of a pod in its PodClique.", values="integer from 0", where="pods of PodCliques"
)
GROVE_PCSG_POD_INDEX = _of_grove(
    "GROVE_PCSG_POD_INDEX",
    "Index of a pod among all pods of its replica, since Grove 0.1.0-alpha.14.",
    read_by="DYNAMO_RANK",
    values="integer from 0",
    where="pods of PodCliqueScalingGroups",
)
GROVE_HEADLESS_SERVICE = _of_grove(
    "GROVE_HEADLESS_SERVICE",
    "Headless Service that provides the host names of a PodCliqueSet's pods.",
    values="host name",
    where="pods of PodCliqueSets",
)

# Profiling, and other variables that the planner reads
DGDR_NAME = _of_profiling("DGDR_NAME", "Request of a profiling Job.", values="name of the DynamoGraphDeploymentRequest")
DGDR_NAMESPACE = _of_profiling("DGDR_NAMESPACE", "Namespace of that request.", values="namespace name")
DGDR_UID = _of_profiling("DGDR_UID", "UID of that request.", values="UID")
HUGGING_FACE_HUB_TOKEN = _of_profiling(
    "HUGGING_FACE_HUB_TOKEN",
    "Token for gated models on Hugging Face.",
    values="key HF_TOKEN of the Secret hf-token-secret",
)
PROMETHEUS_TOKEN = _of_planners("PROMETHEUS_TOKEN", "Bearer token for Prometheus.", values="token")
PROMETHEUS_TOKEN_FILE = _of_planners(
    "PROMETHEUS_TOKEN_FILE", "File with that token, read before each request.", values="path"
)
PROMETHEUS_SSL_VERIFY = _of_planners(
    "PROMETHEUS_SSL_VERIFY",
    "Whether the planner verifies the certificate of Prometheus.",
    values="`true`; with any other value it is not verified",
)
PROMETHEUS_EXTRA_QUERY_PARAMS = _of_planners(
    "PROMETHEUS_EXTRA_QUERY_PARAMS",
    "Additional parameters of each query to Prometheus.",
    values="`name=value&name=value`",
)
PROMETHEUS_CA_BUNDLE = _of_planners(
    "PROMETHEUS_CA_BUNDLE", "CA certificates to trust for Prometheus.", values="path of a PEM file"
)

# The platform's own services
POD_SERVICE_ACCOUNT = _add(
    "POD_SERVICE_ACCOUNT",
    "ServiceAccount of a platform service; admission lets it change objects that the platform manages.",
    set_by="the installer",
    read_by="admission",
    values="downward API spec.serviceAccountName",
    where="pods of the platform",
)
DYN_OPERATOR_ALLOW_GMS_SNAPSHOT = _of_platform(
    "DYN_OPERATOR_ALLOW_GMS_SNAPSHOT",
    "Allows checkpoints together with a GPU memory service, which admission refuses by default.",
    read_by="admission, pod-builder",
    values="`1`",
)
DCGM_METRICS_ENDPOINT_TEMPLATE = _of_platform(
    "DCGM_METRICS_ENDPOINT_TEMPLATE",
    "Address of the metrics of a DCGM exporter's pod.",
    read_by="planner (GPU discovery)",
    values="URL with `{POD_IP}`; `http://{POD_IP}:9400/metrics` by default",
)
