"""The fields of a topology constraint that the cluster's Grove serves, from the API server's published schema."""

import asyncio
from typing import Any, cast

import msgspec
import pytest
from dynamo_pod_builder.topology_schema import INTERVAL, TopologySchema
from dynamo_shared.aio import ended
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError

from tests.building.waiting import turns

DEFAULT = {"packDomain"}
INDEX, DOCUMENT = "/openapi/v3", "/openapi/v3/apis/grove.io/v1alpha1"


class Server:
    """The published documents by path; other paths are refused."""

    def __init__(self, *fields: str) -> None:
        self.published: dict[str, Any] = {INDEX: index(), DOCUMENT: document(*fields)}
        self.asked: list[str] = []
        self.now = 0.0
        self.answers = asyncio.Event()
        self.answers.set()

    async def raw_get(self, path: str, *, most: int) -> bytes:
        self.asked.append(path)
        await self.answers.wait()
        if path not in self.published:
            raise KubeError(403, "Forbidden", "no")
        return msgspec.json.encode(self.published[path])

    def schema(self) -> TopologySchema:
        return TopologySchema(cast("KubeClient", self), lambda: self.now)


def index(version: str = "1") -> dict[str, Any]:
    return {"paths": {"apis/grove.io/v1alpha1": {"serverRelativeURL": f"{DOCUMENT}?hash={version}"}}}


def document(*fields: str) -> dict[str, Any]:
    schema: dict[str, Any] = {"properties": {name: {"type": "string"} for name in fields}}
    for name in ("topologyConstraint", "template", "spec"):
        schema = {"type": "object", "properties": {name: schema, "other": {"type": "string"}}}
    return {"openapi": "3.0.0", "components": {"schemas": {"io.grove.v1alpha1.PodCliqueSet": schema}}}


async def test_fields_are_those_of_the_published_schema() -> None:
    server = Server("pack", "topologyName")
    assert await server.schema().fields() == {"pack", "topologyName"}
    assert server.asked == [INDEX, DOCUMENT]


@pytest.mark.parametrize(
    "published",
    [
        pytest.param({}, id="refused"),
        pytest.param({INDEX: []}, id="garbled index"),
        pytest.param({INDEX: {"paths": {}}}, id="not published"),
        pytest.param({INDEX: index()}, id="refused document"),
        pytest.param({INDEX: index(), DOCUMENT: {}}, id="no schemas"),
        pytest.param({INDEX: index(), DOCUMENT: document()}, id="a schema that knows no fields"),
        pytest.param(
            {
                INDEX: index(),
                DOCUMENT: {"components": {"schemas": {"io.grove.v1alpha1.PodCliqueSet": {"properties": 1}}}},
            },
            id="garbled schema",
        ),
    ],
)
async def test_an_unreadable_schema_changes_nothing(published: dict[str, Any]) -> None:
    server = Server()
    server.published = published
    assert await server.schema().fields() == DEFAULT


async def test_the_schema_is_read_again_only_after_a_while_and_only_if_it_changed() -> None:
    server = Server("packDomain")
    schema = server.schema()
    for _ in range(2):
        assert await schema.fields() == {"packDomain"}
    assert server.asked == [INDEX, DOCUMENT]
    server.now += INTERVAL
    assert await schema.fields() == {"packDomain"}
    assert server.asked == [INDEX, DOCUMENT, INDEX]
    server.now += INTERVAL
    server.published = {INDEX: index("2"), DOCUMENT: document("pack")}
    assert await schema.fields() == {"pack"}
    server.now += INTERVAL
    server.published = {}
    assert await schema.fields() == {"pack"}


async def test_graphs_that_ask_together_get_the_answer_of_one_request() -> None:
    server = Server("pack")
    schema = server.schema()
    server.answers.clear()
    asking = [asyncio.create_task(schema.fields()) for _ in range(3)]
    await turns()
    server.answers.set()
    assert await asyncio.gather(*asking) == [{"pack"}] * 3
    assert server.asked == [INDEX, DOCUMENT]


async def test_a_cancelled_request_is_repeated_by_the_next_graph() -> None:
    server = Server("pack")
    schema = server.schema()
    server.answers.clear()
    asking = asyncio.create_task(schema.fields())
    await turns()
    await ended(asking)
    server.answers.set()
    assert await schema.fields() == {"pack"}
