"""What rules know besides the object, and what they return."""

from collections.abc import Mapping
from dataclasses import dataclass

from dynamo_shared.api.errors import FieldError

_SERVICE_ACCOUNT = "system:serviceaccount:"
_PLANNER_ACCOUNT = "planner-serviceaccount"


@dataclass(frozen=True, slots=True)
class Facts:
    """The user of the request, and the capabilities of cluster and platform. A rule is skipped if its fact is None."""

    user: str = ""
    """Username of the author of the change; "" if unknown."""
    operators: frozenset[str] = frozenset()
    """Usernames of the platform's own services."""
    adapter_replicas: Mapping[str, int] | None = None
    """Replicas that the adapters of the graph set, by component."""
    grove: bool | None = None
    """Whether Grove runs graphs that do not opt out."""
    leader_worker_sets: bool | None = None
    """Whether replicas that span nodes can run as LeaderWorkerSets."""
    inference_pools: bool | None = None
    """Whether the cluster serves the API of InferencePools."""
    checkpoints: bool | None = None
    """Whether checkpoints are enabled on the platform."""
    gms_snapshot: bool = False
    """Whether engines with a GPU memory service may have checkpoints."""
    cluster_wide: bool = True
    """Whether the platform manages all namespaces."""
    gpu_discovery: bool = True
    """Whether the platform discovers GPUs on nodes."""
    topologies: Mapping[str, tuple[str, ...]] | None = None
    """ClusterTopologyBindings or ClusterTopologies, each with its domains from broad to narrow."""
    topology_kind: str = "ClusterTopology"
    """Kind of the topologies: ClusterTopologyBinding since Grove 0.1.0-alpha.11."""

    @property
    def may_set_adapted_replicas(self) -> bool:
        """Whether the user may change replicas that an adapter owns: the platform's services, and planners of any namespace."""
        if self.user and self.user in self.operators:
            return True
        namespace, _, account = self.user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return self.user.startswith(_SERVICE_ACCOUNT) and bool(namespace) and account == _PLANNER_ACCOUNT


@dataclass(frozen=True, slots=True)
class Findings:
    """Errors of an object, and warnings for its author if it is accepted."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()
