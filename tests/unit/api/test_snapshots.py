"""Reading objects of Snapshot's kinds, whose schemas belong to another project."""

from typing import Any

import pytest
from dynamo_shared.api import snapshots
from dynamo_shared.api.objects import KubeObject


def test_a_line_with_many_switches_is_read_once() -> None:
    """Removing each of them from the list took ten seconds for a graph of a megabyte."""
    switches = ["-b"] * 300_000
    assert snapshots.can_be_restored(["python3", *switches, "-m", "dynamo.vllm", "--model", "m"])
    assert not snapshots.can_be_restored(["python3", *switches])


@pytest.mark.parametrize(
    ("line", "can"),
    [
        (["python3", "-m", "dynamo.vllm"], True),
        (["/opt/bin/python3.12", "-u", "-m", "dynamo.sglang"], True),
        (["python3", "-m", "vllm"], False),
        (["python3", "-m"], False),
        (["python3", 5, "-m", "dynamo.vllm"], False),
        (["python3", "-m", ["dynamo.vllm"]], False),
        ([5], False),
        ([], False),
    ],
)
def test_lines_that_start_a_waiting_engine(line: list[Any], can: bool) -> None:
    assert snapshots.can_be_restored(line) is can


@pytest.mark.parametrize("name", ["../x", ".", "X", "x" * 254, 5, None, ["x"]])
def test_an_invalid_name_is_ignored(name: Any) -> None:
    of_job: KubeObject = {"status": {"podSnapshotName": name}}
    of_snapshot = {"status": {"boundSnapshotContentName": name}, "spec": {"source": {"podRef": {"containers": [name]}}}}
    assert snapshots.snapshot_name(of_job) == ""
    assert snapshots.content_of(of_snapshot) == ""
    assert snapshots.captured_container(of_snapshot) == ""


@pytest.mark.parametrize("status", [None, 5, {"conditions": 5}, {"conditions": [5, {}, {"type": ["Ready"]}]}])
def test_a_malformed_status_is_ignored(status: Any) -> None:
    obj: KubeObject = {"metadata": {}, "status": status}
    assert not snapshots.is_completed(obj)
    assert not snapshots.is_ready(obj)
    assert snapshots.failure_of(obj) is None


def test_reason_and_message_of_a_failure_are_texts() -> None:
    odd: KubeObject = {"status": {"conditions": [{"type": "Failed", "status": "True", "reason": 5, "message": ["x"]}]}}
    assert snapshots.failure_of(odd) == ("Failed", "")
