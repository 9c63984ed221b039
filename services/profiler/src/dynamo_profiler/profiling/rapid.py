"""Rapid profiling: simulate, choose, generate. The I/O around the pure parts. Does not import AI Configurator."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import TypeVar

from dynamo_shared.aio import Offload
from dynamo_shared.api.contracts.planner import Sweeping
from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.api.v1beta1.request import ProfilingPhase
from dynamo_shared.runtime.settings.planner import Planner

from dynamo_profiler.metrics import ProfilingMetrics
from dynamo_profiler.profiling.generation.candidates import candidate_of, unmeasured
from dynamo_profiler.profiling.generation.parts import GenerationInputs
from dynamo_profiler.profiling.gpus import smaller_vram, system_of, with_figures
from dynamo_profiler.profiling.models import KnownFrom, ModelArchitecture, known_model
from dynamo_profiler.profiling.naive import naive
from dynamo_profiler.profiling.objective import AGG, DISAGG, Picking, ServingObjective, objective_of
from dynamo_profiler.profiling.points import DECODE, PREFILL, WORKER, Point, point_from, sizes
from dynamo_profiler.profiling.results import (
    ProfilingFailed,
    ProfilingRequest,
    ProfilingResult,
    Progress,
    Remark,
)
from dynamo_profiler.profiling.selection import Choice, Picked, filled, pick
from dynamo_profiler.profiling.simulated import Simulations
from dynamo_profiler.profiling.simulation.pool import CHILD
from dynamo_profiler.profiling.simulation.wire import Curves, JobResult, JobStatus, SimulationSweep

T = TypeVar("T")

_ORDER = list(ProfilingPhase)
_PHASES = {PREFILL: ProfilingPhase.SWEEPING_PREFILL, DECODE: ProfilingPhase.SWEEPING_DECODE}
#: Curves cover at least this context, tokens: engines get longer requests than the workload's typical ones.
_LEAST_CONTEXT = 8192
#: Graphs for a request above this size (bytes) are generated in a thread, and this many requests at a time: one graph
#: with a megabyte of overrides takes a second, and a front has 32.
LARGE_REQUEST, LARGE_AT_ONCE = 16 << 10, 2


class RapidProfiler:
    """Profiles requests by simulation, without cluster or GPU. Used with `async with`, which ends its processes."""

    def __init__(
        self,
        settings: Planner,
        dynamo_version: str,
        child: Sequence[str] = CHILD,
        metrics: ProfilingMetrics | None = None,
    ) -> None:
        self._settings = settings
        self._version = dynamo_version
        self.simulations = Simulations(settings.rapid, child, metrics)
        self.large = Offload(above=LARGE_REQUEST, at_once=LARGE_AT_ONCE)

    async def __aenter__(self) -> RapidProfiler:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all worker processes."""
        await self.simulations.pool.close()

    async def run(self, request: ProfilingRequest, progress: Progress) -> ProfilingResult:
        """The best deployment. If none keeps the latencies: the closest one, with a remark. If nothing can be simulated:
        one chosen by GPU memory only.
        """
        step = _Forward(progress)
        step.phase(ProfilingPhase.INITIALIZING, "reading the objective")
        objective = objective_of(request)
        model = await asyncio.to_thread(known_model, objective.model, self._settings.rapid)
        size = len(request.spec.model_dump_json())
        run = _ProfilingRun(request=request, objective=objective, model=model, step=step, size=size)
        result = await self._simulated(run)
        step.phase(ProfilingPhase.DONE, "a deployment is selected")
        return result

    async def _simulated(self, run: _ProfilingRun) -> ProfilingResult:
        objective, model = run.objective, run.model
        system = system_of(objective.gpu_sku)
        if system is None:
            return await self._naive(
                run, f"AI Configurator has no figures of GPU {objective.gpu_sku}, only of {with_figures()}"
            )
        if model.path is None:
            return await self._naive(run, f"AI Configurator does not know the model {model.name}")
        run.step.phase(ProfilingPhase.SWEEPING_PREFILL, f"simulating {model.path} on {objective.total_gpus} {system}")
        swept = await self._swept(run, model.path, system)
        if swept.picked is None:
            return await self._without_points(run, swept)
        run.step.phase(ProfilingPhase.SELECTING_CONFIG, f"{len(swept.points)} configurations to choose from")
        return await self._generated(run, model.path, system, swept, swept.picked)

    async def _swept(self, run: _ProfilingRun, path: str, system: str) -> _Swept:
        swept = await self._sweep(run, run.objective.servings, path, system, relaxed=False)
        if swept.is_empty and run.objective.planner is not None and DISAGG in run.objective.servings:
            # A planner can also plan a single pool, which is better than no graph.
            other = await self._sweep(run, (AGG,), path, system, relaxed=False)
            if not other.is_empty or not swept.answers:
                text = "no prefill and decode engines fit these GPUs; one pool serves both (mode agg)"
                other.remarks.append(Remark(reason="PlannerModeChanged", message=text))
                swept = other
        if swept.is_empty or (swept.picked and swept.picked.selected.meets):
            return swept
        servings = (AGG,) if swept.picked and swept.picked.selected.point.serving == AGG else swept.servings
        closest = await self._sweep(run, servings, path, system, relaxed=True)
        points = [*swept.points, *(filled(point, run.objective) for point in closest.points)]
        picked = pick(points, run.objective)
        if picked is None:
            return swept
        return replace(closest, points=points, picked=picked, remarks=swept.remarks)

    async def _sweep(
        self, run: _ProfilingRun, servings: tuple[str, ...], path: str, system: str, *, relaxed: bool
    ) -> _Swept:
        objective = run.objective
        least = ceil((objective.least(PREFILL) + objective.least(DECODE)) / 2)
        jobs = [
            SimulationSweep(
                model=path,
                system=system,
                backend=backend,
                serving=serving,
                total_gpus=objective.total_gpus,
                gpus_per_node=objective.gpus_per_node,
                isl=objective.isl,
                osl=objective.osl,
                ttft_ms=objective.ttft_ms,
                itl_ms=objective.itl_ms,
                latency_ms=objective.latency_ms,
                autoscale=objective.picking is Picking.AUTOSCALE and serving == DISAGG,
                relaxed=relaxed,
                least=least if serving == DISAGG else 1,
                vram_mib=smaller_vram(objective.gpu_sku, objective.vram_mib),
                database=self._settings.rapid.database.value,
            )
            for serving in servings
            for backend in objective.backends
            if serving == AGG or objective.total_gpus > 1
        ]
        answers = await self.simulations.answers(jobs, run.model.digest, run.step.report, run.request.namespace)
        points = [point_from(data) for answer in answers for data in answer.points]
        return _Swept(
            servings=servings,
            answers=answers,
            jobs=jobs,
            points=points,
            picked=pick(points, objective),
            remarks=[],
        )

    async def _without_points(self, run: _ProfilingRun, swept: _Swept) -> ProfilingResult:
        """The result without points. The cause is the request (too few GPUs), missing figures, or an error of the
        platform.
        """
        outcomes = {answer.outcome for answer in swept.answers}
        if outcomes <= {JobStatus.TOO_SMALL, JobStatus.INFEASIBLE}:
            # A pipeline across nodes may still hold the model. If it does not, that is the failure.
            size = f"{gpu_words(run.objective.total_gpus)} {run.objective.gpu_sku}"
            return await self._naive(run, f"{run.model.name} fits no engine of AI Configurator on {size}")
        if JobStatus.BROKEN in outcomes:
            said = "; ".join(sorted({a.message for a in swept.answers if a.outcome is JobStatus.BROKEN}))
            raise ProfilingFailed("SimulationFailed", f"the simulation failed: {said}")
        backends = ", ".join(run.objective.backends)
        said = next((a.message for a in swept.answers if a.outcome is JobStatus.UNSUPPORTED), "")
        why = f"AI Configurator has no figures of {run.model.name} on {run.objective.gpu_sku} with {backends}"
        return await self._naive(run, f"{why} ({said[:200]})" if said else why)

    async def _naive(self, run: _ProfilingRun, why: str) -> ProfilingResult:
        run.step.phase(ProfilingPhase.SELECTING_CONFIG, f"{why}: choosing by GPU memory only")
        made = naive(run.model, run.objective, why)
        run.step.phase(ProfilingPhase.GENERATING_DGD, made.layout.words)
        candidate, remarks = await self._made(run, partial(unmeasured, made.layout, self._parts(run)))
        remarks = (*made.remarks, *_beyond_context(run), *remarks)
        return ProfilingResult(selected=candidate, pareto=(candidate,), remarks=remarks, source="naive")

    async def _generated(
        self, run: _ProfilingRun, path: str, system: str, swept: _Swept, picked: Picked
    ) -> ProfilingResult:
        parts = self._parts(run)
        remarks = [*_remarks(run, swept, picked.selected), *swept.remarks]
        selected = picked.selected
        planned = run.objective.planner
        sweeping = planned.pre_deployment_sweeping_mode if planned else Sweeping.NONE
        if sweeping is not Sweeping.NONE or parts.mocked:
            run.step.phase(ProfilingPhase.BUILDING_CURVES, f"curves of {selected.point.words}")
            parts, more = await self._with_curves(run, parts, path, system, selected.point)
            remarks += more
        run.step.phase(ProfilingPhase.GENERATING_DGD, selected.point.words)
        candidate, said = await self._made(run, partial(candidate_of, selected, parts))
        remarks += said
        bare = replace(parts, curves=None)
        pareto = [candidate]
        for choice in _front(picked, self._settings.pareto_points):
            # Lets the service's health checks run between the checks of graphs.
            await asyncio.sleep(0)
            # Overrides may fit the selected graph and not this one: then it is not a choice.
            with suppress(ProfilingFailed):
                pareto.append((await self._made(run, partial(candidate_of, choice, bare)))[0])
        return ProfilingResult(selected=candidate, pareto=tuple(pareto), remarks=tuple(remarks))

    async def _with_curves(
        self, run: _ProfilingRun, parts: GenerationInputs, path: str, system: str, point: Point
    ) -> tuple[GenerationInputs, list[Remark]]:
        objective = run.objective
        decode = point.engines.get(DECODE) or point.engines[WORKER]
        context = max(_LEAST_CONTEXT, 2 * (objective.isl + objective.osl))
        job = Curves(
            model=path,
            system=system,
            backend=point.backend,
            osl=objective.osl,
            max_context=min(context, run.model.max_context or context),
            prefill=sizes(point.engines.get(PREFILL) or decode),
            decode=sizes(decode),
            vram_mib=smaller_vram(objective.gpu_sku, objective.vram_mib),
            database=self._settings.rapid.database.value,
        )
        namespace = run.request.namespace
        answer = await self.simulations.answer(job, run.model.digest, run.step.report_sentence, namespace)
        interpolation = {
            "hf_id": run.model.name if run.model.known is KnownFrom.FOLDER else path,
            "system": system,
            "backend": point.backend,
            "isl": objective.isl,
            "osl": objective.osl,
            "sweep_max_context_length": job.max_context,
        }
        if answer.curves is None:
            text = f"the planner starts without a profile of its engines: {answer.message[:300]}"
            return replace(parts, interpolation=interpolation), [Remark(reason="NoProfile", message=text)]
        tokens = next((values[0] for arrays in answer.curves.values() if (values := arrays.get("max_kv_tokens"))), None)
        kept = int(tokens) if tokens else None
        return replace(parts, interpolation=interpolation, curves=answer.curves, kv_tokens=kept), []

    async def _made(self, run: _ProfilingRun, make: Callable[[], T]) -> T:
        return await self.large.run(run.size, make, run.request.namespace)

    def _parts(self, run: _ProfilingRun) -> GenerationInputs:
        return GenerationInputs(
            request=run.request,
            objective=run.objective,
            settings=self._settings,
            version=self._version,
            model=run.model,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfilingRun:
    """The profiling of one request."""

    request: ProfilingRequest
    objective: ServingObjective
    model: ModelArchitecture
    step: _Forward
    size: int
    """size of the request's spec, bytes"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Swept:
    """Results of sweeps."""

    servings: tuple[str, ...]
    answers: list[JobResult]
    jobs: list[SimulationSweep]
    points: list[Point]
    picked: Picked | None
    remarks: list[Remark]

    @property
    def is_empty(self) -> bool:
        """Whether nothing could be simulated at all; then a relaxed sweep gives nothing, too."""
        return self.picked is None and all(answer.outcome is not JobStatus.INFEASIBLE for answer in self.answers)


class _Forward:
    """Progress that never goes back, although sweeps of several backends run at the same time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._reached = ProfilingPhase.INITIALIZING

    def phase(self, phase: ProfilingPhase, sentence: str) -> None:
        """Enter a phase, unless a later phase was entered already."""
        if _ORDER.index(phase) >= _ORDER.index(self._reached):
            self._reached = phase
        self._progress(self._reached, sentence)

    def report(self, role: str, sentence: str) -> None:
        """Receive the progress of a sweep."""
        self.phase(_PHASES.get(role, self._reached), sentence)

    def report_sentence(self, _role: str, sentence: str) -> None:
        """Receive progress within the current phase."""
        self.phase(self._reached, sentence)


def _remarks(run: _ProfilingRun, swept: _Swept, selected: Choice) -> Iterable[Remark]:
    objective, point = run.objective, selected.point
    yield from _beyond_context(run)
    if run.model.known is KnownFrom.SIBLING:
        text = f"{run.model.name} is simulated as {run.model.path}, whose name suggests the same architecture"
        yield Remark(reason="SiblingModel", message=text)
    if not selected.meets:
        text = (
            f"no configuration meets {objective.words()} on {gpu_words(objective.total_gpus)} {objective.gpu_sku}; "
            f"the closest is {point.words} "
            f"on {point.backend}: ttft {point.ttft_ms:.1f} ms, itl {point.itl_ms:.2f} ms, e2eLatency {point.latency_ms:.0f} ms"
        )
        yield Remark(reason="ObjectiveNotMet", message=text)
    if selected.served < 1.0:
        text = (
            f"{gpu_words(objective.total_gpus)} serve {selected.served:.0%} of {objective.words()}: "
            f"{point.requests_per_second:.2f} requests/s with {point.words}"
        )
        yield Remark(reason="LoadNotServed", message=text)
    broken = sorted(
        {
            f"{job.backend}: {a.message}"
            for job, a in zip(swept.jobs, swept.answers, strict=True)
            if a.outcome is JobStatus.BROKEN
        }
    )
    if broken:
        yield Remark(
            reason="PartlySimulated", message="excluded because the simulation failed: " + "; ".join(broken)[:1000]
        )
    planner = objective.planner
    if planner is not None and planner.pre_deployment_sweeping_mode is Sweeping.THOROUGH:
        text = "the planner's profile is simulated; searchStrategy thorough measures it"
        yield Remark(reason="SweepingSimulated", message=text)


def _beyond_context(run: _ProfilingRun) -> Iterable[Remark]:
    objective, made_for = run.objective, run.model.max_context
    if made_for is not None and objective.isl + objective.osl > made_for:
        text = f"{objective.isl} + {objective.osl} tokens exceed the context of {run.model.name}, {made_for} tokens"
        yield Remark(reason="BeyondContext", message=text)


def _front(picked: Picked, most: int) -> list[Choice]:
    """Other points of the front, those that keep the latencies first; evenly thinned to the limit with the selected
    one.
    """
    others = [choice for choice in picked.front if choice.point != picked.selected.point]
    room = most - 1
    if len(others) > room:
        last = len(others) - 1
        others = [others[round(place * last / max(1, room - 1))] for place in range(room)]
    return sorted(others, key=lambda choice: (not choice.meets, -choice.tokens_per_second_per_gpu))
