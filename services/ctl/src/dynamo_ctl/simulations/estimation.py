"""The profiler's simulation for services that may not import it: estimates of a request, and replays of a graph."""

import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from dynamo_dynadmin.api.simulation import NotSimulated, ReplayCase
from dynamo_planner.planning.plans import config_map_of
from dynamo_profiler.profiling.models import known_model
from dynamo_profiler.profiling.naive import naive
from dynamo_profiler.profiling.objective import objective_of
from dynamo_profiler.profiling.rapid import RapidProfiler
from dynamo_profiler.profiling.results import DeploymentCandidate, ProfilingFailed, ProfilingRequest
from dynamo_profiler.requests import hardware
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.planner_names import profile_data_name
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, ProfilingPhase
from dynamo_shared.runtime import Settings

from dynamo_ctl.simulations.worker import COMMAND


class Estimation:
    """Estimates with rapid profiling, and replays. Worker processes start with the first estimate, and end when idle."""

    def __init__(self, settings: Settings | None = None) -> None:
        chosen = settings or Settings()
        self._settings = chosen.platform.planner
        self._profiler = RapidProfiler(self._settings, chosen.platform.version, child=COMMAND)

    async def estimate(
        self, manifest: KubeObject, nodes: Sequence[KubeObject], report: Callable[[str, Any], None]
    ) -> dict[str, Any]:
        """The selected deployment and the Pareto front, with figures. Raises NotSimulated."""
        spec = DynamoGraphDeploymentRequestSpec.model_validate(manifest["spec"])
        try:
            plan = hardware.complete(
                spec.hardware,
                hardware.kinds(hardware.nodes_with_labels(nodes)),
                cap=self._settings.gpu_cap,
                source=hardware.NODE_LABELS,
            )
            request = ProfilingRequest(
                name=manifest["metadata"]["name"],
                namespace=manifest["metadata"]["namespace"],
                spec=spec.model_copy(update={"hardware": plan.planned, "search_strategy": "rapid"}),
            )
            self._report_first(request, report)

            def progress(phase: ProfilingPhase, message: str) -> None:
                report("progress", {"phase": phase.value, "message": message})

            result = await self._profiler.run(request, progress)
        except hardware.HardwareUnknown as error:
            raise NotSimulated(str(error), "spec.hardware") from error
        except ProfilingFailed as error:
            field = str(error).partition(":")[0]
            raise NotSimulated(str(error), field if field.startswith("spec.") else "") from error
        return {
            "selected": _figures(result.selected),
            "pareto": [_figures(each) for each in result.pareto],
            "notes": [each.message for each in result.remarks],
            "source": result.source,
        }

    def _report_first(self, request: ProfilingRequest, report: Callable[[str, Any], None]) -> None:
        """Report the smallest engine whose memory holds the model, before the simulation."""
        try:
            objective = objective_of(request)
            layout = naive(known_model(objective.model, self._settings.rapid), objective, "not simulated yet").layout
        except ProfilingFailed:
            return
        figures = {"backend": layout.backend, "serving": layout.serving, "gpus": layout.gpus, "words": layout.words}
        selected = {**figures, "ttft": None, "itl": None}
        report("estimate", {"selected": selected, "pareto": [], "notes": [], "source": "naive"})

    def config_maps(self, graph: KubeObject) -> tuple[str, str]:
        """Names of the ConfigMaps with the graph's PlannerConfig and with its profile. Raises NotSimulated."""
        name = config_map_of(graph)
        if not name:
            raise NotSimulated(
                f"the planner service does not plan this graph: annotation {PLANNER_CONFIG} does not name a ConfigMap with "
                "a PlannerConfig"
            )
        return name, profile_data_name(name)

    async def replay(self, case: ReplayCase) -> dict[str, Any]:
        """Replay the traffic with the current PlannerConfig, and with changes. Raises NotSimulated."""
        # Planning imports numpy, which takes time, and only replays need it here.
        replays = await asyncio.to_thread(import_module, "dynamo_ctl.simulations.replays")
        answer: dict[str, Any] = await replays.replay(self._profiler.simulations, self._settings.rapid, case)
        return answer

    async def close(self) -> None:
        """End the worker processes."""
        await self._profiler.close()


def _figures(each: DeploymentCandidate) -> dict[str, Any]:
    return {**each.figures.model_dump(by_alias=True), "parallelism": each.parallelism}
