"""Storage of checkpoints in the settings: complete or absent."""

import pytest
from dynamo_shared.runtime.settings.operator import Checkpoint
from pydantic import ValidationError


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"basePath": "/x"}, "pvcName is required"),
        ({"pvcName": "c", "basePath": "x"}, "basePath must be an absolute path"),
        ({"pvcName": "c", "basePath": "/x", "create": True}, "size is required"),
    ],
)
def test_an_incomplete_claim_is_rejected_if_it_is_used(claim: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Checkpoint.model_validate({"enabled": True, "storage": {"type": "pvc", "pvc": claim}})
    for unused in (
        {"storage": {"type": "pvc", "pvc": claim}},
        {"enabled": True, "storage": {"pvc": claim}},
    ):
        assert Checkpoint.model_validate(unused).storage.pvc.create is claim.get("create", False)


def test_a_complete_claim_is_accepted() -> None:
    claim = {"pvcName": "c", "basePath": "/x", "create": True, "size": "1Ti"}
    result = Checkpoint.model_validate({"enabled": True, "storage": {"type": "pvc", "pvc": claim}})
    assert result.storage.pvc.size == "1Ti"
