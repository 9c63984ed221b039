"""Which exceptions no retry would fix, and the failure that a status reports for each: the same for all reconcilers."""

from collections.abc import Sequence

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.kube.errors import Forbidden, Invalid, WebhookUnavailable

from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_pod_builder.reconcilers.requeue import RETRY_REFUSED, RETRY_TAKEN, RETRY_WEBHOOK
from dynamo_pod_builder.render import RenderError
from dynamo_pod_builder.status.component import PREDECESSOR_REMAINS, WEBHOOK_UNAVAILABLE, Failure

#: The number of simultaneous refusals that are reported in full, so that a status stays short.
_IN_FULL = 3


class SeveralRefusals(Exception):
    """Refusals of objects that were written together: `refusals` has at least two, in the order of the objects."""

    def __init__(self, refusals: Sequence[Exception]) -> None:
        super().__init__(f"{len(refusals)} objects cannot be written")
        self.refusals = refusals


#: All exceptions that are reported instead of raised. Other errors of the API server are raised, and the queue retries.
REFUSALS = (InvalidManifest, RenderError, NameTaken, Invalid, Forbidden, WebhookUnavailable, SeveralRefusals)
_NAME_TAKEN = "NameTaken"
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (InvalidManifest, "InvalidSpec"),
    (RenderError, "NotDeployable"),
    (PredecessorRemains, PREDECESSOR_REMAINS),
    (NameTaken, _NAME_TAKEN),
    (Invalid, "RefusedByApiServer"),
    (Forbidden, "RefusedByApiServer"),
    (WebhookUnavailable, WEBHOOK_UNAVAILABLE),
)
#: Failures that may pass without a change of the object, and the seconds until the next try.
_AGAIN = {
    PREDECESSOR_REMAINS: RETRY_REFUSED,
    "RefusedByApiServer": RETRY_REFUSED,
    WEBHOOK_UNAVAILABLE: RETRY_WEBHOOK,
}


def failure_of(error: Exception) -> Failure:
    """The failure for one of `REFUSALS`. Of several, those that a user must fix come before those that pass."""
    if isinstance(error, SeveralRefusals):
        return _joined(sorted(map(failure_of, error.refusals), key=lambda failure: failure.passes))
    return Failure(next(reason for kind, reason in _REASONS if isinstance(error, kind)), str(error))


def retry_after(failure: Failure | None, lasted: float = RETRY_REFUSED) -> float | None:
    """Seconds after which a retry of the same object may succeed; None if it cannot, or if there is no failure.

    `lasted`: seconds since the object became unavailable: at first, a name that is taken is tried often.
    """
    if failure is None:
        return None
    if failure.reason == _NAME_TAKEN:
        return min(RETRY_REFUSED, max(RETRY_TAKEN, lasted))
    return _AGAIN.get(failure.reason)


def _joined(failures: Sequence[Failure]) -> Failure:
    messages = list(dict.fromkeys(failure.message for failure in failures))
    more = len(messages) - _IN_FULL
    rest = [f"{more} more objects cannot be written"] if more > 1 else messages[_IN_FULL:]
    return Failure(failures[0].reason, "; ".join([*messages[:_IN_FULL], *rest]))
