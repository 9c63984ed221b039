"""Which intents there are after a decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from dynamo_shared.api.resources import ObjectKey

from dynamo_scaler.budgets.intents import Intent
from dynamo_scaler.budgets.pools import PoolKey
from dynamo_scaler.commands.asking import Ask
from dynamo_scaler.commands.deciding import CEILING, FLOOR, Decision, Outcome
from dynamo_scaler.safety.verdict import Verdict

Remembered = dict[ObjectKey, dict[str, Intent | None]]
"""By graph and component; None: forget it."""

#: An intent that is asked for again and again is written again only after this part of its life time.
_REFRESH = 0.25
#: Characters of a message that are remembered: a graph has up to 25 components, and its annotations a limit.
_LONGEST = 400


def intents_after(
    ask: Ask, decision: Decision, known: Mapping[PoolKey, Intent], now: float, lifetime: float
) -> Remembered:
    """What is to be remembered of a decision's components, `known` being what is remembered of them.

    The newest request of a component counts, so that one which is done, or refused for good, ends earlier ones.
    """
    found: Remembered = {}
    for verdict in decision.verdicts:
        key = verdict.pool.key
        intent = _intent(ask, decision, verdict, now)
        before = known.get(key)
        if (
            intent is not None
            and before is not None
            and _same(intent, before)
            and now < before.at + _REFRESH * lifetime
        ):
            continue
        found.setdefault(key.graph_key, {})[key.component] = intent
    for verdict in decision.partners:
        key, intent = verdict.pool.key, decision.intents[verdict.pool.key]
        rest = msgspec.structs.replace(intent, current=verdict.allowed) if verdict.held else None
        found.setdefault(key.graph_key, {})[key.component] = rest
    return found


def promised(decision: Decision, first: frozenset[PoolKey]) -> Remembered:
    """Partners whose turn comes after the first write, as held: were we to die in between, they are done all the same."""
    found: Remembered = {}
    for verdict in decision.partners:
        key, intent = verdict.pool.key, decision.intents[verdict.pool.key]
        if key not in first and not intent.held:
            found.setdefault(key.graph_key, {})[key.component] = msgspec.structs.replace(intent, held=True)
    return found


def rest_of(remembered: Remembered, decision: Decision) -> Remembered:
    """What is left to do of components that a first part is done of, as it stands before that: it may be all that is done."""
    found: Remembered = {}
    for verdict in decision.verdicts:
        key = verdict.pool.key
        intent = remembered.get(key.graph_key, {}).get(key.component)
        # An adapter's number and the graph's annotation are two writes; without an adapter they are one.
        if intent is not None and verdict.changes and verdict.pool.adapter:
            before = msgspec.structs.replace(intent, current=verdict.pool.current)
            found.setdefault(key.graph_key, {})[key.component] = before
    return found


def _intent(ask: Ask, decision: Decision, verdict: Verdict, now: float) -> Intent | None:
    applied = decision.outcome is Outcome.APPLY
    current = verdict.allowed if applied else verdict.pool.current
    refused = decision.outcome is Outcome.REFUSE
    if verdict.wanted == current or (refused and decision.reason not in {CEILING, FLOOR}):
        return None
    return Intent(
        replicas=verdict.wanted,
        current=current,
        at=now,
        command=ask.command,
        held=not refused,
        reason=verdict.reason or decision.reason,
        message=(verdict.message or decision.message)[:_LONGEST],
        requester=ask.requester,
        request_reason=ask.reason,
        sent=ask.sent,
    )


def _same(one: Intent, other: Intent) -> bool:
    return (one.replicas, one.current, one.held, one.reason) == (
        other.replicas,
        other.current,
        other.held,
        other.reason,
    )
