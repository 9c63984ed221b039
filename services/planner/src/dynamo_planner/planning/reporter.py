"""Reports planning to users and programs: the graph's condition `Planning`, Events, NATS events, metrics."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any, NamedTuple

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import PLANNING, condition, find
from dynamo_shared.api.contracts.planner import PlanningPolicy
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, key_of
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import Conflict, NotFound
from dynamo_shared.runtime.facts import Announcer, Fact
from dynamo_shared.wire.specifications.planning import PlanAlternative, PlanData

from dynamo_planner import events
from dynamo_planner.core.limits import Limits
from dynamo_planner.core.observation import Missing, Observation
from dynamo_planner.planning.collector import FORWARD_PASSES, TRAFFIC
from dynamo_planner.planning.plans import PlannedGraph
from dynamo_planner.planning.runner import TickResult

#: Attempts to write; a graph whose status changes faster than it is read gets its condition with the next report.
TRIES = 3


class PlanningCondition(NamedTuple):
    """The content of the condition."""

    status: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class ConditionWriter:
    """Writes the condition only to the graph that it was derived from."""

    kube: KubeClient
    now: Callable[[], datetime]

    async def write(self, graph: KubeObject, desired: PlanningCondition | None) -> None:
        """Write the condition; None removes it. Does nothing for a deleted graph.

        Raises Conflict if the graph changes constantly, and KubeError if the API server is unavailable.
        """
        uid = objects.uid(graph)
        for left in reversed(range(TRIES)):
            conditions = self._conditions(graph, desired)
            if conditions is None:
                return
            try:
                await self.kube.apply_status(DYNAMO_GRAPH_DEPLOYMENTS, _patch(graph, conditions))
            except NotFound:
                return
            except Conflict:
                if not left:
                    raise
            else:
                return
            now = await get_if_present(self.kube, DYNAMO_GRAPH_DEPLOYMENTS, key_of(graph))
            if now is None or objects.uid(now) != uid:
                return
            graph = now

    def _conditions(self, graph: KubeObject, desired: PlanningCondition | None) -> list[KubeObject] | None:
        """The new conditions; None if the graph has the correct condition already."""
        previous = (graph.get("status") or {}).get("conditions", [])
        present = find(previous, PLANNING)
        if desired is None:
            return None if present is None else []
        made = condition(
            previous,
            PLANNING,
            status=desired.status,
            reason=desired.reason,
            message=desired.message,
            generation=graph["metadata"].get("generation", 0),
            now=self.now(),
        )
        return None if present == made else [made]


def _patch(graph: KubeObject, conditions: list[KubeObject]) -> KubeObject:
    metadata = graph["metadata"]
    return {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        # For custom resources, the API server ignores the uid here: only the version distinguishes a successor of the
        # same name.
        "metadata": {each: metadata[each] for each in ("name", "namespace", "resourceVersion")},
        "status": {"conditions": conditions},
    }


HOLDS, PLANNED, INPUT_MISSING = "Holds", "Planned", "InputMissing"
REFUSED, UNANSWERED = "ScalerRefused", "ScalerUnanswered"
AT_RISK = "PromiseAtRisk"
"""Planning works, but its limits do not permit the promised share of requests."""

_NUMBERS = re.compile(r"\d+(\.\d+)?")
_AGAIN = "the planner sends the same plan again within minutes, and another plan at once"

PROBLEMS = {
    REFUSED: events.SCALER_REFUSED,
    UNANSWERED: events.SCALER_UNANSWERED,
    INPUT_MISSING: events.INPUT_MISSING,
}


_WITHOUT = {FORWARD_PASSES: "planned from traffic only", TRAFFIC: "planned from the engines' reports only"}


def _has_ready_engines(ticked: TickResult) -> bool:
    """Whether an engine is ready: without ready engines, no report is possible."""
    return any(counts.ready for counts in ticked.collected.observation.workers.values())


def missing_inputs(plan: PlannedGraph, ticked: TickResult) -> dict[str, Missing]:
    """Inputs that planning needs and that are missing, with the reason."""
    # `adaptive` learns from engine reports, but works without. Reactive scaling needs of the traffic only the hit rate.
    adaptive = plan.config.policy is PlanningPolicy.ADAPTIVE
    reacts = plan.config.load_scaling and not adaptive and _has_ready_engines(ticked)
    needed = {
        FORWARD_PASSES: reacts or ticked.effects.explanation.needs_passes,
        TRAFFIC: adaptive or plan.config.throughput_scaling,
    }
    observed = ticked.collected.observation.missing
    return {name: observed[name] for name in ticked.collected.troubles if needed.get(name, True)}


def outcome_of(plan: PlannedGraph, ticked: TickResult) -> PlanningCondition:
    """A short description of a tick. Two with the same reason and text are the same."""
    collected, effects, acted = ticked
    explanation = effects.explanation
    message = explanation.message or explanation.reason
    too_low = Limits(plan.config).too_low(collected.observation.capabilities)
    message = "; ".join(filter(None, (message, too_low)))
    missing = missing_inputs(plan, ticked)
    if collected.troubles and not missing and _has_ready_engines(ticked):
        unneeded = (f"{_WITHOUT[name]}: {trouble}" for name, trouble in collected.troubles.items())
        message = "; ".join((message, *unneeded))
    if acted is not None and not acted.answered:
        again = "" if acted.unsent else f"; {_AGAIN}"
        return PlanningCondition(False, UNANSWERED, f"{message}; {acted.answer}{again}")
    if acted is not None and not acted.done:
        return PlanningCondition(False, REFUSED, f"{message}; the scaler answered: {acted.answer}; {_AGAIN}")
    if acted is not None and acted.waits:
        message = f"{message}; the scaler answered: {acted.answer}"
    if missing:
        troubles = "; ".join(f"{name}: {collected.troubles[name]}" for name in sorted(missing))
        return PlanningCondition(False, INPUT_MISSING, f"{message}; {troubles}")
    if explanation.at_risk or too_low:
        return PlanningCondition(True, AT_RISK, message)
    return PlanningCondition(True, HOLDS if effects.decision is None else PLANNED, message)


def without_numbers(text: str) -> str:
    """The text without numbers, to compare messages: times and counts change constantly."""
    return _NUMBERS.sub("", text)


class PlanReporter:
    """Reports ticks: each decision, and the beginning and end of each obstacle to planning."""

    def __init__(self, announcer: Announcer) -> None:
        self._announcer = announcer
        self._last: dict[str, tuple[str, ...]] = {}
        """last report, by uid"""

    def begun(self, graph: KubeObject, plan: PlannedGraph) -> None:
        """Report that planning of a graph by a plan begins."""
        if plan.remarks:
            self._announcer.announce(graph, events.CONFIG_REMARKS(plan.remarks))

    def tick(self, graph: KubeObject, plan: PlannedGraph, ticked: TickResult, at: datetime) -> PlanningCondition:
        """Emit the events of a tick: always if replicas are requested, otherwise if the reason or the advice has
        changed.

        The scaler's answer to a plan that it did not execute is also reported.
        """
        effects, acted = ticked.effects, ticked.acted
        outcome = outcome_of(plan, ticked)
        advice = effects.decision.replicas if effects.decision is not None and plan.config.advisory else {}
        advised = (f"{pool.value} {count}" for pool, count in sorted(advice.items()))
        untaken = without_numbers(acted.answer) if acted is not None and not acted.done else ""
        news = (outcome.reason, untaken, *sorted(missing_inputs(plan, ticked).values()), *advised)
        is_news = self._last.get(plan.uid) != news
        self._last[plan.uid] = news
        asked = (acted is not None and not acted.repeated) or (bool(advice) and is_news)
        if not asked and not is_news:
            return outcome
        requested = asked and outcome.reason not in (REFUSED, UNANSWERED)
        event = "planned" if requested or outcome.reason == PLANNED else "plan-held"
        data = plan_data(plan, ticked, outcome)
        cause = f"{plan.uid}.{at.isoformat()}"
        if is_news and outcome.reason == AT_RISK:
            fact = events.PROMISE_AT_RISK(outcome.message, event, data, data.reason, cause)
        elif is_news and not outcome.status:
            fact = PROBLEMS[outcome.reason](outcome.message, event, data, data.reason, cause)
        elif requested:
            fact = events.PLANNED(outcome.message, event, data, data.reason, cause)
        else:
            fact = Fact(event=event, data=data, identity=data.reason, causation_id=cause)
        self._announcer.announce(graph, fact)
        return outcome

    def refused(self, graph: KubeObject, reason: str, message: str) -> None:
        """Report that a graph requests planning but cannot be planned."""
        uid = graph["metadata"]["uid"]
        if self._last.get(uid) != (reason, message):
            self._last[uid] = (reason, message)
            self._announcer.announce(graph, events.NOT_PLANNABLE.named(reason)(message))

    def forget(self, uid: str) -> None:
        """The graph is deleted, or no longer planned."""
        self._last.pop(uid, None)


def plan_data(plan: PlannedGraph, ticked: TickResult, outcome: PlanningCondition) -> PlanData:
    """Data of a tick's event: observations, outcome and reasons."""
    collected, effects, acted = ticked
    explanation, decision = effects.explanation, effects.decision
    return PlanData(
        graph_deployment=plan.graph.name,
        namespace=plan.graph.namespace,
        policy=plan.config.policy.value,
        reason=decision.reason if decision else explanation.reason,
        message=outcome.message,
        replicas={pool.value: count for pool, count in decision.replicas.items()} if decision else {},
        current={pool.value: counts.ready for pool, counts in collected.observation.workers.items()},
        inputs=_numbers({**_observed(collected.observation), **explanation.inputs}),
        missing={name: why.value for name, why in collected.observation.missing.items()},
        predictions=_numbers(explanation.predictions),
        alternatives=[_alternative(each) for each in explanation.alternatives[:16]],
        command=acted.command if acted else "",
        advisory=plan.config.advisory,
    )


