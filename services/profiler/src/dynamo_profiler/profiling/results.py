"""What profiling is asked and what it gives."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, Figures, ProfilingPhase

Progress: TypeAlias = Callable[[ProfilingPhase, str], None]
"""Called with the phase and one sentence for users; must not block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilingRequest:
    """A request whose hardware is complete: `gpu_sku`, `total_gpus` and `num_gpus_per_node` are known."""

    name: str
    namespace: str
    spec: DynamoGraphDeploymentRequestSpec
    gpu_product: str | None = None
    """label `nvidia.com/gpu.product` of the nodes that are planned for; where it is given, engines are kept to them"""
    workers_image: str = ""
    """image of workers; "": that of the request, or the platform's"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentCandidate:
    """A deployment with what it is expected to do."""

    figures: Figures
    """backend, serving and gpus always; a time or a rate where it is known. meets_sla is None where it is unknown: nothing was
    simulated, or the profiler measured and does not say"""
    parallelism: dict[str, dict[str, int]]
    """by role (`prefill`, `decode`, or `agg`): replicas, tp, pp, dp, moe_tp, moe_ep, batch_size, gpus of one replica"""
    dgd: KubeObject
    """the v1beta1 DynamoGraphDeployment, ready to be created"""
    config_maps: tuple[KubeObject, ...] = ()
    """that the graph reads"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What the user has to know of a result: `NaiveConfiguration`, `ObjectiveNotMet`, ... A condition and an event report it."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfilingResult:
    """The candidate that was selected, and the Pareto front that it was selected from, best first."""

    selected: DeploymentCandidate
    pareto: tuple[DeploymentCandidate, ...] = ()
    remarks: tuple[Remark, ...] = ()
    source: str = "aiconfigurator"
    """`aiconfigurator`, `naive`, or `thorough`"""


class ProfilingFailed(Exception):
    """Nothing can be offered; the reason is a CamelCase token for a condition, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


ProfileRequest: TypeAlias = Callable[[ProfilingRequest, Progress], Awaitable[ProfilingResult]]
"""The best deployment for a request; ProfilingFailed where there is no deployment at all. Cancelling it ends the work."""
