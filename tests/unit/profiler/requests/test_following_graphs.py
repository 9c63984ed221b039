"""The graph of a request is followed by what is cached of it, and counts as deleted where the API server says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from dynamo_profiler.requests.deploying import GraphDeployer
from dynamo_profiler.requests.status import StatusDraft
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.kube.errors import NotFound
from dynamo_shared.state.cache import ObjectCache

from tests.unit.announced import Announced


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
