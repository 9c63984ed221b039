"""Intents: requests that are not done yet. An annotation of the graph stores them, so they survive restarts.

A *held* intent waits for something temporary (a roll-out, a cooldown, pending pods) and is then carried out. An intent
that was *refused* for a budget is only remembered: a command in the opposite direction may be paired with it, in one
transfer of GPUs. Both end after their lifetime, with a newer command for the component, or when another client changes
its replicas.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SCALING_INTENTS
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.wire.specifications.base import Count

from dynamo_scaler.budgets.pools import DesiredPool, PoolKey

#: Of one graph, which has 25 components at most, and may have had others. Any user of the graph can write its annotation, and the
#: end of each intent is a write and an event.
_MOST = 50


class Intent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The intent of one component."""

    replicas: Count
    #: The component's replicas at the time of the request. If they differ now, another client has changed them.
    current: Count
    #: Time of the request, Unix time.
    at: float
    command: str
    #: False: refused because of a budget.
    held: bool = False
    #: Why it is not done.
    reason: str = ""
    message: str = ""
    requester: str = ""
    request_reason: str = ""
    #: When the command was sent, by its sender's clock; RFC 3339.
    sent: str = ""

    def is_fresh(self, now: float, lifetime: float) -> bool:
        """Whether its lifetime is not over; an intent from a clock that is far ahead never counts."""
        return abs(now - self.at) < lifetime

    def is_open(self, pool: DesiredPool) -> bool:
        """Whether it is still open: no other client changed the component, and it is not done yet."""
        return self.replicas != pool.current == self.current


@dataclass(frozen=True, slots=True)
class OpenIntent:
    """An intent with its current pool."""

    pool: DesiredPool
    intent: Intent

    @property
    def key(self) -> PoolKey:
        """The pool's key."""
        return self.pool.key


def read(graph: KubeObject) -> dict[str, Intent]:
    """Intents of a graph by component; none where the annotation is not valid, or has more than any graph."""
    intents = json_text.annotated(graph, SCALING_INTENTS, dict[str, Intent])
    return intents if len(intents) <= _MOST else {}


def written(intents: Mapping[str, Intent]) -> str | None:
    """The annotation's text; None if there is nothing to remember."""
    if not intents:
        return None
    return json.dumps(msgspec.to_builtins(dict(sorted(intents.items()))), separators=(",", ":"))
