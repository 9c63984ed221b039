"""What rules know beyond the object, and what they find."""

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_shared.api.errors import FieldError

_SERVICE_ACCOUNT = "system:serviceaccount:"
_PLANNER_ACCOUNT = "planner-serviceaccount"


@dataclass(frozen=True, slots=True)
class Facts:
    """Who asks, and what the cluster and the platform can do. A rule about a fact that is None is not applied."""

    user: str = ""
    """Username of who writes; "" where the user is unknown."""
    operators: frozenset[str] = frozenset()
    """Usernames of the platform's own services."""
    adapter_replicas: Mapping[str, int] | None = None
    """Numbers that the adapters of the graph have, by component."""
    grove: bool | None = None
    """Whether graphs are run by Grove, where they do not opt out."""
    leader_worker_sets: bool | None = None
    """Whether replicas that span nodes may be LeaderWorkerSets."""
    inference_pools: bool | None = None
    """Whether the cluster serves the API of InferencePools."""
    checkpoints: bool | None = None
    """Whether the platform has checkpoints."""
    gms_snapshot: bool = False
    """Whether engines with a GPU memory service may be checkpointed."""
    cluster_wide: bool = True
    """Whether the platform manages all namespaces."""
    gpu_discovery: bool = True
    """Whether GPUs are discovered on nodes."""
    topologies: Mapping[str, tuple[str, ...]] | None = None
    """ClusterTopologyBindings, or ClusterTopologies, with their domains, broad to narrow."""
    topology_kind: str = "ClusterTopology"
    """Kind of these: Grove calls it ClusterTopologyBinding from 0.1.0-alpha.11 on."""

    @property
    def may_set_adapted_replicas(self) -> bool:
        """Whether the user may change replicas that an adapter owns: the platform, or a planner of any namespace."""
        if self.user and self.user in self.operators:
            return True
        namespace, _, account = self.user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return self.user.startswith(_SERVICE_ACCOUNT) and bool(namespace) and account == _PLANNER_ACCOUNT


@dataclass(frozen=True, slots=True)
class Findings:
    """What is wrong with an object, and what its author should know though it is accepted."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
