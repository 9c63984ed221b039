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

#: An intent that is asked for again and again is written again only after this part of its life time.
_REFRESH = 0.25
#: What makes an intent another one than that of the same component before it.
_said = attrgetter("replicas", "current", "held", "reason", "requester")
#: Characters of a message that are remembered: a graph has up to 25 components, and its annotations a limit.
_LONGEST = 400


def intents_after(
    request: ScaleRequest, decision: CommandDecision, known: Mapping[PoolKey, Intent], now: float, lifetime: float
) -> IntentChanges:
    """What is to be remembered of a decision's components, `known` being what is remembered of them.

    The newest request of a component counts, so that one which is done, or refused for good, ends earlier ones.
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
    """Whether one command asked for the same, and not long ago. What is asked for together stays one command's."""
    if len({each.command for each in known.values()}) > 1:
        return False
    pairs = ((intent, known.get(key)) for key, intent in intended.items())
    return all(
        before is intent if intent is None or before is None else before.at > since and _said(before) == _said(intent)
        for intent, before in pairs
    )


def promised(decision: CommandDecision, first: frozenset[PoolKey]) -> IntentChanges:
    """Partners whose turn comes after the first write, as held: were we to die in between, they are done all the same."""
    changes: IntentChanges = {}
    for verdict in decision.partners:
        key, intent = verdict.pool.key, decision.intents[verdict.pool.key]
        if key not in first and not intent.held:
            changes.setdefault(key.graph_key, {})[key.component] = msgspec.structs.replace(intent, held=True)
    return changes


def rest_of(remembered: IntentChanges, decision: CommandDecision) -> IntentChanges:
    """What is left to do of components that a first part is done of, as it stands before that: it may be all that is done."""
    changes: IntentChanges = {}
    for verdict in decision.verdicts:
        key = verdict.pool.key
        intent = remembered.get(key.graph_key, {}).get(key.component)
        # An adapter's number and the graph's annotation are two writes; without an adapter they are one.
        if intent is not None and verdict.changes and verdict.pool.adapter:
            before = msgspec.structs.replace(intent, current=verdict.pool.current)
            changes.setdefault(key.graph_key, {})[key.component] = before
    return changes


def withdrawn(decision: CommandDecision, rest: IntentChanges, done: frozenset[PoolKey]) -> IntentChanges:
    """A write was refused, and that ends the command: its rest is not done, nor what was promised to partners until then."""
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
