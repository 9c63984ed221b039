"""The publisher's knowledge of STATE: the last message of each subject, counts, and objects missing in a list."""

from dynamo_shared.api.resources import DEPLOYMENTS, PODS, ObjectKey
from dynamo_shared.bus import streams
from dynamo_shared.state import messages
from dynamo_shared.state.publisher import ledger
from dynamo_shared.state.publisher.ledger import LastMessage, Ledger
from dynamo_shared.state.versions import Version
from dynamo_shared.wire.subjects import state_subject
from hypothesis import given
from hypothesis import strategies as st

from tests.building.memory_bus import MemoryBus
from tests.building.waiting import with_turns

VERSIONS = st.builds(Version, st.text(), st.integers(), st.text())
MESSAGES = st.builds(LastMessage, st.integers(min_value=0), VERSIONS, st.booleans(), st.integers())


def subject(name: str) -> str:
    return state_subject("default", PODS.id, ObjectKey("ns", name))


def message(sequence: int = 1, *, deleted: bool = False) -> LastMessage:
    return LastMessage(sequence, Version(f"uid-{sequence}", sequence, "2026-01-01T00:00:00Z"), deleted)


@given(MESSAGES)
def test_the_last_message_is_recorded_whatever_its_headers_say(known: LastMessage) -> None:
    observed = Ledger()
    observed.set(PODS.id, subject("a"), known)
    assert observed.get(PODS, subject("a")) == known
    assert observed.get(DEPLOYMENTS, subject("a")) is None


async def test_objects_are_counted_without_tombstones() -> None:
    observed = Ledger()
    observed.set(PODS.id, subject("a"), message(1))
    observed.set(PODS.id, subject("b"), message(2))
    observed.set(PODS.id, subject("b"), message(3, deleted=True))
    assert (observed.count(PODS), observed.count(DEPLOYMENTS), observed.total()) == (1, 0, 1)
    assert await observed.unread(()) == [(PODS.id, subject("a"))]
    observed.set(PODS.id, subject("b"), message(4))
    assert (observed.count(PODS), observed.total()) == (2, 2)
    observed.drop(PODS, subject("b"))
    assert (observed.count(PODS), observed.get(PODS, subject("b"))) == (1, None)
    observed.clear()
    assert observed.total() == 0


async def test_objects_missing_in_a_list_are_reported_unless_their_deletion_is_known() -> None:
    observed = Ledger()
    for number, name in enumerate(("listed", "lacking", "gone"), 1):
        observed.set(PODS.id, subject(name), message(number, deleted=name == "gone"))
    lacking = await observed.missing(PODS, {ObjectKey("ns", "listed")})
    assert lacking == [(ObjectKey("ns", "lacking"), message(2).version)]


async def test_other_tasks_run_while_many_subjects_are_compared() -> None:
    """A hundred thousand objects took half a second at the start and at each audit."""
    observed, names = Ledger(), [str(number) for number in range(10_000)]
    for number, name in enumerate(names, 1):
        observed.set(PODS.id, subject(name), message(number))
    missing, turns = await with_turns(observed.missing(PODS, {ObjectKey("ns", name) for name in names[1:]}))
    assert missing == [(ObjectKey("ns", "0"), message(1).version)]
    assert turns >= 19
    unread, turns = await with_turns(observed.unread({subject(name) for name in names[1:]}))
    assert unread == [(PODS.id, subject("0"))]
    assert turns >= 19


async def test_read_messages_replace_neither_newer_ones_nor_other_resources() -> None:
    bus, observed = MemoryBus(), Ledger()
    await bus.declare(streams.STATE)
    await bus.publish(subject("a"), b"{}", headers=messages.tombstone_headers(message(1).version))
    await bus.publish(subject("b"), b"{}", headers=messages.tombstone_headers(message(2).version))
    elsewhere = state_subject("default", DEPLOYMENTS.id, ObjectKey("ns", "a"))
    observed.set(PODS.id, subject("a"), message(5))
    observed.set(PODS.id, subject("c"), message(6, deleted=True))
    observed.set(DEPLOYMENTS.id, elsewhere, message(7, deleted=True))
    await observed.load(bus, "default", [PODS])
    known = {name: observed.get(PODS, subject(name)) for name in "abc"}
    assert [each and each.sequence for each in known.values()] == [5, 2, 6]
    assert observed.get(DEPLOYMENTS, elsewhere) == message(7, deleted=True)
    assert (observed.count(PODS), observed.count(DEPLOYMENTS), observed.total()) == (1, 0, 1)


def test_the_oldest_tombstones_are_forgotten(monkeypatch) -> None:
    monkeypatch.setattr(ledger, "REMEMBERED_TOMBSTONES", 2)
    observed = Ledger()
    for number, name in enumerate("abc", 1):
        observed.set(PODS.id, subject(name), message(number, deleted=True))
    assert observed.get(PODS, subject("a")) is None
    assert observed.get(PODS, subject("b")) == message(2, deleted=True)
