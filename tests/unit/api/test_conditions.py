"""Conditions that the API server accepts, wherever their reason comes from."""

from datetime import UTC, datetime

import pytest
from dynamo_shared.api.conditions import MESSAGE_LIMIT, condition
from dynamo_shared.api.meta import StatusCondition

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "written"),
    [
        pytest.param("all_resources_are_ready", "all_resources_are_ready", id="a word"),
        # https://github.com/NVIDIA/k8s-device-plugin/issues/153
        pytest.param("OutOfnvidia.com/gpu", "OutOfnvidia_com_gpu", id="of a kubelet, with the name of a resource"),
        pytest.param("context deadline exceeded:", "context_deadline_exceeded", id="a sentence"),
        pytest.param("3 tries", "tries", id="a number first"),
        pytest.param("später", "sp_ter", id="not ASCII"),
        pytest.param("...", "Unknown", id="nothing to keep"),
        pytest.param("", "Unknown", id="empty"),
        pytest.param("a" * 2000, "a" * 1024, id="long"),
    ],
)
def test_a_reason_is_one_word(given: str, written: str) -> None:
    entry = condition([], "Ready", status=False, reason=given, message="", generation=1, now=NOW)
    assert entry["reason"] == written
    StatusCondition.model_validate(entry)


@pytest.mark.parametrize("part", ["a word ", "token=a,", "//a@b "])
def test_the_length_of_a_message_is_accepted_by_the_api_server(part: str) -> None:
    """The replacement of a short secret is longer than the secret."""
    entry = condition([], "Ready", status=False, reason="R", message=part * 9000, generation=1, now=NOW)
    assert len(entry["message"]) <= MESSAGE_LIMIT
    assert "=a" not in entry["message"]
