"""No known engine: frontends, planners, custom workers."""

from __future__ import annotations

from dynamo_pod_builder.render.backends.base import Backend


class Noop(Backend):
    """Leaves pods as they are."""
