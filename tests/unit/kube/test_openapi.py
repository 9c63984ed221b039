"""Reading the API server's published schemas: the meaning of each answer, and what stays if there is no answer."""

from typing import Any

import pytest
from dynamo_shared.kube import NotServed, ResponseTooLarge, Unavailable, openapi

from . import steps

POD_TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"


def index(**hashes: str) -> dict[str, Any]:
    paths = {"pods": "api/v1", "jobs": "apis/batch/v1", "scaling": "apis/autoscaling/v2", "other": "apis/apps/v1"}
    return {
        "paths": {
            paths[name]: {"serverRelativeURL": f"/openapi/v3/{paths[name]}?hash={version}"}
            for name, version in hashes.items()
        }
    }


def document(*fields: str) -> dict[str, Any]:
    template = {"type": "object", "description": "prose", "properties": {name: {"type": "string"} for name in fields}}
    return {"openapi": "3.0.0", "paths": {}, "components": {"schemas": {POD_TEMPLATE: template}}}


def graph(template: dict[str, Any]) -> dict[str, Any]:
    component = {"name": "a", "podTemplate": template}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "spec": {"components": [component]}}


def messages(checker: Any, template: dict[str, Any]) -> list[str]:
    return [error.message for error in checker.errors(graph(template))]


async def test_only_the_needed_schemas_are_kept(server: Any) -> None:
    server.then(steps.answer(index(pods="1", other="1")), steps.answer(document("a")))
    client = server.client()
    result = await openapi.schemas(client, await openapi.published(client))
    template = {"type": "object", "properties": {"a": {"type": "string"}}}
    assert result == [{"components": {"schemas": {POD_TEMPLATE: template}}}]
    assert [observed.path for observed in server.requests] == ["/openapi/v3", "/openapi/v3/api/v1"]


async def test_every_existing_document_is_read(server: Any) -> None:
    server.then(steps.answer(index(scaling="1", jobs="1", pods="1")), *(steps.answer(document()) for _ in range(3)))
    client = server.client()
    assert len(await openapi.schemas(client, await openapi.published(client))) == 3
    assert [observed.path for observed in server.requests[1:]] == [f"/openapi/v3/{path}" for path in openapi.DOCUMENTS]


async def test_a_checker_stays_until_the_published_schema_changes(server: Any) -> None:
    source = openapi.SchemaSource(server.client())
    server.then(steps.answer(index(pods="1")), steps.answer(document("a")))
    first = await source.checker()
    assert messages(first, {"a": "x"}) == []
    server.then(steps.answer(index(pods="1", other="2")))
    assert await source.checker() is first
    server.then(steps.answer(index(pods="2")), steps.answer(document("b")))
    second = await source.checker()
    assert messages(second, {"a": "x"}) == ["no such field; there are b"]
    assert not server.script


async def test_the_api_server_is_asked_only_now_and_then(server: Any) -> None:
    now = [100.0]
    source = openapi.SchemaSource(server.client(), interval=60, clock=lambda: now[0])
    server.then(steps.answer(index(pods="1")), steps.answer(document("a")))
    first = await source.checker()
    now[0] += 59
    assert await source.checker() is first
    assert len(server.requests) == 2
    now[0] += 1
    server.then(steps.answer(index(pods="1")))
    assert await source.checker() is first
    assert len(server.requests) == 3


async def test_the_schema_is_missing_before_the_first_answer(server: Any) -> None:
    source = openapi.SchemaSource(server.client(), interval=60)
    server.then(steps.refuse(404))
    with pytest.raises(NotServed):
        await source.checker()
    server.then(steps.answer(index(pods="1")), steps.answer(document("a")))
    assert messages(await source.checker(), {"a": "x"}) == []


@pytest.mark.parametrize("failing", ["index", "empty", "document", "garbled"])
async def test_the_last_checker_stays_in_use(server: Any, failing: str) -> None:
    source = openapi.SchemaSource(server.client())
    server.then(steps.answer(index(pods="1")), steps.answer(document("a")))
    first = await source.checker()
    changed = steps.answer(index(pods="2"))
    server.then(
        *{
            "index": [steps.refuse(500, "InternalError")],
            "empty": [steps.answer({"paths": {}})],
            "document": [changed, steps.refuse(404)],
            "garbled": [changed, steps.text("<html>")],
        }[failing]
    )
    assert await source.checker() is first
    server.then(steps.answer(index(pods="2")), steps.answer(document("b")))
    assert await source.checker() is not first


@pytest.mark.parametrize("answer", ["<html>", '{"paths": []}', '{"paths": {"api/v1": 1}}', "{}"])
async def test_an_invalid_index_is_ignored(server: Any, answer: str) -> None:
    server.then(steps.text(answer))
    with pytest.raises(Unavailable):
        await openapi.published(server.client())


async def test_answers_are_bounded(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openapi, "MAX_BYTES", 1000)
    server.then(steps.answer(index(pods="1")), steps.text(" " * 1001))
    with pytest.raises(ResponseTooLarge, match="larger than 1000 bytes"):
        await openapi.SchemaSource(server.client()).checker()
