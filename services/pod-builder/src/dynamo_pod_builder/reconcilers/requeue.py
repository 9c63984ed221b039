"""When a key is due again though no event will ask for it."""

from __future__ import annotations

#: A refusal may be a policy, a quota or another object, which can change without an event of ours. Seconds.
RETRY_REFUSED = 60.0
#: How long a model may be without its Service after the component that owned it went. Seconds.
LOOK_AT_SHARED = 30.0
#: Pods show the progress of a restart where a workload does not, and not every change of a pod is an event. Seconds.
LOOK_AT_RESTART = 10.0


def earliest(*delays: float | None) -> float | None:
    """The first of several delays; None where there is none."""
    return min((delay for delay in delays if delay is not None), default=None)
