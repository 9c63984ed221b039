"""Changes of a stream, and its silence."""

import asyncio
import base64
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from dynamo_dynadmin.api import collection_reader
from dynamo_dynadmin.api.collection_reader import CollectionReader, _Follower
from dynamo_dynadmin.api.kinds import MODELS
from dynamo_dynadmin.api.selectors import selector
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.identity.access import AccessVerdict
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub, Reader, Resync, changes
from dynamo_dynadmin.state.position import Position
from dynamo_shared.api.resources import DYNAMO_MODELS, ObjectKey
from dynamo_shared.bus.protocol import Message
from dynamo_shared.state import messages
from dynamo_shared.state.versions import Version
from dynamo_shared.wire import subjects

WITHIN = 5.0
LONG = 3600.0


def reader() -> Reader:
    return Reader(DYNAMO_MODELS, "n")


def entry(number: int) -> StoredObject:
    return StoredObject(ObjectKey("n", "m"), number, Version("u", number, ""), b"{}")


async def test_changes_of_one_moment_come_together_and_silence_is_an_empty_list() -> None:
    place, waits = reader(), iter([LONG, LONG, 0.01, 0.01, LONG])
    async with asyncio.timeout(WITHIN):
        stream = changes(place, lambda: next(waits))
        place.offer(entry(1))
        place.offer(entry(2))
        assert [each.sequence for each in await anext(stream)] == [1, 2]
        place.offer(entry(3))
        assert [each.sequence for each in await anext(stream)] == [3]
        # A shorter wait than the one before, as when a token ends.
        assert await anext(stream) == []
        assert await anext(stream) == []
        place.offer(entry(4))
        assert [each.sequence for each in await anext(stream)] == [4]


async def test_silence_is_counted_from_the_last_change() -> None:
    place, loop = reader(), asyncio.get_running_loop()
    async with asyncio.timeout(WITHIN):
        stream = changes(place, lambda: 0.2)
        loop.call_later(0.1, place.offer, entry(1))
        assert await anext(stream)
        last = loop.time()
        assert await anext(stream) == []
        # The loop counts milliseconds.
        assert round(loop.time() - last, 3) >= 0.2


async def test_a_reader_that_lost_its_place_begins_again() -> None:
    place = reader()
    place.lose()
    with pytest.raises(Resync):
        async with asyncio.timeout(WITHIN):
            await anext(changes(place, lambda: LONG))


def change(name: str, sequence: int, team: str | None) -> StoredObject:
    """A change of an object with a label, or without a label its deletion."""
    content = {"metadata": {"name": name, "labels": {"team": team or "a"}}}
    payload, last = (b"", msgspec.json.encode(content)) if team is None else (msgspec.json.encode(content), b"")
    return StoredObject(ObjectKey("n", name), sequence, Version("u", sequence, ""), payload, last=last)


@pytest.mark.parametrize(
    ("resumed", "sent"),
    [
        (False, ["", "", "ADDED", "MODIFIED", "DELETED", "", "", "ADDED", "DELETED", ""]),
        # The reader may have the object from before, once.
        (True, ["DELETED", "", "ADDED", "MODIFIED", "DELETED", "", "", "ADDED", "DELETED", ""]),
    ],
    ids=["from the beginning", "resumed"],
)
def test_a_reader_of_a_selector_gets_no_end_of_what_it_never_got(resumed: bool, sent: list[str]) -> None:
    hub = cast("Hub", SimpleNamespace(incarnation="i"))
    follower = _Follower(hub, DYNAMO_MODELS, ObjectKey("n", ""), selector("team=a"), resumed=resumed)
    teams = ["b", "b", "a", "a", "b", "b", None, "a", None, None]
    frames = [follower._frame(change("m", number, team), f"{number}-i") for number, team in enumerate(teams, 1)]
    kinds = [frame.split(b"\n")[1].removeprefix(b"event: ").decode() if frame else "" for frame in frames]
    assert kinds == sent


