"""Webhooks answer a thousand mutations of valid manifests correctly, and their memory does not grow."""

import asyncio
import base64
import json
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from dynamo_admission.room import MAX_CONVERSION
from dynamo_admission.server import MAX_BODY
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import KubeClient

from tests.integration.admission import Admission, admission_process, authorities

from .cluster import ApiServer, delete_webhook_configurations
from .conftest import NAMESPACE
from .mutations import mutated, seeds, text_of

pytestmark = pytest.mark.long

SEED = 4
MUTATIONS = 1000
#: One of this many mutations also goes through the API server.
SHARE = 5
AT_ONCE = 8
#: Time-out of one request, the same as the API server's for a webhook. Seconds.
ANSWERED_WITHIN = 10.0
ALL_WITHIN = 240.0
#: The largest body that an API server accepts from a user. Bytes.
MOST = 3 << 20
#: Mutations before memory is measured for the first time: by then caches are filled and connections are open.
WARM_UP = 400
#: Tolerance of memory readings, because the allocator returns memory as it likes. MiB.
SLACK = 20.0

_UID = "5f1b4e9e-0000-4000-8000-{:012d}"


@dataclass(slots=True)
class ReviewClient:
    """Sends requests to one replica as the API server would, and checks the form of its answers."""

    session: aiohttp.ClientSession
    url: str
    asked: int = 0
    said: dict[str, int] = field(default_factory=dict)

    async def admission(self, path: str, resource: Resource, new: str, old: str = "null") -> KubeObject:
        """The response to a review of two objects, given as JSON."""
        self.asked += 1
        uid = _UID.format(self.asked)
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        request = {
            "uid": uid,
            "kind": kind,
            "operation": "CREATE" if old == "null" else "UPDATE",
            "name": "fuzz",
            "namespace": NAMESPACE,
            "userInfo": {"username": "user"},
            "object": "@new@",
            "oldObject": "@old@",
        }
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        text = json.dumps(review).replace('"@new@"', new).replace('"@old@"', old)
        response = await self._ask(path, text, uid)
        if response["allowed"]:
            for operation in json.loads(base64.b64decode(response.get("patch", "W10="))):
                assert operation["op"] in {"add", "remove", "replace"}
                assert operation["path"].startswith("/")
            assert all(isinstance(each, str) for each in response.get("warnings", []))
        else:
            status = response["status"]
            assert 400 <= status["code"] < 500, status
            assert status["message"], status
        self._count(f"{path} {'allowed' if response['allowed'] else 'denied'}")
        return response

    async def conversion(self, resource: Resource, obj: str) -> str | None:
        """The object in another version, as JSON; None if the kind has none."""
        self.asked += 1
        uid = _UID.format(self.asked)
        request = {"uid": uid, "desiredAPIVersion": resource.api_version, "objects": ["@object@"]}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request}
        response = await self._ask("convert", json.dumps(review).replace('"@object@"', obj), uid)
        result = response["result"]
        self._count(f"convert {result['status']}")
        if result["status"] != "Success":
            assert result["message"]
            assert "failed to convert" not in result["message"], result
            return None
        (converted,) = response["convertedObjects"]
        assert converted["apiVersion"] == resource.api_version
        return json.dumps(converted)

    async def _ask(self, path: str, text: str, uid: str) -> KubeObject:
        headers = {"Content-Type": "application/json"}
        async with self.session.post(f"{self.url}/{path}", data=text.encode(), headers=headers) as answer:
            content = await answer.text()
            assert answer.status == 200, (path, answer.status, content[:500], text[:2000])
        response: KubeObject = json.loads(content)["response"]
        assert response["uid"] == uid
        return response

    def _count(self, what: str) -> None:
        self.said[what] = self.said.get(what, 0) + 1


@pytest.fixture(scope="module")
async def replica(
    control_plane: ControlPlane, kube: KubeClient, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Admission]:
    """A replica in a separate process, called by the API server."""
    async with admission_process(control_plane.kubeconfig, tmp_path_factory.mktemp("admission")) as running:
        yield running
    await delete_webhook_configurations(kube)


@pytest.fixture
async def review_client(replica: Admission, kube: KubeClient) -> AsyncIterator[ReviewClient]:
    """Connections to the replica that stay open."""
    tls = ssl.create_default_context(cadata=base64.b64decode(await authorities(kube)).decode())
    connector = aiohttp.TCPConnector(ssl=tls, limit=AT_ONCE)
    timeout = aiohttp.ClientTimeout(total=ANSWERED_WITHIN)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        yield ReviewClient(session, replica.url)


