"""All inputs of a generated graph."""

from dataclasses import dataclass

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.runtime.settings.planner import Planner

from dynamo_profiler.profiling.models import ModelArchitecture
from dynamo_profiler.profiling.objective import ServingObjective
from dynamo_profiler.profiling.results import ProfilingRequest

Curves = dict[str, dict[str, list[float]]]
"""File of the profile -> its arrays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationInputs:
    """All inputs except the layout: the request, its objective, the platform's settings."""

    request: ProfilingRequest
    objective: ServingObjective
    settings: Planner
    version: str
    """version of Dynamo if the request names no image"""
    model: ModelArchitecture | None = None
    """known facts about the model"""
    interpolation: KubeObject | None = None
    """`aic_interpolation` of a PlannerConfig, without the engines"""
    curves: Curves | None = None
    kv_tokens: int | None = None
    """KV cache of the decode engine, tokens"""

    @property
    def mocked(self) -> bool:
        """Whether engines are simulated."""
        features = self.request.spec.features
        return bool(features and features.mocker and features.mocker.enabled)
