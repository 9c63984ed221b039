"""Conventions of the REST API on real servers: request ids, and estimates."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dynamo_ctl.simulations.estimation import Estimation
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.resources import NAMESPACES
from dynamo_shared.kube import KubeClient

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared

from .dynadmin import EVERYTHING, Api, account, dynadmin
from .platform import eventually


@pytest.fixture
async def api(
    control_plane: ControlPlane, nats_server: NatsServer, kube: KubeClient, namespace: str
) -> AsyncIterator[Api]:
    async with dynadmin(control_plane.kubeconfig, nats_server.url, Estimation) as running:
        running.token = await account(kube, namespace, "owner", EVERYTHING)
        yield running


async def test_the_audit_log_has_the_caller_and_the_id_of_the_request(
    programs: Programs, nats_server: NatsServer, tmp_path: Path
) -> None:
    options = await prepared(programs, **WITHOUT_CONTROLLERS, audit_folder=tmp_path)
    async with (
        ControlPlane(options, programs) as plane,
        await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as kube,
        dynadmin(plane.kubeconfig, nats_server.url) as api,
    ):
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        api.token = await account(kube, "team", "owner", EVERYTHING)
        made = {"metadata": {"name": "m"}, "spec": {"modelName": "m", "baseModelName": "b"}}
        given = str(uuid.uuid4())
        created = await api("POST", "/api/v1/namespaces/team/models", made, X_Request_ID=given)
        assert (created.status, created.headers["X-Request-ID"]) == (201, given)
        refused = await api("GET", "/api/v1/namespaces/kube-system/models/m", X_Request_ID="not an id")
        chosen = refused.headers["X-Request-ID"]
        assert refused.json["instance"] == f"urn:uuid:{chosen}"
        assert uuid.UUID(chosen)
        expected = {
            given: ("create", "system:serviceaccount:team:owner", 201),
            chosen: ("get", "system:serviceaccount:team:owner", 403),
        }
        await eventually(lambda: logged(tmp_path, expected), "the audit's lines", where=lambda each: each == expected)


def logged(folder: Path, expected: Any) -> dict[str, tuple[str, str, int]]:
    """Verb, impersonated user and status of the requests with these ids, from the API server's audit log."""
    results = {}
    for file in folder.glob("audit-*.jsonl"):
        for line in file.read_text().splitlines():
            if not line.endswith("}"):
                continue
            event = json.loads(line)
            if event["auditID"] in expected and event["stage"] == "ResponseComplete":
                user = event["impersonatedUser"]["username"]
                results[event["auditID"]] = (event["verb"], user, event["responseStatus"]["code"])
    return results


OBJECTIVE = {
    "mode": "objective",
    "name": "qwen",
    "model": {"name": "Qwen/Qwen3-32B"},
    "backend": "vllm",
    # One GPU, so that there are no engines of two roles to simulate.
    "hardware": {"gpuSku": "h200_sxm", "totalGpus": 1, "gpusPerNode": 1},
    "workload": {"isl": 4000, "osl": 1000},
    "objective": {"ttftMs": 2000, "itlMs": 50},
}


@pytest.mark.timeout(300)
async def test_an_estimate_is_refined_and_cached(api: Api, kube: KubeClient, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}/estimate"
    async with asyncio.timeout(240), api.stream(path, OBJECTIVE) as events:
        reported = await events.until("end")
    names = [event for event, _, _ in reported]
    assert names[0] == "estimate", "what memory alone says comes at once"
    assert "progress" in names
    first, last = (data for event, data, _ in (reported[0], reported[-2]))
    assert (first["source"], last["source"]) == ("naive", "aiconfigurator")
    assert last["selected"]["gpus"] == 1
    assert 0 < last["selected"]["itl"] <= 50
    assert len(last["pareto"]) > 1
    again = await api("POST", path, OBJECTIVE)
    assert (again.status, again.json["cached"], again.json["selected"]) == (200, True, last["selected"])
    # An estimate of a graph's GPUs needs the GPU type.
    graph = {"mode": "graph", "name": "qwen", "model": {"name": "Qwen/Qwen3-32B"}, "backend": "vllm"}
    serving = {"serving": {"replicas": {"worker": 2}}, "hardware": {"gpusPerReplica": 4}}
    unknown = await api("POST", path, {**graph, **serving})
    assert (unknown.status, unknown.json["errors"][0]["source"]) == (422, "spec.hardware")
    stranger = await account(kube, namespace, "stranger")
    assert (await api("POST", path, OBJECTIVE, token=stranger)).status == 403
    wrong = await api("POST", path, {**OBJECTIVE, "objective": {"ttftMs": -1}})
    assert [each["pointer"] for each in wrong.json["errors"]] == ["/objective/ttftMs"]
    model = {"name": "deepseek-ai/DeepSeek-V3"}
    too_few = {**OBJECTIVE, "model": model, "hardware": {"gpuSku": "l40s", "totalGpus": 1}}
    refused = await api("POST", path, too_few)
    assert refused.status == 422
    assert refused.json["errors"]