async def test_mutations_are_answered_without_memory_growth(
    replica: Admission, review_client: ReviewClient, server: ApiServer
) -> None:
    valid = seeds()
    work = list(_mutations(valid))
    async with asyncio.timeout(ALL_WITHIN):
        await _all(work[:WARM_UP], lambda item: _one(review_client, server, *item))
        warm = _rss_mib(replica.pid)
        await _all(work[WARM_UP:], lambda item: _one(review_client, server, *item))
        assert len(work) == MUTATIONS
    assert _rss_mib(replica.pid) - warm < SLACK, review_client.said
    # Most mutations are rejected and some are harmless: both kinds must occur.
    assert review_client.said["mutate denied"] > MUTATIONS / 5
    assert review_client.said["mutate allowed"] > MUTATIONS / 50
    assert review_client.said["convert Success"] > MUTATIONS / 5


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", 400),
        (b"{", 400),
        (b"null", 400),
        (b"[]", 400),
        (b'"\\ud800"', 400),
        (b"\xff\xfe", 400),
        (b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}', 400),
        (b'{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}', 400),
        (
            b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7,"kind":{},"operation":"X"}}',
            400,
        ),
        (b'{"a":' * 100_000, 200),
        (b"9" * 100_000, 400),
    ],
    ids=lambda value: value[:40].decode(errors="replace") if isinstance(value, bytes) else str(value),
)
async def test_a_body_that_is_not_a_review_is_rejected(review_client: ReviewClient, body: bytes, expected: int) -> None:
    for path in ("mutate", "validate", "convert", "scale"):
        async with review_client.session.post(f"{review_client.url}/{path}", data=body) as answer:
            assert answer.status == expected, await answer.text()


@pytest.mark.parametrize(
    ("path", "most"), [("mutate", MAX_BODY), ("validate", MAX_BODY), ("scale", MAX_BODY), ("convert", MAX_CONVERSION)]
)
async def test_a_body_that_is_too_large_is_rejected(review_client: ReviewClient, path: str, most: int) -> None:
    async with review_client.session.post(f"{review_client.url}/{path}", data=b"x" * (most + 1)) as answer:
        assert answer.status == 413, await answer.text()


def _mutations(valid: list[KubeObject]) -> Iterator[tuple[int, KubeObject, str]]:
    random, number = Random(SEED), 0
    while number < MUTATIONS:
        seed = random.choice(valid)
        text = text_of(mutated(seed, valid, random))
        if len(text) < MOST:
            yield number, seed, text
            number += 1


async def _one(review_client: ReviewClient, server: ApiServer, number: int, seed: KubeObject, text: str) -> None:
    resource, others = _resources(seed)
    before = json.dumps(seed)
    allowed = (await review_client.admission("mutate", resource, text))["allowed"]
    assert (await review_client.admission("validate", resource, text))["allowed"] == allowed
    await review_client.admission("validate", resource, text, before)
    stored, is_whole = _stored(text, resource) if allowed else (text, False)
    for other in others:
        there = await review_client.conversion(other, stored)
        back = await review_client.conversion(resource, there) if there is not None else None
        if is_whole:
            assert back is not None
            assert _without_status(back) == _without_status(stored)
    if number % SHARE == 0:
        status, answer = await server.send("POST", resource.path(NAMESPACE), text)
        assert status < 500, (answer, text[:2000])
        if status == 201:
            await server.ask("DELETE", f"{resource.path(NAMESPACE)}/{answer['metadata']['name']}")


def _without_status(text: str) -> KubeObject:
    """An object without its status, which is not stored with it and therefore not validated."""
    return {name: value for name, value in json.loads(text).items() if name != "status"}


def _stored(text: str, resource: Resource) -> tuple[str, bool]:
    """An admitted object in the form that the API server would convert, and whether it must come back unchanged.

    A stored object has a uid. One without a uid or a specification is partial, and comes back with an annotation.
    Preserved fields that belong to another object are dropped.
    """
    obj = json.loads(text)
    stored = {**obj, "metadata": {**obj["metadata"], "uid": _UID.format(0)}}
    is_whole = "spec" in obj and obj["apiVersion"] == resource.api_version and PRESERVED_FIELDS not in text
    return json.dumps(stored), is_whole


async def _all(work: list[Any], do: Callable[[Any], Awaitable[None]]) -> None:
    """Process all items, some concurrently; the first failure ends it."""
    waiting = iter(work)

    async def worker() -> None:
        for item in waiting:
            await do(item)

    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(worker())


def _resources(obj: KubeObject) -> tuple[Resource, list[Resource]]:
    """The resource of a manifest, and the same kind in its other versions."""
    (definition,) = (each for each in DEFINITIONS if each.kind == obj["kind"])
    results = [version.resource for version in definition.versions]
    (own,) = (each for each in results if each.api_version == obj["apiVersion"])
    return own, [each for each in results if each is not own]


def _rss_mib(pid: int) -> float:
    match = re.search(r"^VmRSS:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert match is not None
    return int(match[1]) / 1024