def _observed(observation: Observation) -> dict[str, float]:
    traffic = observation.traffic
    if traffic is None:
        return {}
    return {
        "requestsPerSecond": traffic.requests / traffic.duration if traffic.duration else 0.0,
        "isl": traffic.isl,
        "osl": traffic.osl,
    }


def _alternative(numbers: Mapping[str, Any]) -> PlanAlternative:
    """An alternative: counts by pool (for one pool, `pool` and a number), figures, and why it was not chosen."""
    replicas = numbers.get("replicas", 0)
    counts = replicas if isinstance(replicas, Mapping) else {numbers["pool"]: replicas} if "pool" in numbers else {}
    figures = {name: value for name, value in numbers.items() if name not in ("pool", "replicas")}
    return PlanAlternative(
        replicas={str(getattr(pool, "value", pool)): int(count) for pool, count in counts.items()},
        figures=_numbers(figures),
        reason=str(numbers.get("reason") or numbers.get("not_taken") or ""),
    )


def _numbers(values: Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    """The numbers in nested plain data, by dotted names."""
    numbers: dict[str, float] = {}
    for name, value in values.items():
        key = f"{prefix}{getattr(name, 'value', name)}"
        if isinstance(value, Mapping):
            numbers |= _numbers(value, f"{key}.")
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value):
            numbers[key] = float(value)
    return numbers
