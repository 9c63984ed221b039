"""The simulation interface of estimates and replays, which the profiler and the planner implement.

Services do not import each other, so the process that composes all of them passes the implementation.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dynamo_shared.api.device_claims import KnownClaims
from dynamo_shared.api.objects import KubeObject

from dynamo_dynadmin.api.traffic import TrafficStep

NO_SIMULATION = "this process has no simulation: install dynamo-ctl[planner] with dynadmin"

Report = Callable[[str, Any], None]


class NotSimulated(Exception):
    """An estimate or a replay is not possible; the text names the reason and the remedy.

    `field` is the cause: a field of a request's spec, or a key of the changes.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCase:
    """The input of a replay."""

    graph: KubeObject
    config_map: KubeObject | None
    """with the PlannerConfig"""
    profile_map: KubeObject | None
    pods: Sequence[KubeObject]
    """the graph's pods that the caller may list: they provide the start-up time"""
    claims: KnownClaims | None
    """without pods; None if the caller may not read them: then only GPUs of containers count"""
    changes: Mapping[str, Any]
    steps: Sequence[TrafficStep]
    replicas: Mapping[str, int]
    """by pool, at the start"""
    startup: float | None
    """seconds; None: measured from the pods"""


class Simulation(Protocol):
    """Simulates in worker processes. Cancellation stops the work."""

    async def estimate(self, manifest: KubeObject, nodes: Sequence[KubeObject], report: Report) -> dict[str, Any]:
        """The estimate of a DynamoGraphDeploymentRequest; `report` receives `progress` and earlier `estimate`s.
        NotSimulated.
        """

    def config_maps(self, graph: KubeObject) -> tuple[str, str]:
        """Names of the ConfigMaps with the graph's PlannerConfig and with its profile. Raises NotSimulated."""

    async def replay(self, asked: ReplayCase) -> dict[str, Any]:
        """`current`, `changed`, `profile` and `notes` of the answer. Raises NotSimulated."""

    async def close(self) -> None:
        """Stop the worker processes."""
