"""`POST /estimate`: simulates the performance of an intent; streams improving results, caches them, and is fair among
callers.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

from aiohttp import web
from dynamo_shared.aio import ended
from dynamo_shared.api import gpus
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, NODES
from dynamo_shared.lru import LruCache

from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.simulation import NO_SIMULATION, NotSimulated, Report, Simulation
from dynamo_dynadmin.api.turns import CallerSlots
from dynamo_dynadmin.deploy import Draft, PlatformDefaults, read_intent, translate
from dynamo_dynadmin.deploy.graph import COMPONENTS, roles
from dynamo_dynadmin.deploy.intent import DeployIntent, Mode
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.deploy.request import with_form_names
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.pulse import Pulse
from dynamo_dynadmin.http.streaming import Stream, StreamEnded, Streams
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.hub import Hub

CACHED = 256
_AS_GRAPH = "the best result for the same GPUs and backend, not an estimate of the described graph itself"
_Answer = Callable[[Report], Coroutine[Any, Any, dict[str, Any]]]


@dataclass(eq=False)
class Estimates:
    """Answers requests for estimates."""

    hub: Hub
    reading: CollectionReader
    streams: Streams
    _: KW_ONLY
    platform: PlatformDefaults
    simulation: Simulation | None
    turns: CallerSlots
    within: float
    _cache: LruCache[str, dict[str, Any]] = field(default_factory=lambda: LruCache(CACHED), init=False)

    async def estimate(self, call: Call) -> web.StreamResponse:
        """The estimate; as server-sent events if the caller accepts them."""
        if self.simulation is None:
            raise ProblemError("unavailable", NO_SIMULATION)
        sent = await call.body()
        made, remarks = await call.apart(lambda: self._made(sent, call.namespace))
        act = ResourceAttributes("create", DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, call.namespace)
        await self.reading.require(call, act)
        nodes: list[KubeObject] = []
        if await self.reading.may(call, ResourceAttributes("list", NODES)):
            nodes = await self.hub.entries(NODES).objects()
        simulate = partial(self.simulation.estimate, made.manifest, nodes)
        answer = partial(self._answer, call.caller.limit_key, _key(made.manifest, nodes), simulate, remarks)
        if "text/event-stream" in call.request.headers.get("Accept", ""):
            async with self.streams.opened(call, [act]) as stream:
                await self._streamed(answer, stream)
            return stream.response
        try:
            return call.answer(await answer(lambda _, __: None))
        except NotSimulated as error:
            pointer, words = made.pointer_of(error.field) if error.field else "", with_form_names(str(error))
            raise ProblemError("invalid", words, errors=[FieldProblem(pointer, words, error.field)]) from None

    def _made(self, sent: Any, namespace: str) -> tuple[Draft, list[str]]:
        objective, remarks = as_objective(read_intent(sent))
        return translate(objective, namespace, self.platform), remarks

    async def _streamed(self, answer: _Answer, stream: Stream) -> None:
        reports: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(256)
        started = time.monotonic()

        def report(event: str, data: Any) -> None:
            if event == "estimate":
                data = {**data, "seconds": round(time.monotonic() - started, 3), "cached": False}
            # Keeps only the newest report; the last one says that there are no more.
            if reports.full():
                reports.get_nowait()
            reports.put_nowait((event, data))

        async def reported() -> AsyncGenerator[tuple[str, Any], None]:
            while not (task.done() and reports.empty()):
                yield await reports.get()

        task = asyncio.create_task(answer(report), name="estimate")
        task.add_done_callback(lambda _: report("", None))
        try:
            async with Pulse(reported(), stream) as pulse:
                async for item in pulse:
                    if item is not None and item[0]:
                        await stream.send(*item)
            try:
                await stream.send("estimate", task.result())
                await stream.send("end", {})
            except (NotSimulated, ProblemError) as error:
                raise StreamEnded("failed", with_form_names(str(error))) from None
        finally:
            await ended(task)

    async def _answer(
        self, caller: str, key: str, simulate: _Answer, remarks: list[str], report: Report
    ) -> dict[str, Any]:
        if (kept := self._cache.touch(key)) is not None:
            return {**kept, "cached": True, "notes": [*remarks, *kept["notes"]]}
        started = time.monotonic()
        async with self.turns.taken(caller):
            try:
                async with asyncio.timeout(self.within):
                    result = await simulate(report)
            except TimeoutError:
                raise NotSimulated(f"no estimate within {self.within:g} s; try again, or a smaller model") from None
        answer = {**result, "seconds": round(time.monotonic() - started, 3), "cached": False}
        self._cache[key] = answer
        return {**answer, "notes": [*remarks, *answer["notes"]]}


def _key(manifest: KubeObject, nodes: Sequence[KubeObject]) -> str:
    """A cache key that is equal for manifests with the same estimate: ignores names, includes GPUs of nodes."""
    kinds = sorted(
        (
            sorted((key, value) for key, value in (each["metadata"].get("labels") or {}).items() if "gpu" in key),
            gpus.count({"resources": {"limits": (each.get("status") or {}).get("allocatable") or {}}}),
            bool((each.get("spec") or {}).get("unschedulable")),
        )
        for each in nodes
    )
    return hashlib.sha256(json.dumps([manifest["spec"], kinds], sort_keys=True).encode()).hexdigest()


def as_objective(intent: DeployIntent) -> tuple[DeployIntent, list[str]]:
    """The intent as an objective: for a graph, the best that its GPUs and its backend can do."""
    if intent.mode is Mode.OBJECTIVE:
        return intent, []
    counts, sizes, hardware = intent.serving.replicas, intent.parallelism, intent.hardware
    each = hardware.gpus_per_replica or (sizes.tensor or 1) * (sizes.pipeline or 1) * (sizes.data or 1)
    names = [COMPONENTS[role][0] for role in roles(intent)]
    replicas = sum(1 if counts is None or getattr(counts, name) is None else getattr(counts, name) for name in names)
    total = max(1, hardware.total_gpus or each * replicas)
    changed = hardware.model_copy(update={"total_gpus": total})
    return intent.model_copy(update={"mode": Mode.OBJECTIVE, "hardware": changed}), [_AS_GRAPH]
