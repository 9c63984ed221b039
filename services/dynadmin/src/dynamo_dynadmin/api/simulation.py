"""What estimates and replays ask of simulations, which are the profiler's and the planner's.

A service imports no other, so the process that composes all of them passes it here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dynamo_shared.api.objects import KubeObject

from dynamo_dynadmin.api.traffic import TrafficStep

NO_SIMULATION = "this process has no simulation: run dynadmin where dynamo-ctl[planner] is installed"

Report = Callable[[str, Any], None]


class NotSimulated(Exception):
    """Nothing can be expected or replayed; the text says why, and what to do.

    `field` is the one that is to blame: of a request's spec, or a key of the changes.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCase:
    """What is replayed."""

    graph: KubeObject
    config_map: KubeObject | None
    """with the PlannerConfig"""
    profile_map: KubeObject | None
    pods: Sequence[KubeObject]
    """of the graph, as far as the caller may see them: how long their start took"""
    changes: Mapping[str, Any]
    steps: Sequence[TrafficStep]
    replicas: Mapping[str, int]
    """by pool, at the beginning"""
    startup: float | None
    """seconds; None: as the pods say"""


class Simulation(Protocol):
    """Simulates in worker processes. Cancelling ends the work."""

    async def estimate(self, manifest: KubeObject, nodes: Sequence[KubeObject], report: Report) -> dict[str, Any]:
        """The estimate of a DynamoGraphDeploymentRequest; `report` gets `progress` and earlier `estimate`s. NotSimulated."""

    def config_maps(self, graph: KubeObject) -> tuple[str, str]:
        """Names of the ConfigMaps with the graph's PlannerConfig and with its profile. NotSimulated."""

    async def replay(self, asked: ReplayCase) -> dict[str, Any]:
        """`current`, `changed`, `profile` and `notes` of the answer. NotSimulated."""

    async def close(self) -> None:
        """End what works for it."""
