"""Whatever stands on STATE, its reader reads on: damaged and forged messages cost their own subject at most."""

import asyncio
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from dynamo_shared.aio import ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DEPLOYMENTS, ObjectKey
from dynamo_shared.bus import streams
from dynamo_shared.state import ObjectCache, StateReader, messages
from dynamo_shared.wire import subjects

from tests.building.memory_bus import MemoryBus
from tests.building.objects import stored_object
from tests.hostile import texts

CLUSTER = "c"
GOOD, BAD = ObjectKey("quiet", "good"), ObjectKey("tenant", "bad")
HUGE = str(2**60)


def deployment(key: ObjectKey, version: int = 5, **metadata: Any) -> KubeObject:
    metadata = {"resourceVersion": str(version), "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    return stored_object(DEPLOYMENTS, key.name, key.namespace, spec={"replicas": version}, **metadata)


Sent = tuple[str, bytes, dict[str, str]]
SUBJECT = subjects.state_subject(CLUSTER, DEPLOYMENTS.id, BAD)


def headers(obj: KubeObject, **changed: str) -> dict[str, str]:
    return {**messages.object_headers(obj, messages.ChangeType.MODIFIED), **changed}


def forged() -> Iterator[tuple[str, list[Sent]]]:
    """Messages under the subject of BAD, by what is wrong with them."""
    bad = deployment(BAD)
    good_inside = json.dumps({**deployment(GOOD, 9), "spec": {"replicas": 666}}).encode()
    body = json.dumps(bad).encode()
    yield "payload of another object", [(SUBJECT, good_inside, headers(bad))]
    yield "headers of another object", [(SUBJECT, body, headers(deployment(GOOD, 9)))]
    for text in (b"", b"null", b"[]", b'"x"', b"\xff\xfe", texts.nested(200_000).encode(), b"9" * 10_000):
        yield f"payload {text[:8]!r} of {len(text)} bytes", [(SUBJECT, text, headers(bad))]
    odd: list[Any] = ["x", [], None, 1, {"name": 1}, {"name": [], "namespace": {}}, {"labels": "x", **bad["metadata"]}]
    for value in odd:
        content = json.dumps({**bad, "metadata": value}).encode()
        yield f"metadata {str(value)[:30]}", [(SUBJECT, content, headers(bad))]
    for date in (each for each in texts.DATES if len(each) < 100):
        # Another object of the name, twice: their times are compared.
        pair = [deployment(BAD, 7 + number, uid=f"u{number}", creationTimestamp=date) for number in range(3)]
        pair.insert(1, bad)
        yield f"created {date}", [(SUBJECT, json.dumps(each).encode(), headers(each)) for each in pair]
    for version in ("", "x", "-1", "0", HUGE, "9" * 400, "1e9", "１", " 1"):
        yield f"version {version[:20]}", [(SUBJECT, body, headers(bad, resourceVersion=version))]
        yield f"tombstone {version[:20]}", [(SUBJECT, b"", headers(bad, resourceVersion=version, change="deleted"))]
    marker = subjects.synced_subject(CLUSTER, DEPLOYMENTS.id)
    for content in (b"", b"{}", b"[]", b'{"resource": 1}', texts.nested(100_000).encode()):
        yield f"marker {content[:16]!r}", [(marker, content, {"change": "synced"})]
    yield "fuzz", list(fuzzed(bad))


def fuzzed(bad: KubeObject) -> Iterator[Sent]:
    dice = random.Random(12)
    words = ["", "x", "-1", HUGE, "9" * 400, "deleted", "synced", "added", "2026-01-01T00:00:00", "\x7f"]
    values: list[Any] = [None, True, -1, 1e308, "x", [], {}, {"a": {"b": []}}, "9999-12-31T23:59:59Z", 10**30]
    names = ["uid", "resourceVersion", "created", "change", "generation", "traceparent"]
    for _ in range(400):
        chosen = {name: dice.choice(words) for name in dice.sample(names, dice.randint(0, 6))}
        content = json.loads(json.dumps(bad))
        for _ in range(dice.randint(0, 3)):
            part = dice.choice((content, content.get("metadata")))
            if isinstance(part, dict) and part:
                part[dice.choice(list(part))] = dice.choice(values)
        yield SUBJECT, json.dumps(content).encode(), chosen


FORGED = dict(forged())


@pytest.mark.parametrize("name", FORGED)
async def test_a_reader_continues_after_invalid_messages(name: str) -> None:
    bus = MemoryBus()
    await bus.declare(streams.STATE)
    cache = ObjectCache()
    reader = StateReader(bus, CLUSTER, [DEPLOYMENTS], cache)
    reading = asyncio.create_task(reader.run())
    try:
        for subject, payload, head in FORGED[name]:
            await bus.publish(subject, payload, headers=head)
        result = deployment(GOOD)
        subject = subjects.state_subject(CLUSTER, DEPLOYMENTS.id, GOOD)
        await bus.publish(subject, messages.encode_object(result), headers=headers(result))
        async with asyncio.timeout(60):
            while cache.get(DEPLOYMENTS, GOOD) is None:
                assert not reading.done(), reading.exception()
                await asyncio.sleep(0)
        assert cache.get(DEPLOYMENTS, GOOD) == result
        for each in cache.list(DEPLOYMENTS):
            assert isinstance(each["metadata"], dict)
            assert (each["metadata"]["namespace"], each["metadata"]["name"]) in {GOOD, BAD}
    finally:
        await ended(reading)
        await bus.close()
