"""What reconcilers report instead of raising it, and which of that is tried again."""

from __future__ import annotations

import pytest
from dynamo_pod_builder.errors import NameTaken, PredecessorRemains
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of, retry_after
from dynamo_pod_builder.reconcilers.requeue import earliest
from dynamo_pod_builder.render import NotDeployable, RenderError
from dynamo_pod_builder.status.component import FAILURES
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.resources import SERVICES
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, Unavailable

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
        (NotDeployable("", "names no component"), "NotDeployable", "names no component", None),
        (
            NameTaken(SERVICES, {"metadata": {"name": "s"}}),
            "NameTaken",
            "a Service named 's' exists already and has no known owner; "
            "it is left as it is: delete or rename it, or rename this deployment",
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
    ],
)
def test_each_refusal_becomes_one_failure(error, reason, message, retry):
    assert isinstance(error, REFUSALS)
    failure = failure_of(error)
    assert (failure.reason, failure.message) == (reason, message)
    assert (reason in FAILURES) != failure.passes, (
        "a graph reads failures back from its components' conditions, by their reason"
    )
    assert retry_after(failure) == retry


def test_without_a_failure_nothing_is_tried_again():
    assert retry_after(None) is None


@pytest.mark.parametrize(
    "error", [Unavailable(503, "ServiceUnavailable", "away"), Conflict(409, "Conflict", "changed")]
)
def test_what_another_try_may_mend_is_raised(error):
    assert not isinstance(error, REFUSALS)


@pytest.mark.parametrize(
    ("delays", "first"), [((), None), ((None,), None), ((3.0, None, 2.0), 2.0), ((None, 0.0), 0.0)]
)
def test_the_first_of_several_delays(delays, first):
    assert earliest(*delays) == first
