"""What rendering must know of the installation and the cluster, in addition to the object itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamo_shared.api.device_claims import ClaimedGpus

from dynamo_pod_builder.render.access.pull_secrets import NO_PULL_SECRETS, PullSecrets
from dynamo_pod_builder.render.checkpoint.target import Restore
from dynamo_pod_builder.render.workloads.topology import DEFAULT_FIELDS

#: Service account of pods in a namespace that has no account labelled for component pods.
DEFAULT_ACCOUNT = "default"
#: Secret of TensorRT-LLM's ssh keys if the settings name none: the name in the values of Dynamo's chart.
SSH_SECRET = "mpi-run-ssh-secret"  # noqa: S105 - its name


_NO_GPUS = ClaimedGpus()


@dataclass(frozen=True, slots=True)
class RoleClaims:
    """GPUs that the main containers of a multi-node component claim instead of counting them."""

    #: Claims of the pods that serve.
    serving: ClaimedGpus = _NO_GPUS
    #: Claims of the workers of a replica; the same, unless a role has its own pod template.
    workers: ClaimedGpus = _NO_GPUS


NO_CLAIMS = RoleClaims()


@dataclass(frozen=True, slots=True)
class IngressDefaults:
    """The default external routes of frontends; if empty, there are none."""

    class_name: str = ""
    virtual_service_gateway: str = ""
    tls_secret: str = ""
    host_suffix: str = ""


@dataclass(frozen=True, slots=True)
class GatewayDefaults:
    """The Gateway for the HTTPRoutes of graphs; unused without a name, or if the cluster does not serve `routes`."""

    name: str = ""
    namespace: str = ""
    routes: bool = False


@dataclass(frozen=True, slots=True)
class Mesh:
    """How a service mesh talks to endpoint pickers; `destination_rules`: whether the mesh is Istio and is installed."""

    destination_rules: bool = False
    tls_mode: str = "SIMPLE"
    insecure_skip_verify: bool = True
    #: Files of the mesh's proxy for mode MUTUAL.
    client_certificate: str = ""
    private_key: str = ""
    ca_certificates: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointDefaults:
    """How checkpoints are taken and where they are stored."""

    enabled: bool = False
    #: Seccomp profile of nodes for pods of checkpoints, or "".
    profile: str = ""
    #: Claim that holds checkpoints, and its directory; "" if each namespace's snapshot agent defines them.
    claim: str = ""
    base_path: str = ""
    #: Whether the claim is created, and how.
    create: bool = False
    size: str = ""
    storage_class: str = ""
    access_mode: str = "ReadWriteMany"
    #: Whether engines with a GPU memory service may be checkpointed.
    gpu_memory: bool = False
    #: Whether the cluster serves the kinds of the Snapshot operator.
    snapshots: bool = False


@dataclass(frozen=True, slots=True)
class AddedContainer:
    """Requests and limits of a container that the platform adds to pods, by resource."""

    requests: tuple[tuple[str, int | str], ...] = ()
    limits: tuple[tuple[str, int | str], ...] = ()

    def resources(self) -> dict[str, dict[str, int | str]]:
        """The `resources` of a container; empty without requests and limits."""
        given = {"requests": dict(self.requests), "limits": dict(self.limits)}
        return {name: amounts for name, amounts in given.items() if amounts}


_UNBOUNDED = AddedContainer()


@dataclass(frozen=True, slots=True)
class RenderConfig:
    """Settings that affect rendered objects; hashable, so that what depends only on them is computed once."""

    #: `kubernetes` or `etcd`; the annotation nvidia.com/dynamo-discovery-backend overrides it for a graph.
    discovery_backend: str = "kubernetes"
    #: Names and values of variables with addresses of the infrastructure, and with TLS files for connections between
    #: workloads and to their NATS.
    infrastructure: tuple[tuple[str, str], ...] = ()
    #: Names and values of variables that all graphs have, unless a graph overrides them.
    graph_env: tuple[tuple[str, str], ...] = ()
    #: ClusterRoles to which planners and endpoint pickers are bound; "" for Roles in the graph's namespace.
    planner_cluster_role: str = ""
    epp_cluster_role: str = ""
    #: Recorded as the origin version of a graph without one.
    operator_version: str = ""
    #: The only namespace that the platform serves; "" for all. If set, the chart creates the planner's access.
    restricted_namespace: str = ""
    #: Secret of the key pair with which TensorRT-LLM's nodes reach each other.
    ssh_secret: str = SSH_SECRET
    #: Resources of added containers that end before the engine starts, and of the server of a GPU memory service.
    init_container: AddedContainer = _UNBOUNDED
    memory_server: AddedContainer = _UNBOUNDED
    #: Whether LeaderWorkerSets are available for replicas that span several nodes.
    leader_worker_sets: bool = False
    #: Whether graphs become PodCliqueSets, and how long Grove lets a gang be incomplete. Seconds; 0: Grove's default.
    grove: bool = False
    grove_termination_delay: float = 900.0
    ingress: IngressDefaults = IngressDefaults()
    gateway: GatewayDefaults = GatewayDefaults()
    mesh: Mesh = Mesh()
    checkpoints: CheckpointDefaults = CheckpointDefaults()
    #: Fields of a topology constraint that the cluster's Grove serves.
    topology_fields: frozenset[str] = DEFAULT_FIELDS
    #: Queues of the KAI scheduler, if it places the pods of graphs on Grove; otherwise None.
    kai_queues: frozenset[str] | None = None
    #: Whether graphs may wait in queues of the Volcano scheduler.
    volcano: bool = True
    #: Whether VirtualServices can be created.
    virtual_services: bool = False
    #: Whether containers can claim and share GPUs: Dynamic Resource Allocation.
    device_claims: bool = False
    #: Whether InferencePools can be created; without one, nothing would call an endpoint picker.
    inference_pools: bool = False


@dataclass(frozen=True, slots=True)
class ObservedComponent:
    """The existing state of a component and its surroundings that decides how it is rendered."""

    #: The namespace's service account for component pods. Pods that need no access to Kubernetes discovery use it.
    service_account: str = DEFAULT_ACCOUNT
    #: `worker` if existing objects select prefill or decode pods by their type in v1alpha1; otherwise "".
    legacy_type: str = ""
    #: What its pods lack because earlier releases did not write it, and for which they must not be replaced: labels,
    #: and probe delays of a frontend sidecar, for example `front.readinessProbe`.
    lacking: frozenset[str] = frozenset()
    #: The namespace's secrets of image registries.
    pull_secrets: PullSecrets = NO_PULL_SECRETS
    #: What its pods start from; None if they load the model themselves.
    restore: Restore | None = None
    #: GPUs that its main containers claim instead of counting them.
    claimed: RoleClaims = NO_CLAIMS
    #: Name of its existing LeaderWorkerSet, or "".
    leader_worker_set: str = ""


NEW_COMPONENT = ObservedComponent()


@dataclass(frozen=True, slots=True)
class RunningPods:
    """The number of pods of a component, and those of their annotations that concern a start from a PodSnapshot."""

    replicas: int
    candidate: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObservedGraph:
    """The existing state of a graph that must be kept."""

    #: backendFramework of the existing component deployments, by name of the DCD: the field is immutable.
    backends: Mapping[str, str] = field(default_factory=dict)
    #: Cliques of the existing PodCliqueSet, whose order is kept.
    cliques: tuple[str, ...] = ()
    #: Component types that its pods have from v1alpha1, by component: `ObservedComponent.legacy_type`.
    legacy_types: Mapping[str, str] = field(default_factory=dict)
    #: Parts that its cliques lack, by component: `ObservedComponent.lacking`.
    lacking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Fields in the topology constraints of the existing PodCliqueSet.
    topology_fields: frozenset[str] = frozenset()
    #: Worker hash that its cliques must have on Grove, or "".
    generation: str = ""
    #: The checkpoints that pods start from, by component.
    restores: Mapping[str, Restore] = field(default_factory=dict)
    #: Annotations of pods that may start from a PodSnapshot, by component.
    candidates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Components whose pods must not start before their checkpoint is ready.
    waiting: frozenset[str] = frozenset()
    #: Running pods of components that start from a checkpoint, by component (Grove) or component deployment.
    running: Mapping[str, RunningPods] = field(default_factory=dict)
    #: GPUs that the main containers claim, by component.
    claimed: Mapping[str, RoleClaims] = field(default_factory=dict)
    #: The surroundings of each of its components.
    around: ObservedComponent = NEW_COMPONENT


NEW_GRAPH = ObservedGraph()
