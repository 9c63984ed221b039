"""The HTTP side without TLS and without a cluster: junk, size limits, metrics and internal errors."""

import asyncio
import base64
import json
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from dynamo_admission import room, server
from dynamo_admission.metrics import AdmissionMetrics
from dynamo_admission.restore import MAX_POD
from dynamo_admission.review import ReviewVerdict, World
from dynamo_admission.review import review as judged
from dynamo_admission.server import ReviewServer, ServerState
from dynamo_admission.wire import AdmissionRequest, read_admission
from dynamo_shared.api.conversion import convert
from prometheus_client import CollectorRegistry

from tests.building.waiting import reached

from .reviewing import NO_TYPES, graph

Client = TestClient[web.Request, web.Application]


class Served:
    """A server under test with its metrics."""

    def __init__(self, *, max_in_flight: int = 8) -> None:
        self.registry = CollectorRegistry()
        self.state = ServerState(World(platform_version="1.2.0"), NO_TYPES)
        self.checking = asyncio.Event()
        self.may_check = asyncio.Event()
        self.app = ReviewServer(
            self.state,
            AdmissionMetrics(self.registry),
            max_in_flight=max_in_flight,
            find_adapters=self._find_adapters,
            review_pod=self._review_pod,
        ).app()

    async def _review_pod(self, request: AdmissionRequest) -> ReviewVerdict:
        if request.object["metadata"].get("name") == "faulty":
            raise KeyError("metadata")
        if request.object["metadata"].get("name") == "slow":
            self.checking.set()
            await self.may_check.wait()
        return ReviewVerdict(warnings=["reviewed"])

    async def _find_adapters(self, _: AdmissionRequest) -> None:
        self.checking.set()
        await self.may_check.wait()

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0


@pytest.fixture
def served() -> Served:
    return Served()


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with TestClient(TestServer(served.app)) as client:
        yield client


def review(obj: Any, **fields: Any) -> dict[str, Any]:
    group, _, version = obj["apiVersion"].partition("/")
    request = {
        "uid": "u-1",
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "operation": "CREATE",
        "name": "chat",
        "namespace": "team",
        "userInfo": {"username": "someone", "groups": ["a"]},
        "object": obj,
        "oldObject": None,
        "options": {"kind": "CreateOptions"},
        **fields,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def conversion(expected: str, *objects: Any) -> dict[str, Any]:
    request = {"uid": "u-1", "desiredAPIVersion": expected, "objects": list(objects)}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}


async def answered(client: Client, path: str, body: Any) -> dict[str, Any]:
    async with client.post(path, json=body) as answer:
        assert answer.status == 200
        results: dict[str, Any] = await answer.json()
    assert results["response"]["uid"] == "u-1"
    return results


@pytest.mark.parametrize(("held", "warnings"), [((), ["reviewed"]), (("team",), None)], ids=["own", "held"])
async def test_pods_of_namespaces_of_another_platform_are_left_to_it(served, client, held, warnings):
    """That platform may restore them with another seccomp profile, or not at all."""
    served.state.world = World(held=frozenset(held))
    response = await answered(client, "/restore", review({"apiVersion": "v1", "kind": "Pod", "metadata": {}}))
    assert response["response"].get("warnings") == warnings