def test_a_resumed_stream_remembers_a_limited_number_of_deleted_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_reader, "_GONE", 2)
    hub = cast("Hub", SimpleNamespace(incarnation="i"))
    follower = _Follower(hub, DYNAMO_MODELS, ObjectKey("n", ""), selector(""), resumed=True)
    for number in range(5):
        follower._frame(change(f"m-{number}", number, None), "")
    assert list(follower._gone) == ["m-3", "m-4"]


def test_what_vanished_without_a_message_is_reported_to_a_stream_that_goes_on_where_it_was() -> None:
    hub = Hub(cast("Any", None), "c", [DYNAMO_MODELS])
    entries, key = hub.entries(DYNAMO_MODELS), ObjectKey("n", "m")
    entries.take(key, 7, Version("u", 1, ""), b"{}")
    entries.take(ObjectKey("n", "other"), 8, Version("v", 2, ""), b"{}")
    hub.incarnation, hub._last, hub._caught_up = "i", 8, True
    entries.marked, entries.unconfirmed = True, {key}
    position = hub.position()
    hub._settle(DYNAMO_MODELS.id)
    assert [(each.key, each.deleted) for each in hub.resume(DYNAMO_MODELS, "n", position)] == [(key, True)]
    hub._last = 9
    assert hub.resume(DYNAMO_MODELS, "n", hub.position()) == []


def test_more_that_vanished_without_messages_than_is_remembered_makes_a_stream_begin_again_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was forgotten had the position of the reader itself, which went on as if nothing were gone."""
    hub = _vanishing(monkeypatch, 3)
    before, entries = hub.position(), hub.entries(DYNAMO_MODELS)
    with hub.reading(DYNAMO_MODELS, "n") as reader:
        hub._settle(DYNAMO_MODELS.id)
        assert {each.key.name for each in reader.taken()} == set("abc"), "an open stream has them all"
    with pytest.raises(Resync):
        hub.resume(DYNAMO_MODELS, "n", before)
    again = Position.of(str(hub.position()))
    assert again is not None
    assert [each.deleted for each in hub.resume(DYNAMO_MODELS, "n", again)] in ([], [True])
    hub._identify("i")
    assert hub.position() == again, "it is the same stream"
    # Later deletions push out the last one of them.
    for number, name in enumerate("de", 4):
        for payload in (b"{}", b""):
            changed = entries.take(ObjectKey("n", name), number, Version("u", number, ""), payload)
            hub._offer(DYNAMO_MODELS.id, changed)
    hub._last = 5
    with pytest.raises(Resync):
        hub.resume(DYNAMO_MODELS, "n", again)
    hub.resume(DYNAMO_MODELS, "n", hub.position())


@pytest.mark.parametrize(("limit", "size"), [(1, 1 << 20), (5000, 2)], ids=["by number", "by bytes"])
async def test_pages_of_a_list_have_the_position_of_the_first_one(
    limit: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream that begins there has what changed between two of them, on pages that had been read."""
    monkeypatch.setattr("dynamo_dynadmin.api.collection_reader.PAGE_BYTES", size)
    hub = Hub(cast("Any", None), "c", [DYNAMO_MODELS])
    entries, hub.incarnation, hub._last = hub.entries(DYNAMO_MODELS), "i", 2
    entries.synced = True
    for number, name in enumerate("ab", 1):
        entries.take(ObjectKey("n", name), number, Version(name, number, ""), b"{}")

    async def may(*_: object) -> AccessVerdict:
        return AccessVerdict(True, "")

    reading = CollectionReader(hub, cast("Any", SimpleNamespace(may=may)), cast("Any", None))

    async def page(continue_: str) -> Any:
        parameters = {"continue": continue_}
        call = SimpleNamespace(
            namespace="n",
            caller=None,
            flag=lambda _: False,
            text=lambda name: parameters.get(name, ""),
            number=lambda *_: limit,
            answer=msgspec.json.decode,
        )
        return await reading.list_of(cast("Any", call), MODELS)

    first = await page("")
    assert (len(first["items"]), first["metadata"]["remainingItemCount"]) == (1, 1)
    hub._last = 3
    entries.take(ObjectKey("n", "a"), 3, Version("a", 3, ""), b'{"a": 1}')
    last = await page(first["metadata"]["continue"])
    assert "continue" not in last["metadata"]
    assert first["metadata"]["position"] == last["metadata"]["position"] == "2-i"
    position = Position.of(last["metadata"]["position"])
    assert position is not None
    assert [each.key.name for each in hub.resume(DYNAMO_MODELS, "n", position)] == ["a"]
    for invalid in ("rubbish", base64.b64encode(b"after:a").decode(), base64.b64encode(b"2-i a").decode()):
        with pytest.raises(ProblemError, match="must be the token of the previous page"):
            await page(invalid)


