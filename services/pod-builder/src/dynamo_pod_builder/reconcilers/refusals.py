"""What every reconciler makes of an exception that another try would not mend: a failure that its status reports."""

from __future__ import annotations

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.kube.errors import Forbidden, Invalid

from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_pod_builder.reconcilers.requeue import RETRY_REFUSED
from dynamo_pod_builder.render import RenderError
from dynamo_pod_builder.status.component import PREDECESSOR_REMAINS, Failure

#: All that is reported instead of raised. Other errors of the API server pass, and the queue comes back to the key.
REFUSALS = (InvalidManifest, RenderError, NameTaken, Invalid, Forbidden)
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (InvalidManifest, "InvalidSpec"),
    (RenderError, "NotDeployable"),
    (PredecessorRemains, PREDECESSOR_REMAINS),
    (NameTaken, "NameTaken"),
    (Invalid, "RefusedByApiServer"),
    (Forbidden, "RefusedByApiServer"),
)
#: Failures that may pass without a change of the object itself.
_PASSING = frozenset({PREDECESSOR_REMAINS, "NameTaken", "RefusedByApiServer"})


def failure_of(error: Exception) -> Failure:
    """The failure that one of `REFUSALS` stands for."""
    return Failure(next(reason for kind, reason in _REASONS if isinstance(error, kind)), str(error))


def retry_after(failure: Failure | None) -> float | None:
    """Seconds after which another try may succeed though the object is the same; None where it cannot, or none is needed."""
    return RETRY_REFUSED if failure is not None and failure.reason in _PASSING else None
