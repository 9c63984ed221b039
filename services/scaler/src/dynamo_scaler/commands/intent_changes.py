"""How a decision changes intents. Pure."""

from collections.abc import Mapping
from operator import attrgetter

import msgspec
from dynamo_shared.api.resources import ObjectKey

from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import PoolKey
from dynamo_scaler.commands.decision import CEILING, FLOOR, CommandDecision, ScaleOutcome
from dynamo_scaler.commands.request import ScaleRequest
from dynamo_scaler.safety.verdict import PoolVerdict

IntentChanges = dict[ObjectKey, dict[str, Intent | None]]
"""By graph and component; None: remove it."""

#: A repeatedly requested intent is written again only after this fraction of its lifetime.
_REFRESH = 0.25
#: The fields that distinguish an intent from the previous intent of the component.
_said = attrgetter("replicas", "current", "held", "reason", "requester")
#: Length limit of a remembered message: a graph has up to 25 components, and its annotations have a size limit.
#: Characters.
_LONGEST = 400


def intents_after(
    request: ScaleRequest, decision: CommandDecision, known: Mapping[PoolKey, Intent], now: float, lifetime: float
) -> IntentChanges:
    """The intents of a decision's components after the decision; `known`: their intents before it.

    The newest request of a component counts, so a request that is done, or permanently refused, ends earlier ones.
    """
    changes: IntentChanges = {}
    intended = {each.pool.key: _intent(request, decision, each, now) for each in decision.verdicts}
    if not _are_remembered(intended, known, since=now - _REFRESH * lifetime):
        for key, intent in intended.items():
            changes.setdefault(key.graph_key, {})[key.component] = intent
    for verdict in decision.partners:
        key, intent = verdict.pool.key, decision.intents[verdict.pool.key]
        rest = msgspec.structs.replace(intent, current=verdict.allowed) if verdict.held else None
        changes.setdefault(key.graph_key, {})[key.component] = rest
    return changes


def _are_remembered(
    intended: Mapping[PoolKey, Intent | None], known: Mapping[PoolKey, Intent], *, since: float
) -> bool:
    """Whether one command requested the same recently. Requests of one command stay together."""
    if len({each.command for each in known.values()}) > 1:
        return False
    pairs = ((intent, known.get(key)) for key, intent in intended.items())
    return all(
        before is intent if intent is None or before is None else before.at > since and _said(before) == _said(intent)
        for intent, before in pairs
    )


def promised(decision: CommandDecision, first: frozenset[PoolKey]) -> IntentChanges:
    """Partners that are written after the first write, as held intents: if the scaler dies in between, they are still
    done.
    """
    changes: IntentChanges = {}
    for verdict in decision.partners:
        key, intent = verdict.pool.key, decision.intents[verdict.pool.key]
        if key not in first and not intent.held:
            changes.setdefault(key.graph_key, {})[key.component] = msgspec.structs.replace(intent, held=True)
    return changes


def rest_of(remembered: IntentChanges, decision: CommandDecision) -> IntentChanges:
    """The rest to do for components whose first part is being written, stored before that write: the scaler may stop
    after it.
    """
    changes: IntentChanges = {}
    for verdict in decision.verdicts:
        key = verdict.pool.key
        intent = remembered.get(key.graph_key, {}).get(key.component)
        # An adapter's number and the graph's annotation are two writes; without an adapter they are one write.
        if intent is not None and verdict.changes and verdict.pool.adapter:
            before = msgspec.structs.replace(intent, current=verdict.pool.current)
            changes.setdefault(key.graph_key, {})[key.component] = before
    return changes


def withdrawn(decision: CommandDecision, rest: IntentChanges, done: frozenset[PoolKey]) -> IntentChanges:
    """A refused write ends the command: neither its rest nor the pending parts of its partners are done."""
    changes: IntentChanges = {key: dict.fromkeys(names) for key, names in rest.items()}
    for verdict in decision.partners:
        key = verdict.pool.key
        if key not in done:
            changes.setdefault(key.graph_key, {})[key.component] = decision.intents[key]
    return changes


def _intent(request: ScaleRequest, decision: CommandDecision, verdict: PoolVerdict, now: float) -> Intent | None:
    applied = decision.outcome is ScaleOutcome.APPLY
    current = verdict.allowed if applied else verdict.pool.current
    refused = decision.outcome is ScaleOutcome.REFUSE
    if verdict.desired == current or (refused and decision.reason not in {CEILING, FLOOR}):
        return None
    return Intent(
        replicas=verdict.desired,
        current=current,
        at=now,
        command=request.command,
        held=not refused,
        reason=verdict.reason or decision.reason,
        message=(verdict.message or decision.message)[:_LONGEST],
        requester=request.requester,
        request_reason=request.reason,
        sent=request.sent,
    )