def pod(**metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


async def test_large_pods_are_not_read(client, served):
    """A pod of a component has some 10 KB, and authors may send hundreds at once. A larger pod starts unchanged."""
    large = review(pod(annotations={"a": "x" * MAX_POD}))
    async with client.post("/restore", json=large) as answer:
        assert answer.status == 413
    assert served.count("dynamo_admission_requests_turned_away_total", reason="size") == 1
    assert (await answered(client, "/mutate", review(graph(), options={"x": "x" * MAX_POD})))["response"]


async def test_an_internal_error_does_not_stop_a_pod_from_starting(client, served):
    """`failurePolicy: Ignore` applies to missing answers, and a rejection is an answer."""
    response = (await answered(client, "/restore", review(pod(name="faulty"))))["response"]
    assert response == {"uid": "u-1", "allowed": True}
    counted = {"webhook": "restore", "resource_type": "other", "version": "other", "operation": "CREATE"}
    assert served.count("dynamo_operator_webhook_requests_total", **counted, result="error") == 1


async def test_pod_reviews_leave_capacity_for_other_reviews():
    """A review that requests an object waits for the API server, and there are many pods."""
    served = Served(max_in_flight=2)
    async with TestClient(TestServer(served.app)) as client:
        async with asyncio.TaskGroup() as tasks:
            first = tasks.create_task(answered(client, "/restore", review(pod(name="slow"))))
            await served.checking.wait()
            async with client.post("/restore", json=review(pod())) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            assert (await answered(client, "/mutate", review(graph())))["response"]["allowed"]
            served.may_check.set()
        assert first.result()["response"]["warnings"] == ["reviewed"]


async def test_a_valid_graph_is_patched_and_accepted(client, served):
    observed = await answered(client, "/mutate", review(graph()))
    assert (observed["apiVersion"], observed["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = observed["response"]
    assert (response["allowed"], response["patchType"]) == (True, "JSONPatch")
    assert json.loads(base64.b64decode(response["patch"]))[0]["op"] == "add"
    labels = {
        "webhook": "mutate",
        "resource_type": "dynamographdeployments",
        "version": "v1beta1",
        "operation": "CREATE",
    }
    assert served.count("dynamo_operator_webhook_requests_total", **labels, result="allowed") == 1


async def test_an_invalid_graph_is_rejected_with_a_status(client, served):
    response = (await answered(client, "/validate", review(graph(backendFramework="vlm"))))["response"]
    assert response["allowed"] is False
    assert response["status"]["code"] == 422
    assert response["status"]["message"].startswith("spec.backendFramework: ")
    denied = {"resource_type": "dynamographdeployments", "operation": "CREATE", "reason": "Invalid"}
    assert served.count("dynamo_operator_webhook_denials_total", **denied) == 1


async def test_objects_are_converted(client):
    result = await answered(client, "/convert", conversion("nvidia.com/v1alpha1", graph(), graph()))
    assert (result["apiVersion"], result["kind"]) == ("apiextensions.k8s.io/v1", "ConversionReview")
    assert result["response"]["result"] == {"status": "Success"}
    assert [obj["apiVersion"] for obj in result["response"]["convertedObjects"]] == ["nvidia.com/v1alpha1"] * 2


EMPTY = {"annotations": {"nvidia.com/preserved-fields": '{"for":"v1beta1","version":1}'}}


@pytest.mark.parametrize(("kind", "metadata"), [("DynamoGraphDeployment", EMPTY), ("DynamoModel", {})])
async def test_a_part_without_metadata_gets_empty_metadata(client, kind, metadata):
    """The API server converts parts of an object for an apply, and rejects an answer without metadata."""
    part = {"apiVersion": "nvidia.com/v1beta1", "kind": kind, "spec": {}}
    result = (await answered(client, "/convert", conversion("nvidia.com/v1alpha1", part)))["response"]
    assert [obj["metadata"] for obj in result["convertedObjects"]] == [metadata]


@pytest.mark.parametrize(
    ("expected", "obj"),
    [("nvidia.com/v9", graph()), ("nvidia.com/v1beta1", {"apiVersion": "apps/v1", "kind": "Deployment"})],
)
async def test_an_object_that_cannot_be_converted_is_reported(client, expected, obj):
    result = (await answered(client, "/convert", conversion(expected, obj)))["response"]["result"]
    assert result["status"] == "Failure"
    assert result["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"not json",
        b"[]",
        b"{}",
        b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {}}',
        b'{"apiVersion": "apps/v1", "kind": "Deployment", "request": {"uid": "1", "kind": {}, "operation": "CREATE"}}',
        b"\xff\xfe",
        b'{"request": "\xff"}',
    ],
)
@pytest.mark.parametrize("path", ["/mutate", "/validate", "/scale", "/convert"])
async def test_junk_is_answered_with_400_and_a_sentence(client, path, body):
    async with client.post(path, data=body) as answer:
        text = await answer.text()
    assert answer.status == 400
    assert "Traceback" not in text
    assert text.startswith(("not a review: ", "not JSON: ", "expected AdmissionReview", "expected ConversionReview"))


async def test_a_body_with_another_encoding_than_its_headers_say_is_answered_with_400(client, served):
    response = await client.post("/mutate", data=b"{}", headers={"Content-Encoding": "gzip"})
    assert (response.status, await response.text()) == (400, "the body's encoding does not match its headers\n")
    assert served.count("dynamo_admission_requests_turned_away_total", reason="junk") == 1


async def test_other_paths_and_methods_are_client_errors(client):
    async with client.post("/other") as answer:
        assert answer.status == 404
    async with client.get("/mutate") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_a_too_large_body_is_not_read(client, served, monkeypatch):
    async with client.post("/mutate", data=b"x" * (server.MAX_BODY + 1)) as answer:
        assert answer.status == 413
    assert served.count("dynamo_admission_requests_turned_away_total", reason="size") == 1


@pytest.mark.parametrize("path", ["/mutate", "/validate", "/convert"])
@pytest.mark.parametrize("levels", [300, 900, 5000])
async def test_deeply_nested_objects_get_an_answer(client, path, levels):
    """Objects in the API server may have 10,000 levels, which is more than Python can parse."""
    obj = graph()
    obj["spec"]["components"][0]["podTemplate"] = "@"
    whole = conversion("nvidia.com/v1alpha1", obj) if path == "/convert" else review(obj)
    body = json.dumps(whole).replace('"@"', '{"a":' * levels + "1" + "}" * levels)
    async with client.post(path, data=body) as answer:
        assert answer.status == 200
        response = (await answer.json())["response"]
    assert response["uid"] == "u-1"
    if levels == 5000:
        # From 3.12 on Python parses more levels: then an admission rule rejects the object, and conversion succeeds.
        converted = response.get("result") == {"status": "Success"}
        assert converted or "nested" in str(response)


async def test_an_internal_error_rejects_the_object_and_is_counted(client, served, monkeypatch):
    def broken(*_: Any) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(server, "review", broken)
    response = (await answered(client, "/validate", review(graph())))["response"]
    assert (response["allowed"], response["status"]["code"]) == (False, 500)
    assert "secret" not in response["status"]["message"]
    labels = {
        "webhook": "validate",
        "resource_type": "dynamographdeployments",
        "version": "v1beta1",
        "operation": "CREATE",
    }
    assert served.count("dynamo_operator_webhook_requests_total", **labels, result="error") == 1


async def test_a_request_beyond_the_limit_is_answered_with_429():
    served = Served(max_in_flight=1)
    async with TestClient(TestServer(served.app)) as client:
        before, after = graph(), graph()
        for each, count in ((before, 1), (after, 2)):
            each["spec"]["components"][0] |= {"scalingAdapter": {}, "replicas": count}
        update = review(after, operation="UPDATE", oldObject=before)
        first = asyncio.create_task(answered(client, "/validate", update))
        await reached(served.checking, first)
        async with client.post("/mutate", json=review(graph())) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        served.may_check.set()
        assert "response" in await first
        assert served.count("dynamo_admission_requests_in_flight") == 0
        assert (await answered(client, "/mutate", review(graph())))["response"]["allowed"] is True


@pytest.mark.parametrize(("max_in_flight", "status"), [(8, 200), (0, 429)])
async def test_clients_reconnect_elsewhere_while_the_server_drains(max_in_flight, status):
    served = Served(max_in_flight=max_in_flight)
    async with TestClient(TestServer(served.app)) as client:
        async with client.post("/mutate", json=review(graph())) as answer:
            assert answer.headers.get("Connection") != "close"
        served.state.draining = True
        async with client.post("/mutate", json=review(graph())) as answer:
            assert (answer.status, answer.headers.get("Connection")) == (status, "close")


async def test_a_body_that_does_not_arrive_times_out(client, served, monkeypatch):
    monkeypatch.setattr(server, "READ_WITHIN", 0.01)
    never = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    async with client.post("/mutate", data=endless()) as answer:
        assert answer.status == 408
    assert served.count("dynamo_admission_requests_turned_away_total", reason="slow") == 1


@pytest.mark.parametrize("pods", [1, 32])
@pytest.mark.parametrize("path", ["/validate", "/restore", "/convert"])
async def test_pods_that_send_slowly_take_no_room_of_others(
    path: str, pods: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every pod reaches the port: 64 requests without their bodies, or eight of eight pods, made a replica refuse all
    reviews.
    """
    monkeypatch.setattr(server, "READ_WITHIN", 3600.0)
    monkeypatch.setattr(room, "LARGE_OF_ALL", 20_000_000)
    served = Served(max_in_flight=2)
    large = {**graph(), "metadata": {"name": "chat", "labels": {"large": "x" * 20_000}}}
    async with TestClient(TestServer(served.app)) as client, AsyncExitStack() as open_:
        for number, length in enumerate((1000, 1_000_000) * 32):
            address = (f"127.0.0.{2 + number // 2 % pods}", 0)
            _, pod = await asyncio.open_connection("127.0.0.1", client.port, local_addr=address)
            open_.callback(pod.close)
            pod.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{{".encode())
        for each in ("/mutate", "/restore"):
            assert (await answered(client, each, review(graph())))["response"]["allowed"]
        assert (await answered(client, "/validate", review(large)))["response"]["allowed"]
        converted = conversion("nvidia.com/v1alpha1", large)
        assert len((await answered(client, "/convert", converted))["response"]["convertedObjects"]) == 1


async def test_a_large_object_is_checked_while_other_requests_are_answered(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only objects from 64 KiB on were checked in a thread: smaller ones blocked all others for up to 145 ms."""
    judging, go_on = asyncio.Event(), threading.Event()
    loop, judge = asyncio.get_running_loop(), judged

    def slow(question: AdmissionRequest, *rest: Any, **known: Any) -> Any:
        if "large" in question.object["metadata"]["labels"]:
            loop.call_soon_threadsafe(judging.set)
            assert go_on.wait(30)
        return judge(question, *rest, **known)

    monkeypatch.setattr(server, "review", slow)
    small = {**graph(), "metadata": {"name": "chat", "namespace": "team", "labels": {}}}
    large = {**small, "metadata": {**small["metadata"], "labels": {"large": "x" * 20_000}}}
    waits = asyncio.create_task(answered(client, "/validate", review(large)))
    await reached(judging, waits)
    try:
        assert (await answered(client, "/validate", review(small)))["response"]["allowed"]
        assert not waits.done()
    finally:
        go_on.set()
    assert (await waits)["response"]["uid"] == "u-1"


async def test_large_bodies_of_one_client_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty lists of 60 MiB, each for objects of another namespace, took more memory than admission has."""
    converting, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(obj: Any, desired: str) -> Any:
        loop.call_soon_threadsafe(converting.set)
        assert go_on.wait(30)
        return convert(obj, desired)

    monkeypatch.setattr(server, "convert", slow)
    monkeypatch.setattr(room, "LARGE_OF_CLIENT", 40_000)
    listing = conversion(
        "nvidia.com/v1alpha1", {**graph(), "metadata": {"name": "chat", "labels": {"a": "x" * 20_000}}}
    )
    async with TestClient(TestServer(Served().app)) as client:
        first = asyncio.create_task(answered(client, "/convert", listing))
        await reached(converting, first)
        try:
            async with client.post("/convert", json=listing) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        finally:
            go_on.set()
        await first
        await answered(client, "/convert", listing)


async def test_large_objects_of_one_namespace_wait_for_each_other_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a tenant's megabytes one is decoded at a time, and some wait; others are asked to come again."""
    judging, go_on, judge = asyncio.Event(), threading.Event(), judged
    loop, namespaces = asyncio.get_running_loop(), list[str]()

    def slow(question: AdmissionRequest, *rest: Any, **known: Any) -> Any:
        namespaces.append(question.namespace)
        if question.namespace == "team":
            loop.call_soon_threadsafe(judging.set)
            assert go_on.wait(30)
        return judge(question, *rest, **known)

    monkeypatch.setattr(server, "review", slow)
    large = {**graph(), "metadata": {"name": "chat", "labels": {"large": "x" * 20_000}}}
    served = Served(max_in_flight=32)
    async with TestClient(TestServer(served.app)) as client:
        tenant = [
            asyncio.create_task(answered(client, "/validate", review(large))) for _ in range(room.LARGE_OF_ONE - 1)
        ]
        of_tenant = {**large, "metadata": {**large["metadata"], "namespace": "team"}}
        tenant.append(asyncio.create_task(answered(client, "/convert", conversion("nvidia.com/v1alpha1", of_tenant))))
        await reached(judging, tenant[0])
        try:
            while served.count("dynamo_admission_requests_in_flight") < len(tenant):
                await asyncio.sleep(0)
            async with client.post("/validate", json=review(large)) as answer:
                assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
            assert (await answered(client, "/validate", review(large, namespace="other")))["response"]["allowed"]
            several = conversion("nvidia.com/v1alpha1", of_tenant, {**large, "metadata": {"namespace": "other"}})
            assert len((await answered(client, "/convert", several))["response"]["convertedObjects"]) == 2
            assert namespaces == ["team", "other"]
        finally:
            go_on.set()
        assert all("response" in each for each in await asyncio.gather(*tenant))


async def test_reviews_take_turns_with_the_objects_of_a_long_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists of two namespaces could take all turns for half a minute each, and the API server waits ten seconds."""
    converting, asked, go_on = asyncio.Event(), asyncio.Event(), threading.Event()
    loop, steps = asyncio.get_running_loop(), list[str]()

    def slow(obj: Any, desired: str) -> Any:
        steps.append("convert")
        loop.call_soon_threadsafe(converting.set)
        assert go_on.wait(30)
        return convert(obj, desired)

    def reads(body: bytes) -> AdmissionRequest:
        asked.set()
        return read_admission(body)

    def judges(*question: Any, **known: Any) -> Any:
        steps.append("review")
        return judged(*question, **known)

    for name, replacement in (("convert", slow), ("read_admission", reads), ("review", judges)):
        monkeypatch.setattr(server, name, replacement)
    labels = {"large": "x" * (1 << 20)}
    large = {**graph(), "metadata": {"name": "chat", "namespace": "team", "labels": labels}}
    async with TestClient(TestServer(Served().app)) as client:
        listing = asyncio.create_task(answered(client, "/convert", conversion("nvidia.com/v1alpha1", large, large)))
        await reached(converting, listing)
        reviewing = asyncio.create_task(answered(client, "/validate", review(large)))
        await reached(asked, reviewing)
        go_on.set()
        assert (await reviewing)["response"]["allowed"]
        assert len((await listing)["response"]["convertedObjects"]) == 2
    assert steps == ["convert", "review", "convert"]


async def test_a_long_list_is_converted(client: Client) -> None:
    """The API server asks for a whole list at once: large objects of one tenant must not break the lists of all."""
    each = graph(annotations={"a": "x" * (1 << 20)})
    response = (await answered(client, "/convert", conversion("nvidia.com/v1alpha1", *[each] * 9)))["response"]
    assert len(response["convertedObjects"]) == 9
