"""`POST /estimate`: what an intent is expected to do, simulated; streamed as it gets better, cached, fair among callers.

The simulation is the profiler's. A service imports no other, so the process that composes both passes it here.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol

from aiohttp import web
from dynamo_shared.api import gpus
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, NODES
from dynamo_shared.state import messages

from dynamo_dynadmin.api.reading import CollectionReader
from dynamo_dynadmin.api.turns import CallerSlots
from dynamo_dynadmin.deploy import PlatformDefaults, read_intent, translate
from dynamo_dynadmin.deploy.intent import DeployIntent, Mode
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.pulse import Pulse
from dynamo_dynadmin.http.streaming import Stream, StreamEnded, Streams
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.hub import Hub

CACHED = 256
NO_SIMULATION = "this process has no simulation: run dynadmin where dynamo-ctl[planner] is installed"
_AS_GRAPH = "what the same GPUs and backend do at their best; not the graph exactly as it is described"

Report = Callable[[str, Any], None]


class NotEstimated(Exception):
    """Nothing can be expected; the text says why, and what to do. `field` is that of a request's spec."""

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class Estimator(Protocol):
    """Estimates requests. Cancelling ends the work."""

    async def estimate(self, manifest: KubeObject, nodes: Sequence[KubeObject], report: Report) -> dict[str, Any]:
        """The estimate of a DynamoGraphDeploymentRequest; `report` gets `progress` and earlier `estimate`s. NotEstimated."""

    async def close(self) -> None:
        """End what works for it."""


class Estimating:
    """Answers estimates."""

    def __init__(
        self,
        hub: Hub,
        reading: CollectionReader,
        streams: Streams,
        *,
        platform: PlatformDefaults,
        estimator: Estimator | None,
        turns: CallerSlots,
        within: float,
    ) -> None:
        self._hub = hub
        self._reading = reading
        self._streams = streams
        self._platform = platform
        self._estimator = estimator
        self._within = within
        self._turns = turns
        self._cache: OrderedDict[str, dict[str, Any]] = OrderedDict()

    async def estimate(self, call: Call) -> web.StreamResponse:
        """The estimate; as server-sent events where the caller accepts them."""
        if self._estimator is None:
            raise ProblemError("unavailable", NO_SIMULATION)
        intent = read_intent(await call.body())
        objective, remarks = as_objective(intent)
        made = translate(objective, call.namespace, self._platform)
        act = ResourceAttributes("create", DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, call.namespace)
        await self._reading.require(call, act)
        nodes: list[KubeObject] = []
        if await self._reading.may(call, ResourceAttributes("list", NODES)):
            nodes = [messages.decode_object(each.payload) for each in self._hub.entries(NODES).all()]
        work = _EstimateWork(self._estimator, made.manifest, nodes)
        if "text/event-stream" in call.request.headers.get("Accept", ""):
            async with self._streams.opened(call, [act]) as stream:
                await self._streamed(call, work, remarks, stream)
            return stream.response
        try:
            return call.answer(await self._answer(call, work, remarks, lambda _, __: None))
        except NotEstimated as error:
            pointer = made.pointer_of(error.field) if error.field else ""
            raise ProblemError("invalid", str(error), errors=[FieldProblem(pointer, str(error), error.field)]) from None

    async def _streamed(self, call: Call, work: _EstimateWork, remarks: list[str], stream: Stream) -> None:
        reports: asyncio.Queue[tuple[str, Any]] = asyncio.Queue(256)

        def report(event: str, data: Any) -> None:
            # The newest count, and the last one says that there are no more.
            if reports.full():
                reports.get_nowait()
            reports.put_nowait((event, data))

        async def reported() -> AsyncGenerator[tuple[str, Any], None]:
            while not (task.done() and reports.empty()):
                yield await reports.get()

        task = asyncio.create_task(self._answer(call, work, remarks, report), name="estimate")
        task.add_done_callback(lambda _: report("", None))
        try:
            async with Pulse(reported(), stream, lambda: self._streams.heartbeat) as pulse:
                async for item in pulse:
                    if item is not None and item[0]:
                        await stream.send(*item)
            try:
                await stream.send("estimate", task.result())
                await stream.send("end", {})
            except (NotEstimated, ProblemError) as error:
                raise StreamEnded("failed", str(error)) from None
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await task

    async def _answer(self, call: Call, work: _EstimateWork, remarks: list[str], report: Report) -> dict[str, Any]:
        key = work.key
        if (kept := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return {**kept, "cached": True, "notes": [*remarks, *kept["notes"]]}
        started = time.monotonic()
        async with self._turns.taken(call.caller.key):
            try:
                async with asyncio.timeout(self._within):
                    result = await work.estimator.estimate(work.manifest, work.nodes, report)
            except TimeoutError:
                raise NotEstimated(f"no estimate within {self._within:g} s; try again, or a smaller model") from None
        answer = {**result, "seconds": round(time.monotonic() - started, 3), "cached": False}
        self._cache[key] = answer
        if len(self._cache) > CACHED:
            self._cache.popitem(last=False)
        return {**answer, "notes": [*remarks, *answer["notes"]]}


class _EstimateWork:
    def __init__(self, estimator: Estimator, manifest: KubeObject, nodes: list[KubeObject]) -> None:
        self.estimator = estimator
        self.manifest = manifest
        self.nodes = nodes

    @property
    def key(self) -> str:
        """The same for what must give the same estimate: names do not count, GPUs of nodes do."""
        kinds = sorted(
            (
                sorted((key, value) for key, value in (each["metadata"].get("labels") or {}).items() if "gpu" in key),
                gpus.count({"resources": {"limits": (each.get("status") or {}).get("allocatable") or {}}}),
                bool((each.get("spec") or {}).get("unschedulable")),
            )
            for each in self.nodes
        )
        text = json.dumps([self.manifest["spec"], kinds], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def as_objective(intent: DeployIntent) -> tuple[DeployIntent, list[str]]:
    """The intent as an objective: of a graph, what its GPUs and its backend can do."""
    if intent.mode is Mode.OBJECTIVE:
        return intent, []
    counts, sizes, hardware = intent.serving.replicas, intent.parallelism, intent.hardware
    each = hardware.gpus_per_replica or (sizes.tensor or 1) * (sizes.pipeline or 1) * (sizes.data or 1)
    disaggregated = intent.serving.mode is not None and intent.serving.mode.value == "disaggregated"
    names = ("prefill", "decode") if disaggregated else ("worker",)
    replicas = sum(1 if counts is None or getattr(counts, name) is None else getattr(counts, name) for name in names)
    total = max(1, hardware.total_gpus or each * replicas)
    changed = hardware.model_copy(update={"total_gpus": total})
    return intent.model_copy(update={"mode": Mode.OBJECTIVE, "hardware": changed}), [_AS_GRAPH]
