"""`POST .../replay`: simulates the traffic of a graph again, with its PlannerConfig as it is and with changes.

The planner's inputs (PlannerConfig, profile) are read with the caller's rights.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import KW_ONLY, dataclass

from aiohttp import web
from dynamo_shared.api.device_claims import KnownClaims
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.kube import get_if_present

from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.decisions import DecisionReader
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.api.replay_models import ReplayBody
from dynamo_dynadmin.api.simulation import NO_SIMULATION, NotSimulated, ReplayCase, Simulation
from dynamo_dynadmin.api.traffic import MOST_REQUESTS, ObservedTraffic, TrafficStep, observed
from dynamo_dynadmin.api.turns import CallerSlots
from dynamo_dynadmin.deploy.problems import FieldProblem, pointer
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError, validated
from dynamo_dynadmin.identity.access import ResourceAttributes

#: Decisions that are read for the traffic; more than the maximum steps of a replay.
_READ = 2000


@dataclass(eq=False)
class TrafficReplays:
    """Answers replays. `claims` reads those of the call's namespace. `within` limits the time of a replay; seconds."""

    decisions: DecisionReader
    details: Details
    reading: CollectionReader
    claims: Callable[[Call], Awaitable[KnownClaims | None]]
    _: KW_ONLY
    simulation: Simulation | None
    turns: CallerSlots
    within: float

    async def replay(self, call: Call) -> web.StreamResponse:
        """Both runs, and the assumptions."""
        if self.simulation is None:
            raise ProblemError("unavailable", NO_SIMULATION)
        body = validated(ReplayBody, await call.object())
        graph = await call.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(call.namespace, call.name))
        started = time.monotonic()
        try:
            config, profile = self.simulation.config_maps(graph)
            async with self.turns.taken(call.caller.limit_key), asyncio.timeout(self.within):
                traffic = await self._traffic(call, graph, body)
                asked = ReplayCase(
                    graph=graph,
                    config_map=await get_if_present(call.kube, CONFIG_MAPS, ObjectKey(call.namespace, config)),
                    profile_map=await get_if_present(call.kube, CONFIG_MAPS, ObjectKey(call.namespace, profile)),
                    pods=await self._pods(call),
                    claims=await self.claims(call),
                    changes=body.changes.model_dump(mode="json", exclude_unset=True),
                    steps=traffic.steps,
                    replicas=traffic.replicas,
                    startup=body.startup_seconds,
                )
                result = await self.simulation.replay(asked)
        except NotSimulated as error:
            if not error.field:
                raise ProblemError("conflict", str(error)) from None
            place = pointer(("changes", error.field))
            raise ProblemError("invalid", str(error), errors=[FieldProblem(place, str(error))]) from None
        except TimeoutError:
            text = f"no replay within {self.within:g} s; try again, or replay fewer seconds"
            raise ProblemError("unavailable", text, retry_after=5) from None
        steps = [
            {
                "requestsPerSecond": round(each.rate, 4),
                "seconds": round(each.seconds, 3),
                "isl": each.isl,
                "osl": each.osl,
            }
            for each in traffic.steps
        ]
        return call.answer(
            {
                **result,
                "traffic": steps,
                "notes": [*traffic.remarks, *result["notes"]],
                "seconds": round(time.monotonic() - started, 3),
            }
        )

    async def _traffic(self, call: Call, graph: KubeObject, body: ReplayBody) -> ObservedTraffic:
        if body.trace is not None:
            steps = [
                TrafficStep(rate=each.requests_per_second, seconds=each.seconds, isl=each.isl, osl=each.osl)
                for each in body.trace
            ]
            if sum(each.requests for each in steps) > MOST_REQUESTS:
                text = f"has more than {MOST_REQUESTS:,} requests; give lower rates or fewer seconds"
                raise ProblemError("invalid", f"trace {text}", errors=[FieldProblem("/trace", text)])
            return ObservedTraffic(steps=tuple(steps), replicas={}, remarks=("traffic from the request's `trace`",))
        metadata = graph["metadata"]
        key = ObjectKey(metadata["namespace"], metadata["name"])
        rows, _ = await self.decisions.history(call, key, metadata["uid"], _READ)
        result = observed(rows, body.seconds)
        if result is None:
            raise NotSimulated(
                "no decision about this graph shows any traffic yet: wait for the planner's next decision, or send `trace`"
            )
        return result

    async def _pods(self, call: Call) -> list[KubeObject]:
        if not await self.reading.may(call, ResourceAttributes("list", PODS, call.namespace)):
            return []
        return await self.details.pods_of(call, DEPLOYMENTS)
