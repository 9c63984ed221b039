"""Events of workers and of models: who serves what, where."""

from __future__ import annotations

from dynamo_shared.bus.specifications.base import EventSpec

EVENTS: tuple[EventSpec, ...] = ()
