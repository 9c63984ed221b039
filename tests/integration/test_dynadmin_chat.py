"""Chats over the REST API reach a frontend through a real API server's proxy, with the rights of the caller."""

import asyncio
import json
import re
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENTS,
    ENDPOINT_SLICES,
    PODS,
    ROLE_BINDINGS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient, Unavailable
from dynamo_shared.runtime.endpoints import serving

from .command import called, dynamoctl, finished
from .dynadmin import EVERYTHING, Api, account
from .platform import eventually

ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
GRAPHS = {"verbs": ["get"], "apiGroups": ["nvidia.com"], "resources": ["dynamographdeployments"]}
MODEL = "Qwen/Qwen3-0.6B"
ASKED = {"messages": [{"role": "user", "content": "Which day is it?"}]}


def chatting(*verbs: str) -> dict[str, Any]:
    return {"verbs": list(verbs), "apiGroups": [""], "resources": ["services/proxy"]}


def this_host() -> str:
    """An address of this machine that is not loopback: endpoints of a Service must not be loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback, and a Service may not lead there")
        return str(probe.getsockname()[0])


class Frontend:
    """Acts as the frontend. `answer` streams a completion; requests are recorded."""

    def __init__(self) -> None:
        self.models = [MODEL]
        self.asked: list[dict[str, Any]] = []
        self.answer: Callable[[web.StreamResponse], Awaitable[None]] = self.words
        self.gone = asyncio.Event()

    async def words(self, response: web.StreamResponse) -> None:
        for word in ("It", " is", " Friday"):
            await self.chunk(response, choices=[{"index": 0, "delta": {"content": word}}])
        await self.chunk(response, choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
        await self.chunk(response, choices=[], usage={"prompt_tokens": 9, "completion_tokens": 3})
        await response.write(b"data: [DONE]\n\n")

    async def chunk(self, response: web.StreamResponse, **fields: Any) -> None:
        results = {"id": "c", "object": "chat.completion.chunk", "model": MODEL, **fields}
        await response.write(b"data: " + json.dumps(results).encode() + b"\n\n")

    async def list_models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": each} for each in self.models]})

    async def completions(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append({"body": body, "headers": dict(request.headers)})
        if body["model"] not in self.models:
            return web.json_response({"message": f"Model not found: {body['model']}"}, status=404)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        try:
            await self.answer(response)
        except ConnectionError:
            self.gone.set()
        return response

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_get("/v1/models", self.list_models)
        app.router.add_post("/v1/chat/completions", self.completions)
        return app


async def graph_with_service(kube: KubeClient, namespace: str, port: int) -> None:
    graph = {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        "metadata": {"name": "shop.eu", "namespace": namespace},
        "spec": {"components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]},
    }
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph)
    name, ports = "shop-eu-frontend", [{"name": "http", "port": port}]
    metadata = {"name": name, "namespace": namespace}
    spec = {"ports": [{"name": "http", "port": 8000}]}
    await kube.create(SERVICES, {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    pod = {"kind": "Pod", "name": "frontend-0", "namespace": namespace}
    await running_pod(kube, ObjectKey(namespace, "frontend-0"))
    subsets = [{"addresses": [{"ip": this_host(), "targetRef": pod}], "ports": ports}]
    await kube.create(
        ENDPOINTS, {"apiVersion": "v1", "kind": "Endpoints", "metadata": {**metadata}, "subsets": subsets}
    )
    slice_ = {
        **ENDPOINT_SLICES.type_meta,
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [this_host()], "conditions": {"ready": True}, "targetRef": pod}],
        "ports": ports,
    }
    await kube.create(ENDPOINT_SLICES, slice_)
    # The API server learns of endpoints by its own watch.
    await eventually(lambda: answers(kube, ObjectKey(namespace, name)), "the Service answers")


async def running_pod(kube: KubeClient, key: ObjectKey) -> None:
    """A pod that claims this host's address: the API server's proxy only connects to endpoints of pods."""
    containers = [{"name": "main", "image": "none"}]
    metadata = {"name": key.name, "namespace": key.namespace}
    spec = {"schedulerName": "none", "containers": containers}
    await kube.create(PODS, {**PODS.type_meta, "metadata": metadata, "spec": spec})
    status = {"phase": "Running", "podIP": this_host(), "podIPs": [{"ip": this_host()}]}
    await kube.merge_patch(PODS, key, {"status": status}, subresource="status")


async def answers(kube: KubeClient, service: ObjectKey) -> bool:
    try:
        async with kube.service_proxy(service, 8000, "/v1/models", silence=10) as content:
            return bool(await content.read())
    except Unavailable:
        return False


@pytest.fixture
async def frontend(kube: KubeClient, namespace: str) -> AsyncIterator[Frontend]:
    result = Frontend()
    async with serving(result.app(), this_host(), 0) as port:
        await graph_with_service(kube, namespace, port)
        yield result


@pytest.fixture
async def api(rest_api: Api, kube: KubeClient, namespace: str) -> Api:
    return replace(rest_api, token=await account(kube, namespace, "owner", EVERYTHING, chatting("get", "create")))


def path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/deployments/shop.eu/chat"


async def test_a_chat_is_streamed_with_its_times(api: Api, frontend: Frontend, namespace: str) -> None:
    listed = await api("GET", path(namespace))
    assert listed.json == {"service": "shop-eu-frontend", "models": [MODEL]}
    async with api.stream(path(namespace), {**ASKED, "maxTokens": 7, "parameters": {"top_p": 0.5}}) as events:
        result = await events.until("end")
    assert [(event, data.get("text")) for event, data, _ in result[:-1]] == [
        ("delta", "It"),
        ("delta", " is"),
        ("delta", " Friday"),
    ]
    end = result[-1][1]
    assert (end["model"], end["finishReason"], end["completionTokens"], end["promptTokens"]) == (MODEL, "stop", 3, 9)
    assert 0 < end["ttftMs"] == result[0][1]["atMs"] <= end["totalMs"]
    assert end["itlMs"] == pytest.approx((result[2][1]["atMs"] - result[0][1]["atMs"]) / 2, abs=0.02)
    sent = frontend.asked[0]
    assert sent["body"] == {
        "model": MODEL,
        "messages": ASKED["messages"],
        "max_tokens": 7,
        "top_p": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert not {name.lower() for name in sent["headers"]} & {"authorization", "cookie", "impersonate-user"}
    whole = await api("POST", path(namespace), {**ASKED, "model": MODEL})
    assert whole.status == 200, whole.json
    assert (whole.json["text"], whole.json["completionTokens"]) == ("It is Friday", 3)


async def test_dynamoctl_chats(api: Api, frontend: Frontend, namespace: str, tmp_path: Path) -> None:
    given = ("chat", "shop.eu", "-n", namespace, "--server", api.url)
    environment = {"DYNAMO_TOKEN": api.token}
    named = ("--system", "Be short.", "--max-tokens", "7")
    code, said, times = await called(*given, "Which day is it?", *named, cwd=tmp_path, **environment)
    assert (code, said) == (0, "It is Friday\n")
    assert re.fullmatch(r"3 tokens, first after [0-9.]+ ms, then one each [0-9.]+ ms, in all [0-9.]+ ms\n", times)
    assert frontend.asked[0]["body"]["max_tokens"] == 7
    system, day, answer = (
        {"role": role, "content": content}
        for role, content in (("system", "Be short."), ("user", "Which day is it?"), ("assistant", "It is Friday"))
    )
    assert frontend.asked[0]["body"]["messages"] == [system, day]
    async with dynamoctl(*given, "-o", "json", cwd=tmp_path, **environment) as process:
        code, said, _ = await finished(process, b"Which day is it?\nAnd now?\n")
    answers = [json.loads(line) for line in said.splitlines()]
    assert (code, [each["text"] for each in answers]) == (0, ["It is Friday", "It is Friday"])
    assert frontend.asked[2]["body"]["messages"] == [day, answer, {"role": "user", "content": "And now?"}]
    code, said, errors = await called(*given, "hello", "--model", "other", cwd=tmp_path, **environment)
    assert (code, said) == (1, "")
    assert "Model not found: other" in errors


async def test_callers_may_chat_if_they_may_call_the_service(
    api: Api, frontend: Frontend, kube: KubeClient, namespace: str
) -> None:
    viewer = await account(kube, namespace, "viewer", EVERYTHING)
    caller = await account(kube, namespace, "caller", chatting("create"))
    named = await account(
        kube, namespace, "named", GRAPHS, {**chatting("create"), "resourceNames": ["shop-eu-frontend:8000"]}
    )
    other = await account(
        kube, namespace, "other", GRAPHS, {**chatting("create"), "resourceNames": ["shop-eu-frontend", "other:8000"]}
    )
    for token in (viewer, caller, other):
        refused = await api("POST", path(namespace), {**ASKED, "model": MODEL}, token=token)
        assert (refused.status, refused.json["type"]) == (403, "urn:dynamo:problem:forbidden")
    assert not frontend.asked
    assert (await api("POST", path(namespace), {**ASKED, "model": MODEL}, token=named)).status == 200
    unnamed = await api("POST", path(namespace), ASKED, token=named)
    assert [each["pointer"] for each in unnamed.json["errors"]] == ["/model"]
    assert (await api("GET", path(namespace), token=named)).status == 403
    assert (await api("GET", f"/api/v1/namespaces/{namespace}/me/access", token=viewer)).json["chat"] is False


async def test_errors_of_the_frontend_are_reported(api: Api, frontend: Frontend, namespace: str) -> None:
    unknown = await api("POST", path(namespace), {**ASKED, "model": "other"})
    assert unknown.status == 404
    assert "Model not found: other" in unknown.json["detail"]
    async with api.stream(path(namespace), {**ASKED, "model": "other"}) as events:
        event, data, _ = await events.next()
        assert (event, "Model not found" in data["detail"]) == ("failed", True)

    async def error(response: web.StreamResponse) -> None:
        await frontend.chunk(response, error={"message": "out of memory"})

    frontend.answer = error
    async with api.stream(path(namespace), ASKED) as events:
        event, data, _ = await events.next()
        assert (event, "out of memory" in data["detail"]) == ("failed", True), data
    frontend.models = []
    assert (await api("POST", path(namespace), ASKED)).status == 503
    frontend.models = ["a", "b"]
    several = await api("POST", path(namespace), ASKED)
    assert (several.status, several.json["errors"][0]["pointer"]) == (422, "/model")


async def test_a_chat_ends_when_its_caller_loses_the_rights_or_disconnects(
    api: Api, frontend: Frontend, kube: KubeClient, namespace: str
) -> None:
    async def endless(response: web.StreamResponse) -> None:
        while True:
            await frontend.chunk(response, choices=[{"index": 0, "delta": {"content": "x"}}])
            await asyncio.sleep(0.02)

    frontend.answer = endless
    async with api.stream(path(namespace), ASKED) as events:
        assert (await events.next())[0] == "delta"
    async with asyncio.timeout(60):
        await frontend.gone.wait()
    guest = await account(kube, namespace, "guest", GRAPHS, chatting("get", "create"))
    async with asyncio.timeout(60), api.stream(path(namespace), ASKED, token=guest) as events:
        assert (await events.next())[0] == "delta"
        await kube.delete(ROLE_BINDINGS, ObjectKey(namespace, "guest"))
        result = await events.until("unauthorized")
        assert result[-1][0] == "unauthorized"
        assert (await events.next())[0] == "closed"


async def test_a_graph_without_a_frontend_has_no_chat(api: Api, kube: KubeClient, namespace: str) -> None:
    metadata = {"name": "shop.eu", "namespace": namespace}
    spec = {"components": [{"name": "W", "type": "worker", "replicas": 1}]}
    graph = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph)
    assert (await api("POST", path(namespace), ASKED)).json["type"] == "urn:dynamo:problem:conflict"
    del graph
