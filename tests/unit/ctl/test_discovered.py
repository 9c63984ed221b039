"""`dynamoctl workers` and `dynamoctl models`: the workers and models in STATE, for users and for programs."""

import json

import pytest
from dynamo_ctl.commands.discovered import DiscoveredQuery
from dynamo_ctl.commands.discovered.listing import lines
from dynamo_ctl.commands.parameters import Output
from dynamo_ctl.errors import CtlError
from dynamo_shared.api.resources import key_of
from dynamo_shared.bus import streams
from dynamo_shared.state import messages
from dynamo_shared.state.messages import ChangeType
from dynamo_shared.wire import subjects
from dynamo_shared.wire.discovered import MODELS, WORKERS, ModelCard, ServedModelData, WorkerData, as_object

from tests.building.memory_bus import MemoryBus

CARD = ModelCard(name="org/m", worker_type="decode", kv_cache_block_size=16, total_kv_blocks=512)
DECODE = WorkerData(
    name="d/backend/2a", namespace="team", role="decode", source="etcd", graph_deployment="g", pod="g-decode-0", models=[CARD]
)  # fmt: skip
ROUTER = WorkerData(name="d/router/7", source="etcd")
MODEL = ServedModelData(
    name="d/org/m", namespace="team", model="org/m", graph_deployment="g", missing=["prefill"], workers={"decode": 1}
)  # fmt: skip


async def bus(*there: WorkerData | ServedModelData, marked: bool = True) -> MemoryBus:
    made = MemoryBus()
    await made.declare(*streams.ALL)
    for data in there:
        obj = as_object(data, uid=data.name, resource_version="1", created="2026-03-01T12:00:00Z")
        resource = WORKERS if isinstance(data, WorkerData) else MODELS
        subject = subjects.state_subject("local", resource.id, key_of(obj))
        await made.publish(subject, messages.encode_object(obj), headers=messages.object_headers(obj, ChangeType.ADDED))
    for resource in (WORKERS, MODELS) if marked else ():
        marker = messages.SyncedMarker(resource=resource.id, resource_version="1", count=0, time="")
        await made.publish(subjects.synced_subject("local", resource.id), messages.encode_marker(marker))
    return made


async def test_workers_are_listed_with_their_models() -> None:
    header, *rows = await lines("workers", DiscoveredQuery(), await bus(DECODE, ROUTER), "local")
    assert header.split() == ["NAMESPACE", "NAME", "ROLE", "GRAPH", "POD", "SOURCE", "KV", "TOKENS", "AGE", "MODELS"]
    cells = [row.split() for row in rows]
    assert [row[:7] for row in cells] == [
        ["-", "d/router/7", "-", "-", "-", "etcd", "-"],
        ["team", "d/backend/2a", "decode", "g", "g-decode-0", "etcd", "8192"],
    ]
    assert [row[-1] for row in cells] == ["-", "org/m"]


async def test_models_are_listed() -> None:
    _, row = await lines("models", DiscoveredQuery(), await bus(MODEL), "local")
    assert row.split()[:6] == ["team", "org/m", "no", "prefill", "1", "decode"]


async def test_views_are_filtered_by_namespace_or_graph_and_printed_for_programs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = await bus(DECODE, ROUTER)
    for query in (DiscoveredQuery("team", output=Output.JSON), DiscoveredQuery(graph="g", output=Output.JSON)):
        (text,) = await lines("workers", query, made, "local")
        assert [item["spec"]["instanceId"] for item in json.loads(text)["items"]] == [""]
        assert [item["metadata"]["name"] for item in json.loads(text)["items"]] == ["d/backend/2a"]
    assert await lines("workers", DiscoveredQuery("elsewhere"), made, "local") == []
    assert capsys.readouterr().err == (
        "no workers are registered in namespace elsewhere (-A: in all); pods on simulated nodes never register\n"
    )


async def test_a_view_that_is_not_published_is_reported() -> None:
    with pytest.raises(CtlError, match="check that model-discovery runs"):
        await lines("workers", DiscoveredQuery(), await bus(marked=False), "local")
    with pytest.raises(CtlError, match="never run"):
        await lines("workers", DiscoveredQuery(), MemoryBus(), "local")
