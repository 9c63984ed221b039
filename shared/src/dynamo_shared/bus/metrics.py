"""All metrics of the bus. They are per process, in prometheus_client's default registry."""

import math
from collections.abc import Callable
from operator import attrgetter
from typing import Any
from weakref import WeakSet

from prometheus_client import Counter, Gauge, Histogram

CONNECTED = Gauge(
    "dynamo_bus_connected", "Whether this process is connected to NATS: 1 or 0; NaN if it does not use NATS"
)
# The alert fires below 1, and NaN is not below 1.
CONNECTED.set(math.nan)
RECONNECTS = Counter("dynamo_bus_reconnects", "Reconnections to NATS")
PUBLISH_ERRORS = Counter(
    "dynamo_bus_publish_errors", "Messages that NATS did not acknowledge, by cause", ["stream", "cause"]
)
RESTARTED = Counter("dynamo_bus_subscription_restarts", "Subscriptions that were recreated, by stream", ["stream"])

EVENTS_WAITING = Gauge("dynamo_events_waiting", "CloudEvents that wait for the acknowledgement of NATS")
EVENTS_PUBLISHED = Counter("dynamo_events_published", "CloudEvents that NATS acknowledged")
EVENTS_DROPPED = Counter(
    "dynamo_events_dropped",
    "CloudEvents that were dropped, by cause: full (too many were waiting) or refused (by NATS)",
    ["cause"],
)
#: Created before the first count: Prometheus shows no increase for a series that starts with its first event.
DROPPED_BY_CAUSE = {cause: EVENTS_DROPPED.labels(cause) for cause in ("full", "refused")}

STATE_WAITING = Gauge("dynamo_state_waiting", "Objects that wait to be published to STATE")
STATE_PUBLISHED = Counter("dynamo_state_published", "Objects published to STATE", ["resource", "change"])
STATE_CORRECTED = Counter(
    "dynamo_state_corrected",
    "Objects in STATE that another client had changed and that the watcher corrected",
    ["resource"],
)
STATE_DAMAGED = Counter(
    "dynamo_state_damaged", "Messages in STATE that readers ignored because subject, headers and payload do not match"
)
STATE_LOST = Counter("dynamo_state_lost", "How often STATE lost messages, so that all objects were published again")
STATE_LATENCY = Histogram(
    "dynamo_state_publish_seconds",
    "Time from a change's arrival from the API server to its acknowledgement by STATE, in seconds",
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30),
)

COMMANDS_HANDLED = Counter("dynamo_commands_handled", "Commands, by result", ["service", "verb", "result"])


def _total_of(gauge: Gauge, figure: Callable[[Any], int]) -> WeakSet[Any]:
    """Existing publishers whose figures the gauge sums up: a process may have one per service."""
    counted: WeakSet[Any] = WeakSet()
    gauge.set_function(lambda: float(sum(map(figure, counted))))
    return counted


EVENT_PUBLISHERS = _total_of(EVENTS_WAITING, attrgetter("waiting"))
STATE_PUBLISHERS = _total_of(STATE_WAITING, attrgetter("backlog"))
