"""The wire format: reviews as an API server of Kubernetes 1.35 sent them, and answers as it reads them."""

import base64
import json
from pathlib import Path

import pytest
from dynamo_admission.wire import (
    BadReview,
    ReviewStatus,
    admission_answer,
    conversion_answer,
    conversion_failure,
    encoded,
    read_admission,
    read_conversion,
)

RECORDED = Path(__file__).parent / "wire"


def recorded(name: str) -> bytes:
    return (RECORDED / f"{name}.json").read_bytes()


def test_a_creation_is_read():
    request = read_admission(recorded("admission-create")).decoded()
    assert (request.operation, request.namespace, request.name) == ("CREATE", "default", "chat")
    assert (request.kind.group, request.kind.version, request.kind.kind) == (
        "nvidia.com", "v1alpha1", "DynamoGraphDeployment",
    )  # fmt: skip
    assert request.user_info.username == "admin"
    assert request.sub_resource == ""
    assert request.old_object is None
    assert request.object == json.loads(recorded("admission-create"))["request"]["object"]


def test_an_update_is_read_with_the_old_object():
    request = read_admission(recorded("admission-update")).decoded()
    assert request.operation == "UPDATE"
    assert request.object["metadata"]["labels"] == {"team": "a"}
    assert "labels" not in request.old_object["metadata"]


def test_objects_to_convert_are_read():
    request = read_conversion(recorded("conversion"))
    assert request.desired_api_version == "nvidia.com/v1alpha1"
    assert [obj["apiVersion"] for obj in request.decoded()] == ["nvidia.com/v1beta1"]
    assert len(request.uid) == 36


def test_a_review_of_the_other_kind_is_junk():
    with pytest.raises(BadReview):
        read_admission(recorded("conversion"))
    with pytest.raises(BadReview):
        read_conversion(recorded("admission-create"))


def test_an_accepting_answer_is_short():
    assert json.loads(admission_answer("u")) == {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": "u", "allowed": True},
    }


def test_an_accepting_answer_with_a_patch_and_warnings():
    patch = [{"op": "add", "path": "/a", "value": 1}]
    response = json.loads(admission_answer("u", patch=patch, warnings=("careful",)))["response"]
    assert json.loads(base64.b64decode(response.pop("patch"))) == patch
    assert response == {"uid": "u", "allowed": True, "patchType": "JSONPatch", "warnings": ["careful"]}


def test_a_rejecting_answer_has_a_status():
    refusal = ReviewStatus("Failure", "spec.a: is wrong", "Invalid", 422)
    assert json.loads(admission_answer("u", refusal))["response"] == {
        "uid": "u",
        "allowed": False,
        "status": {"status": "Failure", "message": "spec.a: is wrong", "reason": "Invalid", "code": 422},
    }


def test_answers_of_successful_and_failed_conversions():
    done = json.loads(conversion_answer("u", [encoded({"kind": "A"})]))
    assert (done["apiVersion"], done["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    assert done["response"] == {"uid": "u", "result": {"status": "Success"}, "convertedObjects": [{"kind": "A"}]}
    failed = json.loads(conversion_failure("u", "why"))["response"]
    assert failed == {"uid": "u", "result": {"status": "Failure", "message": "why"}}
