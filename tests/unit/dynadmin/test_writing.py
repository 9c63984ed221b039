"""Changes of objects over HTTP: their versions, and how a refusal says what is wrong."""

from typing import Any
from unittest.mock import Mock

import pytest
from aiohttp import web
from dynamo_dynadmin.api.actions import Actions
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, MODELS, REQUESTS, Kind
from dynamo_dynadmin.api.object_writer import ObjectWriter
from dynamo_dynadmin.api.ownership import merged
from dynamo_dynadmin.http import call as call_module
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.routes import JSON_PATCH, MERGE_PATCH
from dynamo_shared.kube import Conflict, Invalid
from multidict import CIMultiDict

from .http_world import ABSENT, Managed, asking, serving


@pytest.mark.parametrize(
    ("tags", "versions"),
    [
        (['"1"'], ["1"]),
        (['W/"1"'], ["1"]),
        (['"1", W/"2"', '"3"'], ["1", "2", "3"]),
        (["*"], []),
        (["1"], None),
        (['w/"1"'], None),
        (['"1,2"'], None),
    ],
    ids=str,
)
async def test_if_match_names_versions_also_where_a_proxy_weakened_them(
    tags: list[str], versions: list[str] | None
) -> None:
    async def read(call: Call) -> web.StreamResponse:
        return call.answer({"versions": call.if_match()})

    async with serving(read) as client:
        answer = await client.post("/x", headers=CIMultiDict(("If-Match", each) for each in tags))
        assert answer.status == (200 if versions is not None else 412)
        assert (await answer.json()).get("versions") == versions


@pytest.mark.parametrize(("sent", "status"), [({"metadata": "x"}, 422), ({"metadata": None}, 409), ({"spec": 1}, 409)])
async def test_a_patch_of_any_shape_to_an_object_of_another_tool_is_refused(sent: Any, status: int) -> None:
    patch = asking(Managed(), ObjectWriter(ABSENT).patch, DEPLOYMENTS)
    async with serving(patch, "PATCH", "/{namespace}/{name}") as client:
        answer = await client.patch("/n/a", json=sent, headers={"Content-Type": MERGE_PATCH, "If-Match": "*"})
        assert answer.status == status


@pytest.mark.parametrize(
    ("kind", "sent", "pointers"),
    [
        (DEPLOYMENTS, {}, ["/metadata", "/spec/components"]),
        (MODELS, {}, ["/metadata", "/spec", "/spec/baseModelName", "/spec/modelName"]),
        (REQUESTS, {}, ["/metadata", "/spec", "/spec/model"]),
        (DEPLOYMENTS, {"metadata": {"name": "a", "namespace": "m"}}, ["/metadata/namespace", "/spec/components"]),
        (DEPLOYMENTS, {"metadata": 5, "spec": {"component": []}}, ["/metadata", "/spec/component", "/spec/components"]),
        (DEPLOYMENTS, {"metadata": {}, "spec": 1}, ["/metadata/name", "/spec"]),
        (
            DEPLOYMENTS,
            {"metadata": {"name": "a"}, "spec": {"components": [{"name": "F", "type": "frontent", "replicas": -1}]}},
            ["/spec/components/0/replicas", "/spec/components/0/type"],
        ),
        # What another kind lacks is not said.
        (DEPLOYMENTS, {"kind": "DynamoModel", "metadata": {}}, ["/kind"]),
    ],
)
async def test_an_object_is_refused_with_all_that_it_lacks(
    kind: Kind, sent: dict[str, Any], pointers: list[str]
) -> None:
    async with serving(asking(ABSENT, ObjectWriter(ABSENT).create, kind), path="/{namespace}") as client:
        answer = await client.post("/n", json=sent)
        assert (answer.status, answer.content_type) == (422, "application/problem+json")
        assert sorted(each["pointer"] for each in (await answer.json())["errors"]) == pointers