async def test_large_objects_are_sent_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream of a tenant's thousand objects of a megabyte was put together in memory before its first byte was sent."""
    monkeypatch.setattr("dynamo_dynadmin.api.collection_reader.WRITTEN_BYTES", 100)
    hub = Hub(cast("Any", None), "c", [DYNAMO_MODELS])
    entries = hub.entries(DYNAMO_MODELS)
    for number, name in enumerate("abcd", 1):
        entries.take(ObjectKey("n", name), number, Version(name, number, ""), b'{"a": "' + b"x" * 50 + b'"}')
    written = list[bytes]()

    async def write(content: bytes) -> None:
        written.append(content)
        if content.rstrip().endswith(b"}") and b"synced" in content:
            raise ConnectionError

    follower = _Follower(hub, DYNAMO_MODELS, ObjectKey("n", ""), selector(""))
    with pytest.raises(ConnectionError):
        await follower.follow(cast("Any", SimpleNamespace(write=write, timeout=lambda: LONG)), None)
    assert [each.count(b"event: ADDED") for each in written] == [2, 2, 0]


def _vanishing(monkeypatch: pytest.MonkeyPatch, size: int) -> Hub:
    """Three objects vanish without messages; `size` bytes of them are remembered, each has two."""
    monkeypatch.setattr("dynamo_dynadmin.state.entries.DELETED_BYTES", size)
    hub = Hub(cast("Any", None), "c", [DYNAMO_MODELS])
    hub._identify("i")
    entries, keys = hub.entries(DYNAMO_MODELS), {ObjectKey("n", name) for name in "abc"}
    for number, key in enumerate(sorted(keys), 1):
        entries.take(key, number, Version("u", number, ""), b"{}")
    hub._last, hub._caught_up = 3, True
    entries.marked, entries.unconfirmed = True, set(keys)
    return hub


def test_a_stream_that_breaks_off_among_what_vanished_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its last event had the position of those that it had not read yet, and that were forgotten meanwhile."""
    hub = _vanishing(monkeypatch, 3)
    with hub.reading(DYNAMO_MODELS, "n") as reader:
        hub._settle(DYNAMO_MODELS.id)
        *others, last = reader.taken()
        for each in others:
            with pytest.raises(Resync):
                hub.resume(DYNAMO_MODELS, "n", Position(each.sequence, each.incarnation))
        assert hub.resume(DYNAMO_MODELS, "n", Position(last.sequence, last.incarnation)) == [last]


def test_what_vanished_is_forgotten_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of thousands of later deletions pushed out one, and made every stream that came back begin again."""
    hub = _vanishing(monkeypatch, 6)
    hub._settle(DYNAMO_MODELS.id)
    for number, name in enumerate("defg", 4):
        for payload in (b"{}", b""):
            changed = hub.entries(DYNAMO_MODELS).take(ObjectKey("n", name), number, Version("u", number, ""), payload)
            hub._offer(DYNAMO_MODELS.id, changed)
    assert hub.incarnation == "i.1"


def test_a_deletion_of_what_was_never_known_pushes_out_what_vanished(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynamo_dynadmin.state.entries.DELETIONS", 3)
    hub = _vanishing(monkeypatch, 1000)
    hub._settle(DYNAMO_MODELS.id)
    before = hub.position()
    assert len(hub.resume(DYNAMO_MODELS, "n", before)) == 3
    subject = subjects.state_subject("c", DYNAMO_MODELS.id, ObjectKey("n", "d"))
    hub._take(Message(subject, b"", messages.tombstone_headers(Version("u", 3, "")), 3))
    with pytest.raises(Resync):
        hub.resume(DYNAMO_MODELS, "n", before)
    assert hub.incarnation.endswith(".1")
