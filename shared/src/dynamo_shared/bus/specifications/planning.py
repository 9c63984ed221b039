"""Events of deployment requests and of plans: what was decided, from what, and why."""

from __future__ import annotations

from dynamo_shared.bus.specifications.base import EventSpec

EVENTS: tuple[EventSpec, ...] = ()
