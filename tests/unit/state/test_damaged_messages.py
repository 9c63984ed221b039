"""Messages of STATE whose subject, headers and payload disagree: the difference is reported, and no content is used."""

import zlib
from typing import Any

import pytest
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.bus import streams
from dynamo_shared.bus.protocol import Message
from dynamo_shared.state import ObjectCache, StateReader, messages

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background
from tests.building.waiting import until

KEY = ObjectKey("ns", "a")
METADATA = {
    "name": "a",
    "namespace": "ns",
    "uid": "u",
    "resourceVersion": "5",
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": METADATA, "spec": {}}
HEADERS = messages.object_headers(POD, messages.ChangeType.ADDED)


def pod(**metadata: Any) -> bytes:
    return messages.encode_object({**POD, "metadata": {**METADATA, **metadata}})


GOOD = pod()
CASES: list[tuple[str, dict[str, str], bytes]] = [
    ("truncated", {}, b"{"),
    (".", {}, b"[]"),
    (".", {}, b"null"),
    (".", {}, b"\xff\xfe"),
    (".", {}, b""),
    ("too deeply", {}, b'{"metadata":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("kind of the payload", {}, b"{}"),
    ("kind of the payload", {}, messages.encode_object({**POD, "kind": "Secret"})),
    ("kind of the payload", {}, messages.encode_object({**POD, "apiVersion": "v2"})),
    ("name or namespace of the payload", {}, b'{"apiVersion": "v1", "kind": "Pod", "metadata": "x"}'),
    ("name or namespace of the payload", {}, pod(name="b")),
    ("name or namespace of the payload", {}, pod(namespace="other")),
    ("name or namespace of the payload", {}, pod(name=["a"])),
    ("uid is missing", {"uid": ""}, pod(uid="")),
    ("uid does not match the payload", {}, pod(uid="v")),
    ("uid does not match the payload", {}, pod(uid=None)),
    ("resourceVersion does not match the payload", {"resourceVersion": str(2**60)}, GOOD),
    ("resourceVersion does not match the payload", {"resourceVersion": "05"}, GOOD),
    ("not a 64-bit number", {"resourceVersion": "-5"}, pod(resourceVersion="-5")),
    ("not a 64-bit number", {"resourceVersion": "9" * 5000}, pod(resourceVersion="9" * 5000)),
    ("not a 64-bit number", {"resourceVersion": "٥"}, pod(resourceVersion="٥")),
    ("not a 64-bit number", {"resourceVersion": ""}, pod(resourceVersion="")),
    ("not an RFC 3339 time", {"created": "2026-01-01T00:00:00"}, pod(creationTimestamp="2026-01-01T00:00:00")),
    ("not an RFC 3339 time", {"created": "yesterday"}, pod(creationTimestamp="yesterday")),
    ("created does not match the payload", {"created": "2027-01-01T00:00:00Z"}, GOOD),
    ("generation does not match the payload", {"generation": "7"}, GOOD),
    ("generation does not match the payload", {}, pod(generation=7)),
    ("labels is not a dict", {}, pod(labels=["x"])),
    ("annotations is not a dict", {}, pod(annotations="x")),
    ("ownerReferences is not a list", {}, pod(ownerReferences={"x": 1})),
    ("finalizers is not a list", {}, pod(finalizers="x")),
    ("spec is not a dict", {}, messages.encode_object({**POD, "spec": []})),
    ("status is not a dict", {}, messages.encode_object({**POD, "status": "x"})),
    ("change is not", {"change": "synced"}, GOOD),
    ("change is not", {"change": ""}, GOOD),
    ("tombstone has a payload", {"change": "deleted"}, GOOD),
    ("is not supported", {"content-encoding": "gzip"}, GOOD),
    ("cannot be decompressed", {"content-encoding": "zlib"}, GOOD),
    ("truncated", {"content-encoding": "zlib"}, zlib.compress(GOOD)[:-5]),
]


def message(payload: bytes, **headers: str) -> Message:
    return Message("dynamo.state.v1.c.pods.ns.a", payload, {**HEADERS, **headers}, 1)


def test_a_valid_message() -> None:
    version, obj = messages.read(PODS, KEY, message(GOOD))
    assert (version.uid, version.resource_version, obj) == ("u", 5, POD)
    assert messages.read(PODS, KEY, message(zlib.compress(GOOD), **{"content-encoding": "zlib"})).obj == POD


@pytest.mark.parametrize(("what", "headers", "payload"), CASES)
def test_the_damage_is_described(what: str, headers: dict[str, str], payload: bytes) -> None:
    with pytest.raises(ValueError, match=what):
        messages.read(PODS, KEY, message(payload, **headers))


def test_a_reader_ignores_all_of_them_and_continues() -> None:
    cache = ObjectCache()
    reader = StateReader(MemoryBus(), "c", [PODS], cache)
    cache.on_change(lambda *_: None)
    said: list[str] = []
    reader.on_quarantine(said.append)
    reader._take(message(GOOD))
    for _, headers, payload in CASES:
        reader._take(message(payload, **headers))
        assert cache.get(PODS, KEY) == POD
        assert said[-1].startswith("1 invalid message in STATE ignored; the first: dynamo.state.v1.c.pods.ns.a: ")
    for subject in ("dynamo.state.v1.c.pods.ns", "dynamo.state.v1.c.other.ns.a", "", "dynamo.state.v1.c.pods._synced"):
        reader._take(Message(subject, b"{", HEADERS, 1))
    reader._take(message(pod(resourceVersion="6"), resourceVersion="6"))
    assert said[-1].startswith("4 invalid messages")
    assert cache.version(PODS, KEY) == ("u", 6, "2026-01-01T00:00:00Z")


def test_an_object_that_an_index_cannot_read_is_isolated_too() -> None:
    cache = ObjectCache()
    cache.add_index(PODS, "x", lambda each: [each["spec"]["missing"]["deep"].strip()])
    reader = StateReader(MemoryBus(), "c", [PODS], cache)
    reader._take(message(GOOD))
    assert cache.count(PODS) == 0


def test_the_number_of_recorded_damaged_messages_is_bounded() -> None:
    reader = StateReader(MemoryBus(), "c", [PODS], ObjectCache())
    for number in range(3000):
        reader._take(Message(f"dynamo.state.v1.c.pods.ns.n{number}", b"{", HEADERS, 1))
    assert len(reader._quarantine) == 1000


async def test_a_damaged_message_that_vanished_without_a_tombstone_no_longer_counts() -> None:
    """The stream was lost, or the tombstone expired while the reader was away."""
    bus, said = MemoryBus(), list[str]()
    reader = StateReader(bus, "c", [PODS], ObjectCache())
    reader.on_quarantine(said.append)
    await bus.declare(streams.STATE)
    await bus.publish("dynamo.state.v1.c.pods.ns.a", b"{", headers=HEADERS)
    async with in_background(reader.run()):
        await until(lambda: said)
        assert said[-1].startswith("1 invalid message")
        bus.disconnect()
        bus.lose_data()
        bus.reconnect()
        await until(lambda: not said[-1])
    await bus.close()