class Busy:
    """An API server with one graph, which others change after each read, as often as it says."""

    def __init__(self, changes: int) -> None:
        self.changes, self.version = changes, 1

    async def get(self, *_: Any) -> dict[str, Any]:
        obj = {"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": str(self.version)}}
        self.changes -= 1
        self.version += self.changes >= 0
        return obj

    async def merge_patch(self, _resource: Any, _key: Any, patch: dict[str, Any], **_: Any) -> dict[str, Any]:
        if patch["metadata"]["resourceVersion"] != str(self.version):
            raise Conflict(409, "Conflict", "the object has been modified")
        return patch


@pytest.mark.parametrize(
    ("match", "changes", "status"), [("*", 3, 200), ("*", 1000, 412), ('"1"', 1, 412), ('"1"', 0, 200)]
)
async def test_a_change_of_any_version_is_repeated_if_others_write_meanwhile(
    match: str, changes: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Mock(side_effect=call_module._parsed)
    monkeypatch.setattr(call_module, "_parsed", read)
    patch = asking(Busy(changes), ObjectWriter(ABSENT).patch, DEPLOYMENTS)
    async with serving(patch, "PATCH", "/{namespace}/{name}") as client:
        answer = await client.patch("/n/a", json={"spec": {}}, headers={"Content-Type": MERGE_PATCH, "If-Match": match})
        assert answer.status == status
    assert read.call_count == 1, "YAML of a megabyte takes more than a second each time"


class BusyForOperations(Busy):
    """The same for JSON patches, in the API server's own words: it does not say which operation failed."""

    async def json_patch(self, _resource: Any, _key: Any, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        versions = [each["value"] for each in operations if each["path"] == "/metadata/resourceVersion"]
        if versions != [str(self.version)] or any(each["path"] == "/spec/absent" for each in operations):
            raise Invalid(422, "Invalid", "the server rejected our request due to an error in our request", {})
        return {"metadata": {"resourceVersion": str(self.version)}}


@pytest.mark.parametrize(
    ("match", "path", "changes", "status"),
    [
        ("*", "/spec/x", 3, 200),
        ("*", "/spec/x", 1000, 412),
        ('"1"', "/spec/x", 1, 412),
        ('"1"', "/spec/x", 0, 200),
        ('"1"', "/spec/absent", 0, 422),
        ("*", "/spec/absent", 0, 422),
    ],
)
async def test_a_json_patch_of_a_changed_object_is_stale(match: str, path: str, changes: int, status: int) -> None:
    patch = asking(BusyForOperations(changes), ObjectWriter(ABSENT).patch, DEPLOYMENTS)
    async with serving(patch, "PATCH", "/{namespace}/{name}") as client:
        headers = {"Content-Type": JSON_PATCH, "If-Match": match}
        answer = await client.patch("/n/a", json=[{"op": "remove", "path": path}], headers=headers)
        assert answer.status == status


class Refusing:
    """An API server of which admission refuses each patch."""

    def __init__(self) -> None:
        self.patches: list[list[dict[str, Any]]] = []

    async def json_patch(self, _resource: Any, _key: Any, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        self.patches.append(operations)
        refusal = "admission webhook \"mutate\" denied the request: spec.restart.strategy.order[0]: 'x' is not there"
        raise Invalid(422, "Invalid", refusal)


async def test_a_restart_is_of_any_version_and_its_refusal_points_into_what_was_sent() -> None:
    kube = Refusing()
    async with serving(asking(kube, Actions(ABSENT, ABSENT, ABSENT).restart), path="/{namespace}/{name}") as client:
        sent = {"id": "1", "strategy": {"type": "Sequential", "order": ["x"]}}
        refused = await (await client.post("/n/a", json=sent)).json()
        assert kube.patches == [[{"op": "add", "path": "/spec/restart", "value": sent}]]
        assert [each["pointer"] for each in refused["errors"]] == ["/strategy/order/0"]


class Restarted:
    """An API server with one graph, which was restarted in an order before."""

    def __init__(self) -> None:
        strategy = {"type": "Sequential", "order": ["b", "a"]}
        self.graph: dict[str, Any] = {"spec": {"restart": {"id": "1", "strategy": strategy}}}

    async def merge_patch(self, _resource: Any, _key: Any, patch: dict[str, Any], **_: Any) -> dict[str, Any]:
        self.graph = merged(self.graph, patch)
        return self.graph

    async def json_patch(self, _resource: Any, _key: Any, operations: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        for each in operations:
            _, top, field = each["path"].split("/")
            self.graph[top][field] = each["value"]
        return self.graph


@pytest.mark.parametrize("sent", [{"id": "2"}, {"id": "2", "strategy": {"type": "Parallel"}}])
async def test_a_restart_replaces_the_previous_one(sent: dict[str, Any]) -> None:
    """Admission would refuse the order of the one before with type Parallel."""
    kube = Restarted()
    async with serving(asking(kube, Actions(ABSENT, ABSENT, ABSENT).restart), path="/{namespace}/{name}") as client:
        answer = await (await client.post("/n/a", json=sent)).json()
        assert answer["restart"] == kube.graph["spec"]["restart"] == sent


@pytest.mark.parametrize(
    ("sent", "pointer", "detail"),
    [
        ({"replicas": 1, "dry/Run": True}, "/dry~1Run", "no such field; there are replicas"),
        ({"replicas": 10**7}, "/replicas", "10000000 is too large; at most 150000"),
        ({"replicas": True}, "/replicas", "must be an integer, not true"),
    ],
)
async def test_an_invalid_scaling_is_refused(sent: dict[str, Any], pointer: str, detail: str) -> None:
    async with serving(Actions(ABSENT, ABSENT, ABSENT).scale_adapter, path="/{namespace}/{name}") as client:
        refused = await (await client.post("/n/a", json=sent)).json()
        assert refused["errors"] == [{"pointer": pointer, "detail": detail}]


async def test_a_promotion_takes_its_parameters_from_the_query_alone() -> None:
    """A dry run that is asked for in the body must not deploy."""
    async with serving(Actions(ABSENT, ABSENT, ABSENT).promote, path="/{namespace}/{name}") as client:
        refused = await (await client.post("/n/a", json={"point": 1, "dryRun": True})).json()
        assert refused["errors"] == [{"pointer": "/dryRun", "detail": "no such field; there are point"}]


async def test_an_invalid_chat_is_refused_with_our_messages() -> None:
    chat = Chat(ABSENT, ABSENT, 1.0, ABSENT)
    async with serving(chat.chat, path="/{namespace}/{name}") as client:
        sent = {"messages": [{"role": "usr", "content": 5}], "maxTokens": 0, "x": 1}
        refused = await (await client.post("/n/a", json=sent)).json()
        assert {each["pointer"]: each["detail"] for each in refused["errors"]} == {
            "/messages/0/role": "'usr' is not allowed; one of 'system', 'user', 'assistant'",
            "/messages/0/content": "must be a string, not 5",
            "/maxTokens": "0 is too small; at least 1",
            "/x": "no such field; there are maxTokens, messages, model, parameters, seed, temperature",
        }
        refused = await (await client.post("/n/a", json={"messages": []})).json()
        assert refused["errors"] == [{"pointer": "/messages", "detail": "must not be empty"}]
        said = [{"role": "user", "content": "x"}]
        cases: list[tuple[Any, list[str]]] = [
            ({}, ["/messages"]),
            ({"messages": said, "temperature": 9}, ["/temperature"]),
            ({"messages": said, "parameters": {"stream": False, "n": 4}}, ["/parameters/stream", "/parameters/n"]),
            ({"messages": [{"role": "user", "content": "x" * (1 << 18)}] * 5}, ["/messages"]),
        ]
        for invalid, pointers in cases:
            refused = await (await client.post("/n/a", json=invalid)).json()
            assert [each["pointer"] for each in refused["errors"]] == pointers
