"""Kubernetes Events: what is written, how often, and that a failure to write one never affects the caller."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from dynamo_shared.kube import event_series
from dynamo_shared.kube.event_series import EventCorrelator, EventOutcome, Series, SeriesKey, clipped
from dynamo_shared.kube.events import CAPACITY, EventRecorder
from hypothesis import given
from hypothesis import strategies as st

from tests.building.clock import ManualClock

from . import steps

OBJECT: dict[str, Any] = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "llm", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_800_000_000.0)


def suffixes() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):04x}"


class Recorder(EventRecorder):
    """A recorder, and the results of its Events."""

    def __init__(self, server: Any, clock: ManualClock, waits: list[float] | None) -> None:
        async def sleep(seconds: float) -> None:
            if waits is not None:
                waits.append(seconds)

        self.outcomes: Counter[EventOutcome] = Counter()
        super().__init__(
            server.client(),
            "dynamo-pod-builder",
            clock,
            instance="host-1",
            sleep=sleep,
            new_suffix=suffixes(),
            count=lambda outcome: self.outcomes.update((outcome,)),
        )


def recorder(server: Any, clock: ManualClock, waits: list[float] | None = None) -> Recorder:
    return Recorder(server, clock, waits)


def record(events: EventRecorder, message: str = "Created llm-frontend", *, type_: Any = "Normal", **more: Any) -> None:
    arguments = {"reason": "Created", "action": "Create", **more}
    events.record(arguments.pop("involved", OBJECT), type_=type_, message=message, **arguments)


async def test_an_event_is_one_create(server: Any, clock: ManualClock) -> None:
    server.then(steps.answer({}))
    async with recorder(server, clock) as events:
        record(events)
    [observed] = server.requests
    assert (observed.method, observed.path) == ("POST", "/apis/events.k8s.io/v1/namespaces/ns/events")
    of_type = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment"}
    assert observed.json == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "llm.0001", "namespace": "ns"},
        "eventTime": "2027-01-15T08:00:00.000000Z",
        "reportingController": "dynamo-pod-builder",
        "reportingInstance": "host-1",
        "type": "Normal",
        "reason": "Created",
        "action": "Create",
        "note": "Created llm-frontend",
        "regarding": {**of_type, "name": "llm", "namespace": "ns", "uid": "u1", "resourceVersion": "7"},
    }


async def test_a_repeated_event_is_counted_and_patched_once_a_minute(server: Any, clock: ManualClock) -> None:
    server.then(*[steps.answer({})] * 4)
    async with recorder(server, clock) as events:
        for _ in range(5):
            record(events)
        await events._queue.join()
        for _ in range(59):
            clock.now += 1
            record(events)
        clock.now += 1
        record(events)
        await events._queue.join()
        record(events)
    create, patch = server.requests
    assert create.json["series"]["count"] == 5
    assert (patch.method, patch.path) == ("PATCH", "/apis/events.k8s.io/v1/namespaces/ns/events/llm.0001")
    assert patch.json == {"series": {"count": 65, "lastObservedTime": "2027-01-15T08:01:00.000000Z"}}


async def test_an_ended_series_has_its_count_and_its_last_time(
    server: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo_shared.kube.events.SERIES_WRITE_SECONDS", 0.01)
    server.then(*[steps.answer({})] * 3)
    async with asyncio.timeout(60), recorder(server, clock) as events:
        record(events, "once")
        record(events)
        await events._queue.join()
        for _ in range(9):
            clock.now += 1
            record(events)
        clock.now += 51
        server.arrived.clear()
        await server.arrived.wait()
        await events._queue.join()
        clock.now += 60
        assert events._correlator.behind() == []
    [_, _, patch] = server.requests
    assert patch.json == {"series": {"count": 10, "lastObservedTime": "2027-01-15T08:00:09.000000Z"}}


async def test_a_repetition_during_a_write_is_not_lost(server: Any, clock: ManualClock) -> None:
    events = recorder(server, clock)

    async def again(_: Any) -> Any:
        record(events)
        return await steps.answer({})(_)

    server.then(again, steps.reset(), steps.refuse(409, "AlreadyExists"))
    async with events:
        record(events)
        await events._queue.join()
        record(events, "answered, and lost")
        record(events, "answered, and lost")
        await events._queue.join()
        clock.now += 60
        assert [series.count for series in events._correlator.behind()] == [2, 2]


async def test_an_event_is_new_again_after_ten_minutes_of_silence(server: Any, clock: ManualClock) -> None:
    server.then(*[steps.answer({})] * 2)
    async with recorder(server, clock) as events:
        record(events)
        await events._queue.join()
        clock.now += 601
        record(events)
    assert [observed.json["metadata"]["name"] for observed in server.requests] == ["llm.0001", "llm.0002"]


async def test_an_object_gets_a_few_events_a_minute_and_warnings_have_their_own_limit(
    server: Any, clock: ManualClock
) -> None:
    server.then(*[steps.answer({})] * 30)
    async with recorder(server, clock) as events:
        for number in range(500):
            clock.now += 0.125
            record(events, f"message {number}")
        record(events, "broken", type_="Warning")
        other = {**OBJECT, "metadata": {**OBJECT["metadata"], "uid": "u2"}}
        record(events, "other", involved=other)
    assert events.outcomes == {"written": 9, "suppressed": 493}
    kinds = [(observed.json["type"], observed.json["regarding"]["uid"]) for observed in server.requests]
    assert kinds.count(("Normal", "u1")) == 7
    assert kinds.count(("Warning", "u1")) == 1
    assert kinds.count(("Normal", "u2")) == 1


async def test_a_repeated_reason_leaves_room_for_another(server: Any, clock: ManualClock) -> None:
    server.then(*[steps.answer({})] * 30)
    async with recorder(server, clock) as events:
        for number in range(10):
            record(events, f"{number} of 10 workers are ready", reason="EndpointsReady")
        record(events, "unloaded", reason="LoRAUnloaded")
    reasons = [observed.json["reason"] for observed in server.requests]
    assert reasons == ["EndpointsReady"] * event_series.BURST + ["LoRAUnloaded"]


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 5)), max_size=200))
def test_the_limit_applies_to_any_minute(steps: list[tuple[float, int]]) -> None:
    clock = ManualClock(1_800_000_000.0)
    admission = EventCorrelator(clock, suffixes())
    admitted: list[float] = []
    for pause, message in steps:
        clock.now += pause
        series = admission.admit(OBJECT, SeriesKey("u1", "Normal", "R", "A", str(message)))
        if isinstance(series, Series):
            series.written_at = clock.now
            admitted.append(clock.now)
    for start in admitted:
        assert sum(start <= at < start + 60 for at in admitted) <= event_series.BURST + 3


async def test_a_broken_server_does_not_delay_the_caller(server: Any, clock: ManualClock) -> None:
    waits: list[float] = []
    server.then(steps.reset(), steps.refuse(503), steps.refuse(429, headers={"Retry-After": "30"}), steps.answer({}))
    async with recorder(server, clock, waits) as events:
        record(events)
    assert events.outcomes == {"written": 1}
    assert len(waits) == 3
    # Not before the time that the server requested.
    assert 30 < waits[2] <= 36
    assert len({observed.json["metadata"]["name"] for observed in server.requests}) == 1


async def test_a_lost_answer_does_not_lead_to_a_second_event(server: Any, clock: ManualClock) -> None:
    server.then(steps.reset(), steps.refuse(409, "AlreadyExists"))
    async with recorder(server, clock) as events:
        record(events)
    assert events.outcomes == {"written": 1}


async def test_a_rejected_event_is_dropped_and_reported_again_next_time(server: Any, clock: ManualClock) -> None:
    server.then(steps.refuse(403, "Forbidden", "the namespace is being terminated"), steps.answer({}))
    async with recorder(server, clock) as events:
        record(events)
        await events._queue.join()
        record(events)
    assert [observed.method for observed in server.requests] == ["POST", "POST"]
    assert events.outcomes == {"written": 1, "dropped": 1}


async def test_a_series_whose_event_has_expired_continues_in_a_new_one(server: Any, clock: ManualClock) -> None:
    server.then(steps.answer({}), steps.refuse(404, "NotFound"), steps.answer({}), steps.answer({}))
    async with recorder(server, clock) as events:
        for _ in range(3):
            record(events)
            await events._queue.join()
            clock.now += 60
    assert [observed.method for observed in server.requests] == ["POST", "PATCH", "POST", "PATCH"]
    first, _, again, patch = server.requests
    assert again.json == {**first.json, "series": {"count": 2, "lastObservedTime": "2027-01-15T08:01:00.000000Z"}}
    assert patch.json["series"]["count"] == 3
    assert events.outcomes == {"written": 3}


async def test_events_of_a_deleted_namespace_are_not_retried(server: Any, clock: ManualClock) -> None:
    server.then(steps.answer({}), steps.refuse(404, "NotFound"), steps.refuse(404, "NotFound"))
    async with recorder(server, clock) as events:
        record(events)
        await events._queue.join()
        clock.now += 60
        record(events)
        await events._queue.join()
        clock.now += 60
        assert events._correlator.behind() == []
    assert [observed.method for observed in server.requests] == ["POST", "PATCH", "POST"]
    assert events.outcomes == {"written": 1, "dropped": 1}


@pytest.mark.parametrize(("hours", "writes"), [(1, ["POST", "POST"]), (1 / 30, ["POST", "PATCH"])])
async def test_a_clock_that_is_set_back_suppresses_no_event(
    server: Any, clock: ManualClock, hours: float, writes: list[str]
) -> None:
    server.then(*[steps.answer({})] * 2)
    async with recorder(server, clock) as events:
        record(events)
        await events._queue.join()
        clock.now -= hours * 3600
        record(events)
    assert [observed.method for observed in server.requests] == writes


async def test_an_event_whose_write_raised_is_retried_next_time(
    server: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.then(steps.answer({}))
    async with recorder(server, clock) as events:
        with monkeypatch.context() as patched:
            patched.setattr(events, "_event", None)
            record(events)
            await events._queue.join()
        record(events)
    assert events.outcomes == {"dropped": 1, "written": 1}


async def test_events_of_one_namespace_neither_block_nor_displace_those_of_others(
    server: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo_shared.kube.events.CAPACITY", 3)
    # Several writers send at once, and the server may see their requests in any order.
    monkeypatch.setattr("dynamo_shared.kube.events._WRITERS", 1)
    events = recorder(server, clock)
    for number in range(5):
        own = {"namespace": "tenant", "uid": f"t{number}", "name": f"t{number}"}
        record(events, involved={**OBJECT, "metadata": own})
    record(events)
    server.then(*[steps.answer({})] * 3)
    async with events:
        await events._queue.join()
    assert [each.json["regarding"]["name"] for each in server.requests] == ["t0", "llm", "t1"]
    assert events.outcomes == {"written": 3, "dropped": 3}


async def test_a_webhook_that_fails_in_one_namespace_does_not_delay_events_of_others(
    server: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One writer waited ten seconds for it, and all other Events of the service behind it."""
    # Of several, the server may see the requests in any order.
    monkeypatch.setattr("dynamo_shared.kube.events._WRITERS", 1)
    away = steps.refuse(500, "InternalError", 'failed calling webhook "w.tenant": connection refused')
    events, repaired = recorder(server, clock), asyncio.Event()

    async def sleep(_: float) -> None:
        await repaired.wait()

    events._sleep = sleep
    for number in range(2):
        own = {"namespace": "tenant", "uid": f"t{number}", "name": f"t{number}"}
        record(events, involved={**OBJECT, "metadata": own})
    record(events, "one")
    record(events, "two")
    server.then(away, *[steps.answer({})] * 4)
    async with asyncio.timeout(60), events:
        while events.outcomes["written"] < 2:
            await asyncio.sleep(0.01)
        written = [each.json["regarding"]["name"] for each in server.requests]
        repaired.set()
        await events._queue.join()
    assert written == ["t0", "llm", "llm"]
    assert events.outcomes == {"written": 4}


