"""Delays until a key is reconciled again without an event."""

#: A refusal may be a policy, a quota or another object, which can change without an event. Seconds.
RETRY_REFUSED = 60.0
#: What has a name that is needed is often deleted within moments, as the refusal asks, and not everything is watched. Seconds.
RETRY_TAKEN = 5.0
#: A webhook whose pod is replaced is back soon, and nothing says when. Seconds.
RETRY_WEBHOOK = 10.0
#: How long a model may be without its Service after the component that owned it went. Seconds.
SHARED_INTERVAL = 30.0
#: Pods show the progress of a restart where a workload does not, and not every change of a pod is an event. Seconds.
RESTART_INTERVAL = 10.0

#: Why a StatefulSet lacks pods only its Events say, which are not watched. Seconds.
LACKING_INTERVAL = 15.0
#: A workload's own controller observes it within moments, or has many of them to do. That it has not yet is reported as late
#: as this: what it reports then is news, and one write has both. Seconds.
OBSERVED_WITHIN = 60.0


def earliest(*delays: float | None) -> float | None:
    """The first of several delays, or None."""
    return min((delay for delay in delays if delay is not None), default=None)
