"""Delays until a key is reconciled again without an event."""

#: A refusal may come from a policy, a quota or another object, which can change without an event. Seconds.
RETRY_REFUSED = 60.0
#: The holder of a needed name is often deleted soon, as the refusal asks, and not every kind is watched. Seconds.
RETRY_TAKEN = 5.0
#: A webhook whose pod is replaced is back soon, and no event reports it. Seconds.
RETRY_WEBHOOK = 10.0
#: Pods show the progress of a restart if a workload does not, and not every change of a pod is an event. Seconds.
RESTART_INTERVAL = 10.0

#: Only the Events of a StatefulSet or a Job say why it lacks pods, and they are not watched. Seconds.
LACKING_INTERVAL = 15.0
#: A workload's own controller usually observes a change within moments, unless it is busy. Only after this time does
#: the status report that it has not: the controller's first report is a change anyway, and one write then has both.
#: Seconds.
OBSERVED_WITHIN = 60.0


def earliest(*delays: float | None) -> float | None:
    """The shortest of several delays, or None."""
    return min((delay for delay in delays if delay is not None), default=None)