async def test_a_webhook_that_hangs_in_one_namespace_does_not_delay_events_of_others(
    server: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The only writer waited for it, four times ten seconds for each Event."""
    monkeypatch.setattr("dynamo_shared.kube.events.FLUSH_SECONDS", 0.0)
    server.then(steps.hang(), *[steps.answer({})] * 2)
    events = recorder(server, clock)
    for number in range(2):
        own = {"namespace": "tenant", "uid": f"t{number}", "name": f"t{number}"}
        record(events, involved={**OBJECT, "metadata": own})
    async with asyncio.timeout(30), events:
        while not server.requests:
            await asyncio.sleep(0.01)
        record(events, "one")
        record(events, "two")
        while events.outcomes["written"] < 2:
            await asyncio.sleep(0.01)
    assert [each.json["regarding"]["name"] for each in server.requests] == ["t0", "llm", "llm"]


async def test_an_event_that_a_webhook_always_fails_is_dropped(server: Any, clock: ManualClock) -> None:
    waits: list[float] = []
    server.then(*[steps.refuse(500, "InternalError", 'failed calling webhook "w.tenant": connection refused')] * 4)
    async with recorder(server, clock, waits) as events:
        record(events)
    assert events.outcomes == {"dropped": 1}
    assert len(waits) == 3
    assert waits[2] > waits[0]


async def test_the_queue_is_bounded(server: Any, clock: ManualClock) -> None:
    events = recorder(server, clock)
    for number in range(CAPACITY + 10):
        record(events, involved={**OBJECT, "metadata": {**OBJECT["metadata"], "uid": str(number)}})
    assert events.outcomes == {"dropped": 10}


async def test_pending_events_are_written_within_the_deadline_at_the_end(
    server: Any, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dynamo_shared.kube.events.FLUSH_SECONDS", 1.0)
    server.then(steps.answer({}), steps.hang())
    async with asyncio.timeout(30), recorder(server, clock) as events:
        record(events, "first")
        record(events, "never answered")
    assert events.outcomes == {"written": 1}


async def test_it_writes_until_cancelled_and_then_writes_the_rest(server: Any, clock: ManualClock) -> None:
    server.then(steps.answer({}), steps.answer({}))
    events = recorder(server, clock)
    record(events, "before")

    async def run() -> None:
        async with events:
            await asyncio.Event().wait()

    task = asyncio.create_task(run())
    await server.arrived.wait()
    record(events, "at the end")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events.outcomes == {"written": 2}


async def test_an_event_without_an_object_is_not_a_failure(server: Any, clock: ManualClock) -> None:
    events = recorder(server, clock)
    record(events, involved={})
    record(events, involved={"metadata": None})
    assert events._queue.empty()
    assert events.outcomes == {"dropped": 2}


async def test_events_of_cluster_scoped_objects_are_in_namespace_default(server: Any, clock: ManualClock) -> None:
    server.then(steps.answer({}))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n" * 253, "uid": "u"}}
    async with recorder(server, clock) as events:
        record(events, involved=node)
    assert server.requests[0].path == "/apis/events.k8s.io/v1/namespaces/default/events"
    assert len(server.requests[0].json["metadata"]["name"]) == 253


@pytest.mark.parametrize("end", [".", "-", "-.", "--"])
def test_event_names_are_valid_wherever_the_object_name_is_cut(end: str, clock: ManualClock) -> None:
    suffix = "0" * 16
    name = f"{'n' * (253 - len(suffix) - 1 - len(end))}{end}and-more"
    involved = {**OBJECT, "metadata": {**OBJECT["metadata"], "name": name}}
    series = EventCorrelator(clock, lambda: suffix).admit(involved, SeriesKey("u", "Normal", "Created", "Create", ""))
    assert isinstance(series, Series)
    assert series.name.rstrip("0").strip("n") == "."


@given(st.text(max_size=2000))
def test_a_clipped_text_fits_and_is_a_prefix(text: str) -> None:
    short = clipped(text)
    assert len(short.encode()) <= 1024
    assert short == text or text.startswith(short.removesuffix("…"))


def test_memory_is_bounded_and_a_namespace_with_many_events_forgets_its_own(clock: ManualClock) -> None:
    admission = EventCorrelator(clock, suffixes())
    quiet = SeriesKey("q", "Normal", "R", "A", "m", "quiet")
    admission.admit(OBJECT, quiet)
    for number in range(event_series.REMEMBERED + 100):
        admission.admit(OBJECT, SeriesKey(str(number), "Normal", "R", "A", "m", "tenant"))
    assert len(list(admission._series.values())) == event_series.REMEMBERED
    assert len(list(admission._buckets.values())) == event_series.REMEMBERED
    assert admission.admit(OBJECT, quiet) == "counted"
