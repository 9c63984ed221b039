"""Errors that reconcilers report instead of raising them, and which of these are retried."""

import pytest
from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, SeveralRefusals, failure_of, retry_after
from dynamo_pod_builder.reconcilers.requeue import earliest
from dynamo_pod_builder.reconcilers.writes import all_written
from dynamo_pod_builder.render import RenderError
from dynamo_pod_builder.status.component import FAILURES
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.resources import SERVICES
from dynamo_shared.kube.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NamespaceTerminating,
    Unavailable,
    WebhookUnavailable,
)

from tests.building.tables import rows

AWAY = WebhookUnavailable(500, "InternalError", 'failed calling webhook "a.b": EOF')
OLD = {"kind": "DynamoGraphDeployment", "name": "g", "uid": "old", "controller": True}


@pytest.mark.parametrize(
    ("error", "reason", "message", "retry"),
    [
        (InvalidManifest([FieldError("spec.x", "is required")]), "InvalidSpec", "spec.x: is required", None),
        (
            RenderError("A", "type", "is wrong", "change it"),
            "NotDeployable",
            "component A: type: is wrong; change it",
            None,
        ),
        (RenderError("", "", "names no component"), "NotDeployable", "names no component", None),
        (
            NameTaken(SERVICES, {"metadata": {"name": "s"}}),
            "NameTaken",
            "a Service named 's' exists already and has no known owner; "
            "the platform does not change it: delete or rename it, or rename this deployment",
            60.0,
        ),
        (
            PredecessorRemains(SERVICES, {"metadata": {"name": "s", "ownerReferences": [OLD]}}),
            "PredecessorRemains",
            "waiting until Kubernetes has deleted Service s, "
            "which belongs to the DynamoGraphDeployment that had this name before",
            60.0,
        ),
        (Invalid(422, "Invalid", "bad field"), "RefusedByApiServer", "422 Invalid: bad field", 60.0),
        (Forbidden(403, "Forbidden", "quota"), "RefusedByApiServer", "403 Forbidden: quota", 60.0),
        (AWAY, "WebhookUnavailable", '500 InternalError: failed calling webhook "a.b": EOF', 10.0),
    ],
)
def test_each_rejection_is_one_failure(error, reason, message, retry):
    assert isinstance(error, REFUSALS)
    failure = failure_of(error)
    assert (failure.reason, failure.message) == (reason, message)
    assert (reason in FAILURES) != failure.passes, (
        "a graph reads failures back from its components' conditions, by their reason"
    )
    assert retry_after(failure) == retry


@pytest.mark.parametrize(("lasted", "again"), [(-3600.0, 5.0), (0.0, 5.0), (20.0, 20.0), (3600.0, 60.0)])
def test_a_name_that_was_taken_a_moment_ago_is_retried_soon(lasted, again):
    """The user deletes its holder as advised. Holders without labels are not watched, so no event follows."""
    taken = failure_of(NameTaken(SERVICES, {"metadata": {"name": "s"}}))
    assert retry_after(taken, lasted) == again
    assert retry_after(failure_of(Forbidden(403, "Forbidden", "quota")), lasted) == 60.0


def test_nothing_is_retried_without_a_failure():
    assert retry_after(None) is None


@pytest.mark.parametrize(
    "error", [Unavailable(503, "ServiceUnavailable", "away"), Conflict(409, "Conflict", "changed")]
)
def test_an_error_that_a_retry_may_fix_is_raised(error):
    assert not isinstance(error, REFUSALS)


@pytest.mark.parametrize(
    ("delays", "first"), [((), None), ((None,), None), ((3.0, None, 2.0), 2.0), ((None, 0.0), 0.0)]
)
def test_the_shortest_of_several_delays(delays, first):
    assert earliest(*delays) == first


QUOTA = Forbidden(403, "Forbidden", "quota")
TAKEN = NameTaken(SERVICES, {"metadata": {"name": "s"}})
REMAINS = PredecessorRemains(SERVICES, {"metadata": {"name": "s", "ownerReferences": [OLD]}})


def _invalid(number: int) -> Invalid:
    return Invalid(422, "Invalid", f"bad field {number}")


@rows(
    "errors, reason, message",
    {
        "each is named": ([QUOTA, _invalid(1)], "RefusedByApiServer", "403 Forbidden: quota; 422 Invalid: bad field 1"),
        "once each": ([QUOTA, QUOTA], "RefusedByApiServer", "403 Forbidden: quota"),
        "what ends by itself comes last": ([REMAINS, TAKEN], "NameTaken", f"{TAKEN}; {REMAINS}"),
        "what others mend, too": ([AWAY, QUOTA], "RefusedByApiServer", f"403 Forbidden: quota; {AWAY}"),
        "four in full": (
            [_invalid(number) for number in range(4)],
            "RefusedByApiServer",
            "; ".join(f"422 Invalid: bad field {number}" for number in range(4)),
        ),
        "of five the rest is counted": (
            [_invalid(number) for number in range(5)],
            "RefusedByApiServer",
            "422 Invalid: bad field 0; 422 Invalid: bad field 1; 422 Invalid: bad field 2; 2 more objects cannot be written",
        ),
    },
)
def test_several_rejections_are_one_failure(errors, reason, message):
    failure = failure_of(SeveralRefusals(errors))
    assert (failure.reason, failure.message) == (reason, message)
    assert retry_after(failure) == 60.0


@rows(
    "errors, raised",
    {
        "what another try may mend comes first": (
            [QUOTA, Unavailable(503, "ServiceUnavailable", "away"), TAKEN],
            Unavailable,
        ),
        "what goes with its namespace has not failed": (
            [QUOTA, NamespaceTerminating(403, "Forbidden", "ns is being terminated"), TAKEN],
            NamespaceTerminating,
        ),
        "one refusal": ([None, QUOTA, None], Forbidden),
        "several refusals": ([QUOTA, TAKEN], SeveralRefusals),
    },
)
async def test_all_concurrent_writes_end_before_one_error_is_raised(errors, raised):
    ended = []

    async def write(error):
        try:
            if error is not None:
                raise error
        finally:
            ended.append(error)

    with pytest.raises(raised):
        await all_written(write(error) for error in errors)
    assert ended == errors
