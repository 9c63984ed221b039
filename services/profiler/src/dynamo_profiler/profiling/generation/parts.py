"""What a generated graph is made from, in one place."""

from dataclasses import dataclass, field

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec
from dynamo_shared.runtime.settings.planner import Planner

from dynamo_profiler.profiling.models import ModelArchitecture
from dynamo_profiler.profiling.objective import ServingObjective

Curves = dict[str, dict[str, list[float]]]
"""arrays by file of the profile"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationInputs:
    """All that a layout is not: the request, what it asks for, the platform's settings."""

    name: str
    """of the request"""
    namespace: str
    spec: DynamoGraphDeploymentRequestSpec
    objective: ServingObjective
    settings: Planner
    version: str
    """of Dynamo, where the request names no image"""
    model: ModelArchitecture | None = None
    """what is known of it"""
    product: str | None = None
    """label nvidia.com/gpu.product of the nodes that are planned for, where they are known"""
    workers_image: str = ""
    """of workers, where it is not that of the request"""
    interpolation: KubeObject | None = None
    """`aic_interpolation` of a PlannerConfig, without its engines"""
    curves: Curves | None = None
    kv_tokens: int | None = field(default=None)
    """KV cache of the decode engine, tokens"""

    @property
    def mocked(self) -> bool:
        """Whether engines are simulated."""
        features = self.spec.features
        return bool(features and features.mocker and features.mocker.enabled)
