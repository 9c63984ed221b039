"""Numbers of GPUs that containers and replicas request, for all resource names of GPUs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dynamo_shared.api import device_claims, quantity
from dynamo_shared.api.containers import main_container
from dynamo_shared.api.role_templates import templates
from dynamo_shared.api.untrusted import reading
from dynamo_shared.api.wording import many

NVIDIA_GPU = "nvidia.com/gpu"
#: Limit of the GPUs of one replica, because the schema of a graph accepts any quantity. Negative quantities count as 0.
MAX_GPUS = 1_000_000


def count(container: Mapping[str, Any]) -> int:
    """GPUs of a container: from requests before limits, from `nvidia.com/gpu` before other resource names of GPUs."""
    resources = container.get("resources")
    if not resources:
        return 0
    amounts = [resources.get("requests") or {}, resources.get("limits") or {}]
    for matches in (lambda name: name == NVIDIA_GPU, is_gpu):
        for amount in amounts:
            for name in sorted(amount):
                if matches(name) and (number := _whole(amount[name])):
                    return number
    return 0


def words(count: int) -> str:
    """A number of GPUs, for messages."""
    return many(count, "GPU")


@dataclass(frozen=True, slots=True)
class ReplicaGpus:
    """GPUs of replicas of a component."""

    own: int = 0
    """GPUs of each replica"""
    shared: Mapping[str, int] = field(default_factory=dict)
    """GPUs that replicas share, by the name of the ResourceClaim"""
    unknown: tuple[device_claims.UncountedClaim, ...] = ()
    """claims with an unknown number of GPUs"""

    @property
    def whole(self) -> int:
        """GPUs of one replica, with all GPUs that it shares with others."""
        return min(MAX_GPUS, self.own + sum(self.shared.values()))


def of_replica(component: Mapping[str, Any], claims: device_claims.KnownClaims | None = None) -> ReplicaGpus:
    """GPUs of a replica of a v1beta1 component (as JSON): of its containers and claims, on all its nodes.

    `claims` are the known claims; None, for callers that read only the graph, means that only containers count.
    """

    def of_pod(template: Mapping[str, Any]) -> device_claims.ClaimedGpus:
        pod = template.get("spec") or {}
        claimed = device_claims.ClaimedGpus() if claims is None else device_claims.of_pods(pod, claims)
        return replace(claimed, own=claimed.own + _of_containers(pod))

    return _of_all(component, of_pod)


@dataclass(frozen=True, slots=True)
class GpuShape:
    """GPUs of a component, as planners of Dynamo 1.6 and later read them in the status of its graph."""

    engine: int
    """GPUs of the engine of a replica, on all its nodes"""
    replica: int
    """GPUs of a replica: of its engine and all other containers"""


def shape(component: Mapping[str, Any], template: device_claims.Lookup, claim: device_claims.Lookup) -> GpuShape | None:
    """GPUs of a v1beta1 component, with claimed GPUs; None if a claim does not state the number.

    Only requested GPUs count, not allocated ones, which would change while pods start.
    """

    def without_allocation(name: str) -> Mapping[str, Any] | None:
        obj = claim(name)
        return None if obj is None else {"spec": obj.get("spec") or {}}

    def of_main(pod_template: Mapping[str, Any]) -> device_claims.ClaimedGpus:
        main = main_container(pod_template) or {}
        claimed = device_claims.of_container(pod_template.get("spec") or {}, main, template, claim)
        return replace(claimed, own=claimed.own + count(main))

    engine = _of_all(component, of_main)
    replica = of_replica(component, device_claims.KnownClaims(template, without_allocation))
    return None if engine.unknown or replica.unknown else GpuShape(engine.whole, replica.whole)


def nodes(component: Mapping[str, Any]) -> int:
    """Nodes of one replica of a v1beta1 component."""
    return max(1, reading.nodes(component.get("multinode")))


def is_gpu(name: str) -> bool:
    """Whether a resource is a GPU or a slice of one."""
    return (
        name in ("gpu", "nvidia/gpu")
        or name.endswith("/gpu")
        or ".com/gpu" in name
        or name.startswith("mig-")
        or "/mig-" in name
    )


def _of_all(
    component: Mapping[str, Any], of_pod: Callable[[Mapping[str, Any]], device_claims.ClaimedGpus]
) -> ReplicaGpus:
    """GPUs of a replica of a component, from the GPUs of a pod of each of its templates."""
    own, shared, unknown = 0, dict[str, int](), dict[device_claims.UncountedClaim, None]()
    for template, pods in templates(component):
        counted = of_pod(template)
        own += pods * counted.own
        # Roles may use different requests of a shared claim.
        shared |= {name: min(MAX_GPUS, max(number, shared.get(name, 0))) for name, number in counted.shared.items()}
        # A dict, because a template may name thousands of claims.
        unknown |= dict.fromkeys(counted.unknown)
    return ReplicaGpus(min(MAX_GPUS, own), shared, tuple(unknown))


def _of_containers(pod: Mapping[str, Any]) -> int:
    """GPUs of the containers of a pod's spec, as the scheduler counts them: init containers run one after the other.

    Sidecars continue to run, so their GPUs are added to those of all later containers.
    """
    sidecars, largest = 0, 0
    for each in pod.get("initContainers") or ():
        number = count(each)
        largest = max(largest, sidecars + number)
        sidecars += number if each.get("restartPolicy") == "Always" else 0
    return max(largest, sidecars + sum(count(each) for each in pod.get("containers") or ()))


def _whole(amount: Any) -> int:
    try:
        return min(MAX_GPUS, max(0, int(quantity.parse(amount))))
    except quantity.InvalidQuantity:
        return 0
