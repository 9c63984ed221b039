"""Inputs and outputs of profiling."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, Figures, ProfilingPhase

Progress: TypeAlias = Callable[[ProfilingPhase, str], None]
"""Receives the phase and a sentence for users; must not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilingRequest:
    """A request with complete hardware: `gpu_sku`, `total_gpus` and `num_gpus_per_node` are known."""

    name: str
    namespace: str
    spec: DynamoGraphDeploymentRequestSpec
    gpu_product: str | None = None
    """label `nvidia.com/gpu.product` of the nodes to plan for; if set, engines run only on these nodes"""
    workers_image: str = ""
    """image of workers; "": the request's image, or the platform's"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentCandidate:
    """A deployment with its expected figures."""

    figures: Figures
    """always has backend, serving and gpus; has a latency or rate only if known. meets_sla is None if unknown: nothing
    was simulated, or the profiler measured and does not report it
    """
    parallelism: dict[str, dict[str, int]]
    """by role (`prefill`, `decode`, or `agg`): replicas, tp, pp, dp, moe_tp, moe_ep, batch_size, gpus of one replica"""
    dgd: KubeObject
    """the v1beta1 DynamoGraphDeployment, ready to be created"""
    config_maps: tuple[KubeObject, ...] = ()
    """ConfigMaps that the graph reads"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Information on a result for the user: `NaiveConfiguration`, `ObjectiveNotMet`, ... Reported by a condition and an
    event.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilingResult:
    """The selected candidate, and the Pareto front from which it was selected, best first."""

    selected: DeploymentCandidate
    pareto: tuple[DeploymentCandidate, ...] = ()
    remarks: tuple[Remark, ...] = ()
    source: str = "aiconfigurator"
    """`aiconfigurator`, `naive`, or `thorough`"""


class ProfilingFailed(Exception):
    """Profiling has no result. The reason is a CamelCase token for a condition; the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


ProfileRequest: TypeAlias = Callable[[ProfilingRequest, Progress], Awaitable[ProfilingResult]]
"""Computes the best deployment for a request. Raises ProfilingFailed if there is none. Cancelling it ends the work."""
