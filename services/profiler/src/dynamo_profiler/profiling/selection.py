"""Chooses among simulated points (planner.md, b.3). Pure: points and an objective in, choices out."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import ceil, isnan

from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.v1beta1.request import OptimizationType

from dynamo_profiler.profiling.objective import AGG, Picking, ServingObjective
from dynamo_profiler.profiling.points import DECODE, DECODE_SHARE, PREFILL, PREFILL_SHARE, WORKER, Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A point, repeated as the objective requires."""

    point: Point
    """the point, with the replicas of all repetitions"""
    meets: bool
    tokens_per_second_per_gpu: float
    """for all GPUs of the budget, including idle ones; for a load or a planner, only for the GPUs in use"""
    served: float = 1.0
    """share of the stated load"""
    enough: bool = True
    """whether the planner's minimum number of engines exists"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """The choice, and the Pareto front, fastest answers first."""

    selected: Choice
    front: tuple[Choice, ...]


def pick(points: Iterable[Point], objective: ServingObjective) -> Picked | None:
    """The best point, or the closest one if none meets the objective. None if no point fits the GPUs."""
    if objective.picking is Picking.AUTOSCALE:
        points = crossed(points, objective.osl)
    choices = [choice for point in points if (choice := _choice(point, objective)) is not None]
    if not choices:
        return None
    meeting = [choice for choice in choices if choice.meets]
    eligible = [choice for choice in meeting if choice.enough] or meeting
    if not eligible:
        best = min(
            choices,
            key=lambda choice: (not choice.enough, _excess(choice, objective), -choice.tokens_per_second_per_gpu),
        )
    elif objective.picking is Picking.LOAD_MATCH:
        best = min(eligible, key=_fewest_gpus)
    elif objective.tune_for is OptimizationType.LATENCY:
        best = min(eligible, key=lambda choice: (choice.point.itl_ms, -choice.tokens_per_second_per_gpu))
    else:
        best = min(eligible, key=_most_tokens)
    return Picked(selected=best, front=_front(choices, objective))


def _choice(point: Point, objective: ServingObjective) -> Choice | None:
    if not point.requests_per_second:
        return None
    if objective.picking is Picking.AUTOSCALE:
        point = _with_least_engines(point, objective)
    unit = point.gpus
    if unit > objective.total_gpus:
        return None
    meets = objective.meets(ttft_ms=point.ttft_ms, itl_ms=point.itl_ms, latency_ms=point.latency_ms)
    per_gpu = point.tokens_per_second_per_gpu or 0.0
    fits = objective.total_gpus // unit
    if objective.picking is Picking.AUTOSCALE:
        enough = all(count >= objective.least(role) for role, count in point.replicas.items())
        return Choice(point=point, meets=meets, tokens_per_second_per_gpu=per_gpu, enough=enough)
    if objective.picking is Picking.DEFAULT:
        cluster = per_gpu * fits * unit / objective.total_gpus
        return Choice(point=_times(point, fits), meets=meets, tokens_per_second_per_gpu=cluster)
    desired = _units_for_load(point, objective)
    units = min(desired, fits)
    return Choice(
        point=_times(point, units), meets=meets, tokens_per_second_per_gpu=per_gpu, served=min(1.0, units / desired)
    )


def _units_for_load(point: Point, objective: ServingObjective) -> int:
    if objective.request_rate is not None:
        return max(1, ceil(objective.request_rate / (point.requests_per_second or 1.0)))
    return max(1, ceil((objective.concurrency or 1.0) / (point.concurrency or 1.0)))


def _times(point: Point, units: int) -> Point:
    """The point `units` times: load and replicas grow, latencies stay."""
    return replace(
        point,
        replicas={role: count * units for role, count in point.replicas.items()},
        concurrency=None if point.concurrency is None else point.concurrency * units,
        requests_per_second=None if point.requests_per_second is None else point.requests_per_second * units,
    )


def _with_least_engines(point: Point, objective: ServingObjective) -> Point:
    """The number of engines of each role that the planner must keep, or that fits, at least one: the planner adds
    others.
    """
    desired = objective.endpoints(point.engines)
    if desired == point.replicas:
        return point
    return matched(point, desired, objective.osl)


def crossed(points: Iterable[Point], osl: int) -> list[Point]:
    """All points, and all missing pairs of their prefill and decode engines: sweeps pair only the best ones."""
    known = list(points)
    pairs = {(p.backend, p.engines[PREFILL], p.engines[DECODE]) for p in known if p.serving != AGG}
    made = []
    # Hundreds of points have the same few engines.
    for one, other in product(_of_each_engine(known, PREFILL), _of_each_engine(known, DECODE)):
        pair = (one.backend, one.engines[PREFILL], other.engines[DECODE])
        if one.backend != other.backend or pair in pairs:
            continue
        pairs.add(pair)
        latency = one.ttft_ms + other.itl_ms * max(1, osl - 1)
        # The first point serves prompts, the second answers; one engine of each.
        engines = {PREFILL: pair[1], DECODE: pair[2]}
        joined = replace(other, engines=engines, ttft_ms=one.ttft_ms, latency_ms=latency)
        made.append(matched(joined, dict.fromkeys(engines, 1), osl))
    return [*known, *made]


def _of_each_engine(points: Iterable[Point], role: str) -> Iterable[Point]:
    """The first point with each engine of a role."""
    first: dict[tuple[str, EngineLayout], Point] = {}
    for point in points:
        if point.serving != AGG:
            first.setdefault((point.backend, point.engines[role]), point)
    return first.values()


def matched(point: Point, replicas: dict[str, int], osl: int) -> Point:
    """The engines of a point in other numbers. The slower role limits the rate."""
    engines = point.engines
    if point.serving == AGG:
        factor = replicas[WORKER] / point.replicas[WORKER]
        rate = (point.requests_per_second or 0.0) * factor
        concurrency = (point.concurrency or 0.0) * factor
    else:
        prefill, decode = engines[PREFILL], engines[DECODE]
        if prefill.requests_per_second is None or decode.requests_per_second is None:
            return point
        rate = min(
            prefill.requests_per_second * replicas[PREFILL] * PREFILL_SHARE,
            decode.requests_per_second * replicas[DECODE] * DECODE_SHARE,
        )
        concurrency = (point.concurrency or 0.0) / point.replicas[DECODE] * replicas[DECODE]
    gpus = sum(engine.gpus * replicas[role] for role, engine in engines.items())
    return replace(
        point,
        replicas=replicas,
        concurrency=concurrency,
        requests_per_second=rate,
        tokens_per_second_per_gpu=rate * osl / gpus,
    )


def filled(point: Point, objective: ServingObjective) -> Point:
    """The engines of a point in the numbers with most tokens per second of all GPUs; the point itself if none fit."""
    if point.serving == AGG:
        return point
    prefill, decode = point.engines[PREFILL], point.engines[DECODE]
    most = (objective.total_gpus - decode.gpus) // prefill.gpus
    if most < 1:
        return point

    def counts(prefills: int) -> dict[str, int]:
        return {PREFILL: prefills, DECODE: (objective.total_gpus - prefills * prefill.gpus) // decode.gpus}

    def lacks_decode_engines(prefills: int) -> bool:
        rates = (prefill.requests_per_second or 0.0) * PREFILL_SHARE, (decode.requests_per_second or 0.0) * DECODE_SHARE
        return rates[0] * prefills >= rates[1] * counts(prefills)[DECODE]

    # The rate grows with the number of prefill engines until too few decode engines remain, and shrinks after that. The
    # best number is the first with too few decode engines, or the last before.
    turn = bisect_left(range(1, most + 1), True, key=lacks_decode_engines) + 1
    made = [matched(point, counts(each), objective.osl) for each in (turn - 1, turn) if 1 <= each <= most]
    return max(made, key=lambda each: (each.requests_per_second or 0.0, -each.gpus))


def _excess(choice: Choice, objective: ServingObjective) -> tuple[float, ...]:
    point = choice.point
    return objective.excess(ttft_ms=point.ttft_ms, itl_ms=point.itl_ms, latency_ms=point.latency_ms)


def _most_tokens(choice: Choice) -> tuple[float, float]:
    """Sort key: most tokens per second first; of equals, the lowest latency first."""
    return (-choice.tokens_per_second_per_gpu, -(choice.point.tokens_per_second_per_user or 0.0))


def _fewest_gpus(choice: Choice) -> tuple[float, float, float]:
    """Sort key: the complete load first, then fewest GPUs; if nothing serves the complete load, most of it first."""
    if choice.served >= 1.0:
        return (0.0, choice.point.gpus, -choice.tokens_per_second_per_gpu)
    return (1.0, -choice.served, -choice.tokens_per_second_per_gpu)


def _front(choices: Sequence[Choice], objective: ServingObjective) -> tuple[Choice, ...]:
    """Choices for which no other answers faster and gives as many tokens per second per GPU."""
    slowness = [
        choice.point.latency_ms
        if objective.latency_ms is not None
        else -(choice.point.tokens_per_second_per_user or 0.0)
        for choice in choices
    ]
    front = pareto_front(slowness, [choice.tokens_per_second_per_gpu for choice in choices])
    return tuple(choices[place] for place in front)


def pareto_front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Indices of the points whose y is the largest of all points with the same or a smaller x, in ascending order of x
    (planner.md, sections b.4 and c.5, case 25).

    Ignores points with a NaN. Of equal points, the first counts. Raises ValueError if x and y differ in length.
    """
    points = [
        (cost, gain, index) for index, (cost, gain) in enumerate(zip(x, y, strict=True)) if not isnan(cost + gain)
    ]
    points.sort(key=lambda point: (point[0], -point[1], point[2]))
    front: list[int] = []
    for _, gain, index in points:
        if not front or gain > y[front[-1]]:
            front.append(index)
    return front
