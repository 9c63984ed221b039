"""The graph of a request is followed by what is cached of it, and counts as deleted where the API server says so."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_profiler.requests.deploying import GraphDeployer
from dynamo_profiler.requests.reconciler import RequestReconciler
from dynamo_profiler.requests.status import StatusDraft
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube.errors import Forbidden, NamespaceTerminating, NotFound, Unavailable
from dynamo_shared.state.cache import ObjectCache

from tests.unit.announced import Announced
from tests.unit.written import Written


def graph(uid: str) -> dict[str, Any]:
    metadata = {
        "name": "qwen-dgd",
        "namespace": "ns",
        "uid": f"graph-of-{uid}",
        "resourceVersion": "7",
        "annotations": {keys.REQUEST_UID: uid},
    }
    return {"metadata": metadata, "status": {"state": "successful"}}


class Api:
    """An API server with one graph, or none."""

    def __init__(self, stored: dict[str, Any] | None) -> None:
        self.stored = stored

    async def get(self, _resource: Resource, key: ObjectKey) -> dict[str, Any]:
        if self.stored is None:
            raise NotFound(404, "NotFound", key.name)
        return self.stored


@pytest.mark.parametrize("phase", ["Deploying", "Deployed"])
@pytest.mark.parametrize(
    ("cached", "stored", "becomes"),
    [
        (graph("u-1"), None, "Deployed"),
        # Another replica created it, and news of it is late.
        (None, graph("u-1"), "Deployed"),
        # So is the news that the one of an earlier request is gone.
        (graph("u-0"), graph("u-1"), "Deployed"),
        (None, None, "Failed"),
        (None, graph("u-0"), "Failed"),
        (graph("u-0"), graph("u-0"), "Failed"),
    ],
)
async def test_a_graph_is_deleted_where_the_api_server_has_none(
    phase: str, cached: dict[str, Any] | None, stored: dict[str, Any] | None, becomes: str
) -> None:
    cache = ObjectCache()
    if cached is not None:
        cache.put(DYNAMO_GRAPH_DEPLOYMENTS, cached)
    created = {"type": "DeploymentReady", "status": "False", "reason": "DeploymentInProgress", "message": ""}
    obj = {
        "metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1"},
        "status": {
            "phase": phase,
            "dgdName": "qwen-dgd",
            "conditions": [{**created, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }
    draft = StatusDraft(obj, datetime(2026, 1, 2, tzinfo=UTC))
    deployer = GraphDeployer(Api(stored), cache, Announced())  # type: ignore[arg-type]
    await (deployer.follow if phase == "Deployed" else deployer.advance)(obj, draft)
    assert draft.status["phase"] == becomes


SELECTED = {"metadata": {"name": "qwen-dgd"}, "spec": {}}


class Refusing(Api):
    """An API server that creates no graph."""

    def __init__(self, error: Exception) -> None:
        super().__init__(None)
        self.error = error

    async def create(self, _resource: Resource, _obj: dict[str, Any]) -> dict[str, Any]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "phase", "announced"),
    [
        (Forbidden(403, "Forbidden", "exceeded quota"), "Failed", ["DeploymentRejected"]),
        (Unavailable(503, "ServiceUnavailable", "away"), "Deploying", ["DeploymentCreationFailed"]),
        # The request goes with its namespace, and has not failed.
        (NamespaceTerminating(403, "Forbidden", "ns is being terminated"), "Deploying", []),
    ],
)
async def test_a_request_fails_for_what_the_api_server_refuses(
    error: Exception, phase: str, announced: list[str]
) -> None:
    obj = {
        "metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1"},
        "status": {"phase": "Deploying", "dgdName": "qwen-dgd", "profilingResults": {"selectedConfig": SELECTED}},
    }
    draft, events = StatusDraft(obj, datetime(2026, 1, 2, tzinfo=UTC)), Announced()
    deployer = GraphDeployer(Refusing(error), ObjectCache(), events)  # type: ignore[arg-type]
    with contextlib.suppress(Unavailable, NamespaceTerminating):
        await deployer.advance(obj, draft)
    assert draft.status["phase"] == phase
    assert [line.split()[1] for line in events.lines] == announced


@pytest.mark.parametrize(
    ("reason", "made", "state", "becomes"),
    [
        ("DeploymentDeleted", graph("u-1"), "successful", "Deployed"),
        ("DeploymentDeleted", graph("u-1"), "pending", "Deploying"),
        # Another graph had the name, and is gone.
        ("DeploymentRejected", graph("u-1"), "successful", "Deployed"),
        ("DeploymentDeleted", None, "", "Failed"),
        ("DeploymentDeleted", graph("u-0"), "successful", "Failed"),
        # Nothing was selected, or the request failed for other reasons than its graph.
        ("", graph("u-1"), "successful", "Failed"),
    ],
)
async def test_a_request_that_lost_its_graph_follows_one_that_its_user_makes_of_the_result(
    reason: str, made: dict[str, Any] | None, state: str, becomes: str
) -> None:
    cache = ObjectCache()
    if made is not None:
        cache.put(DYNAMO_GRAPH_DEPLOYMENTS, {**made, "status": {"state": state}})
    lost = {"type": "DeploymentReady", "status": "False", "reason": reason, "message": "", "lastTransitionTime": "x"}
    obj: dict[str, Any] = {
        "metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1", "generation": 1},
        "spec": {"model": "m"},
        "status": {
            "phase": "Failed",
            "observedGeneration": 1,
            "profilingResults": {"selectedConfig": SELECTED},
            "conditions": [lost] if reason else [],
        },
    }
    status = await reconciled(obj, cache, Api(made))
    assert (status["phase"], status.get("dgdName")) == (becomes, None if becomes == "Failed" else "qwen-dgd")


async def reconciled(
    obj: dict[str, Any], cache: ObjectCache, api: Api, announced: Announced | None = None
) -> dict[str, Any]:
    """The status of a request after one reconcile."""
    cache.put(DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, obj)
    written = Written()
    absent: Any = None
    reconciler = RequestReconciler(
        absent,
        cache,
        written,
        announced or Announced(),
        absent,
        absent,
        GraphDeployer(api, cache, Announced()),  # type: ignore[arg-type]
        absent,
        absent,
        lambda: datetime(2026, 1, 2, tzinfo=UTC),
    )
    await reconciler.reconcile(ObjectKey("ns", "qwen"))
    status: dict[str, Any] = written.statuses[-1] if written.statuses else obj["status"]
    return status


@pytest.mark.parametrize(
    ("spec", "generation", "observed", "reported"),
    [
        ({"model": "m", "autoApply": True}, 2, 2, []),
        # Defaulting: it is taken away.
        ({"model": "m"}, 2, 2, []),
        ({"model": "m", "autoApply": False}, 1, 1, []),
        ({"model": "other", "autoApply": False}, 2, 1, ["SpecChangeRejected"]),
    ],
    ids=["approved", "taken away", "waits", "another change"],
)
async def test_a_request_that_waits_deploys_its_result_once_auto_apply_is_switched_on(
    spec: dict[str, Any], generation: int, observed: int, reported: list[str]
) -> None:
    obj: dict[str, Any] = {
        "metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1", "generation": generation},
        "spec": spec,
        "status": {
            "phase": "Ready",
            "observedGeneration": 1,
            "dgdName": "qwen-dgd",
            "profilingResults": {"selectedConfig": SELECTED},
            "conditions": [],
        },
    }
    announced = Announced()
    status = await reconciled(obj, ObjectCache(), Api(None), announced)
    assert status["phase"] == ("Deploying" if spec.get("autoApply", True) else "Ready")
    assert status["observedGeneration"] == observed
    assert [line.split()[1] for line in announced.lines if "SpecChange" in line] == reported


@pytest.mark.parametrize(
    ("annotations", "field"),
    [
        ({}, "spec.overrides.dgd.metadata.name"),
        ({keys.PRESERVED_FIELDS: '{"for": "v1alpha1", "version": 1}'}, "spec.deploymentOverrides.name"),
    ],
    ids=["v1beta1", "v1alpha1"],
)
def test_status_and_events_name_fields_of_the_version_that_the_request_was_written_in(
    annotations: dict[str, str], field: str
) -> None:
    obj = {"metadata": {"name": "qwen", "namespace": "ns", "uid": "u-1", "annotations": annotations}}
    draft, events = StatusDraft(obj, datetime(2026, 1, 2, tzinfo=UTC)), Announced()
    GraphDeployer(Api(None), ObjectCache(), events).reject_taken(obj, draft, "qwen-dgd")  # type: ignore[arg-type]
    said = [*(each["message"] for each in draft.done()["conditions"]), *events.lines]
    assert len(said) == 3
    assert all(f"with {field} in a new request" in each for each in said)
