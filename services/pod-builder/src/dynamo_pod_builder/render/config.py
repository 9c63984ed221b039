"""What rendering must know of the installation and of the cluster, besides the object itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dynamo_shared.api.device_claims import ClaimedGpus

from dynamo_pod_builder.render.access.pull_secrets import NO_PULL_SECRETS, PullSecrets
from dynamo_pod_builder.render.checkpoint.target import Restore
from dynamo_pod_builder.render.workloads.topology import DEFAULT_FIELDS

#: Service account of pods in a namespace where none is labelled for component pods.
DEFAULT_ACCOUNT = "default"
#: Secret of TensorRT-LLM's ssh keys where the settings name none: the name in the values of Dynamo's chart.
SSH_SECRET = "mpi-run-ssh-secret"  # noqa: S105 - its name


_NO_GPUS = ClaimedGpus()


@dataclass(frozen=True, slots=True)
class RoleClaims:
    """GPUs that main containers of a component on several nodes claim, in place of counting them."""

    #: Those of the pods that serve.
    serving: ClaimedGpus = _NO_GPUS
    #: Those of the workers of a replica; the same, unless a role has a pod template of its own.
    workers: ClaimedGpus = _NO_GPUS


NO_CLAIMS = RoleClaims()


@dataclass(frozen=True, slots=True)
class IngressDefaults:
    """How frontends are reached from outside where nothing else is said; empty: they are not."""

    class_name: str = ""
    virtual_service_gateway: str = ""
    tls_secret: str = ""
    host_suffix: str = ""


@dataclass(frozen=True, slots=True)
class GatewayDefaults:
    """The Gateway that graphs attach their HTTPRoute to; none without a name, or where the cluster has no `routes`."""

    name: str = ""
    namespace: str = ""
    routes: bool = False


@dataclass(frozen=True, slots=True)
class Mesh:
    """How a service mesh talks to endpoint pickers; `destination_rules` where it is Istio and is installed."""

    destination_rules: bool = False
    tls_mode: str = "SIMPLE"
    insecure_skip_verify: bool = True
    #: Files of the mesh's proxy, for mode MUTUAL.
    client_certificate: str = ""
    private_key: str = ""
    ca_certificates: str = ""


@dataclass(frozen=True, slots=True)
class CheckpointDefaults:
    """How checkpoints are taken, and where they are kept."""

    enabled: bool = False
    #: Seccomp profile of nodes for pods of checkpoints; "" for none.
    profile: str = ""
    #: Claim that holds checkpoints and its directory; "" where the snapshot agent of each namespace says.
    claim: str = ""
    base_path: str = ""
    #: Whether the claim is made, and how.
    create: bool = False
    size: str = ""
    storage_class: str = ""
    access_mode: str = "ReadWriteMany"
    #: Whether engines with a GPU memory service may be checkpointed.
    gpu_memory: bool = False
    #: Whether the cluster has the kinds of the Snapshot operator.
    snapshots: bool = False


@dataclass(frozen=True, slots=True)
class AddedContainer:
    """Requests and limits of a container that is added to pods, by resource."""

    requests: tuple[tuple[str, int | str], ...] = ()
    limits: tuple[tuple[str, int | str], ...] = ()

    def resources(self) -> dict[str, dict[str, int | str]]:
        """As a container has them; empty where nothing is said."""
        given = {"requests": dict(self.requests), "limits": dict(self.limits)}
        return {name: amounts for name, amounts in given.items() if amounts}


_UNBOUNDED = AddedContainer()


@dataclass(frozen=True, slots=True)
class RenderConfig:
    """Settings that show up in rendered objects; hashable, so that what follows from it alone is computed once."""

    #: `kubernetes` or `etcd`; the annotation nvidia.com/dynamo-discovery-backend overrides it for a graph.
    discovery_backend: str = "kubernetes"
    #: Addresses given to pods as environment variables; an empty one is not given.
    nats_address: str = ""
    etcd_address: str = ""
    model_express_url: str = ""
    prometheus_endpoint: str = ""
    #: Variables and values of TLS between workloads, and to their NATS; the empty ones are not given.
    transport_tls: tuple[tuple[str, str], ...] = ()
    #: Names and values of the variables that all graphs have, unless they have others.
    graph_env: tuple[tuple[str, str], ...] = ()
    #: ClusterRoles that planners and endpoint pickers are bound to; "" for own Roles in the graph's namespace.
    planner_cluster_role: str = ""
    epp_cluster_role: str = ""
    #: Recorded as the origin version of a graph that carries none.
    operator_version: str = ""
    #: The one namespace the platform serves; "" for all. There the chart makes the planner's access, not we.
    restricted_namespace: str = ""
    #: Secret of the key pair that TensorRT-LLM's nodes reach each other with.
    ssh_secret: str = SSH_SECRET
    #: What containers are given that end before the engine starts, and what the server of a GPU memory service is.
    init_container: AddedContainer = _UNBOUNDED
    memory_server: AddedContainer = _UNBOUNDED
    #: Whether replicas can span several nodes, as LeaderWorkerSets.
    leader_worker_sets: bool = False
    #: Whether graphs become PodCliqueSets, and how long Grove lets a gang be incomplete. Seconds; 0: as Grove has it.
    grove: bool = False
    grove_termination_delay: float = 900.0
    ingress: IngressDefaults = IngressDefaults()
    gateway: GatewayDefaults = GatewayDefaults()
    mesh: Mesh = Mesh()
    checkpoints: CheckpointDefaults = CheckpointDefaults()
    #: Fields of a topology constraint that the cluster's Grove serves.
    topology_fields: frozenset[str] = DEFAULT_FIELDS
    #: Queues of the KAI scheduler, which places the pods of graphs on Grove; None where it does not.
    kai_queues: frozenset[str] | None = None
    #: Whether graphs may wait in queues of the Volcano scheduler.
    volcano: bool = True
    #: Whether VirtualServices can be made.
    virtual_services: bool = False
    #: Whether GPUs can be claimed for containers to share them: Dynamic Resource Allocation.
    device_claims: bool = False
    #: Whether InferencePools can be made; without one nothing would ever ask an endpoint picker.
    inference_pools: bool = False


@dataclass(frozen=True, slots=True)
class ObservedComponent:
    """What exists already of a component, or around it, and decides how it is rendered."""

    #: For pods that need no access to Kubernetes discovery: the namespace's service account for component pods.
    service_account: str = DEFAULT_ACCOUNT
    #: `worker` where existing objects select prefill or decode pods by the type that they had as v1alpha1; "" otherwise.
    legacy_type: str = ""
    #: What its pods lack, because earlier releases did not write it: that alone must not replace them. Labels, and delays of the
    #: probes of containers next to main, as `front.readinessProbe`.
    lacking: frozenset[str] = frozenset()
    #: The namespace's secrets of image registries.
    pull_secrets: PullSecrets = NO_PULL_SECRETS
    #: What its pods start from; None where they load the model themselves.
    restore: Restore | None = None
    #: GPUs that its main containers claim, in place of counting them.
    claimed: RoleClaims = NO_CLAIMS
    #: Name of the LeaderWorkerSet that it has; "" where it has none.
    leader_worker_set: str = ""


NEW_COMPONENT = ObservedComponent()


@dataclass(frozen=True, slots=True)
class RunningPods:
    """How many pods a component has, and which of the annotations of pods that may start from a PodSnapshot."""

    replicas: int
    candidate: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObservedGraph:
    """What exists already of a graph and must be kept."""

    #: backendFramework of the existing component deployments, by the name of the DCD: the field is immutable.
    backends: Mapping[str, str] = field(default_factory=dict)
    #: Cliques of the existing PodCliqueSet, in their order, which is kept.
    cliques: tuple[str, ...] = ()
    #: Component types that its pods carry from of old, by component: `ObservedComponent.legacy_type`.
    legacy_types: Mapping[str, str] = field(default_factory=dict)
    #: What its cliques lack, by component: `ObservedComponent.lacking`.
    lacking: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Fields that the topology constraints of the existing PodCliqueSet have.
    topology_fields: frozenset[str] = frozenset()
    #: Hash of the workers that its cliques shall carry on Grove; "" for none.
    generation: str = ""
    #: What the pods of its components start from, by component.
    restores: Mapping[str, Restore] = field(default_factory=dict)
    #: Annotations of pods that may start from a PodSnapshot, by component.
    candidates: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    #: Components of which no pod starts before their checkpoint is ready.
    waiting: frozenset[str] = frozenset()
    #: What runs of the components that start from a checkpoint: by component on Grove, else by component deployment.
    running: Mapping[str, RunningPods] = field(default_factory=dict)
    #: GPUs that the main containers of its components claim, by component.
    claimed: Mapping[str, RoleClaims] = field(default_factory=dict)
    #: Around each of its components.
    around: ObservedComponent = NEW_COMPONENT


NEW_GRAPH = ObservedGraph()
