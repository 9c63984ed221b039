"""The Events and CloudEvents of graphs, restarts and checkpoints."""

from typing import Any

import pytest
from dynamo_pod_builder import events
from dynamo_shared.api.objects import KubeObject

from tests.unit.announced import Announced

GRAPH: KubeObject = {
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "graph", "namespace": "ns", "uid": "u", "generation": 1},
    "spec": {"components": []},
}
CHECKPOINT: KubeObject = {
    **GRAPH,
    "kind": "DynamoCheckpoint",
    "spec": {"identity": {"model": "m", "backendFramework": "vllm"}},
}


def status(state: str, reason: str) -> KubeObject:
    ready = {"type": "Ready", "status": "False", "reason": reason, "message": "because"}
    return {"state": state, "conditions": [ready], "components": {}}


@pytest.mark.parametrize(
    ("state", "reason", "lines", "event"),
    [
        ("successful", "all_resources_are_ready", ["Normal Ready Reconcile: All components serve"], "ready"),
        ("failed", "InvalidSpec", ["Warning Failed Reconcile: because"], "failed"),
        ("pending", "Unschedulable", ["Warning Unschedulable Reconcile: because"], "progressing"),
        ("pending", "some_resources_are_not_ready", [], "progressing"),
    ],
)
def test_events_of_a_changed_graph(state: str, reason: str, lines: list[str], event: str) -> None:
    announced = Announced()
    announced.announce(GRAPH, events.graph_changed(GRAPH, status(state, reason)))
    assert (announced.lines, announced.events) == (lines, [event])
    assert announced.facts[0].identity == reason


@pytest.mark.parametrize(
    ("phase", "line"),
    [
        ("Restarting", "Normal RestartStarted Restart: Restart 7 started"),
        ("Completed", "Normal RestartCompleted Restart: Restart 7 completed"),
        (
            "Superseded",
            "Warning RestartSuperseded Restart: A rolling update of workers superseded restart 7; "
            "request another restart after the update",
        ),
    ],
)
def test_events_of_the_phases_of_a_restart(phase: str, line: str) -> None:
    announced = Announced()
    announced.announce(GRAPH, events.restart_entered({"observedID": "7", "phase": phase}))
    assert (announced.lines, announced.events) == ([line], [])


@pytest.mark.parametrize(
    ("phase", "entered", "reason", "lines", "published"),
    [
        ("Creating", True, "JobRunning", ["Normal CheckpointJobCreated Checkpoint: so"], ["creating"]),
        ("Creating", False, "JobRunning", [], []),
        ("Creating", False, "ImagePull", ["Warning ImagePull Checkpoint: so"], []),
        ("Pending", True, "NoStorage", ["Warning CheckpointWaiting Checkpoint: NoStorage: so"], []),
        ("Ready", True, "JobSucceeded", ["Normal CheckpointReady Checkpoint: so"], ["ready"]),
        ("Failed", True, "JobFailed", ["Warning CheckpointFailed Checkpoint: JobFailed: so"], ["failed"]),
    ],
)
def test_events_of_a_changed_checkpoint(
    phase: str, entered: bool, reason: str, lines: list[str], published: list[str]
) -> None:
    announced, now = Announced(), {"phase": phase, "message": "so", "identityHash": "h"}
    announced.announce(CHECKPOINT, events.checkpoint_changed(CHECKPOINT, now, reason, entered=entered))
    assert (announced.lines, announced.events) == (lines, published)
    data: list[Any] = [each.data for each in announced.facts if each.event]
    assert [(each.reason, each.identity_hash) for each in data] == [(reason, "h")] * len(published)
