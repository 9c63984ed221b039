import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dynamo_ctl import output, running_platform
from dynamo_ctl.commands.events import EventQuery, stream
from dynamo_ctl.commands.events.stream import duration, filters
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.nats_targets import NatsTarget, nats_server
from dynamo_shared.bus.nats import NatsOptions
from dynamo_shared.bus.protocol import Message
from dynamo_shared.bus.streams import EVENTS, STATE, StreamSpec

from tests.building.memory_bus import MemoryBus
from tests.building.tasks import in_background
from tests.building.waiting import turns, until

SUBJECT = "dynamo.evt.v1.local.team.dynamographdeployment.chat.ready"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("DYNAMO_PLATFORM__NATS__SERVERS", "DYNAMO_PLATFORM__CLUSTER_NAME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (EventQuery(), ["dynamo.evt.v1.local.*.*.*.*"]),
        (
            EventQuery(namespace="team", kind="dgd", name="a.b"),
            ["dynamo.evt.v1.local.team.dynamographdeployment.a%2Eb.*"],
        ),
        (
            EventQuery(types=["ready", "failed"]),
            ["dynamo.evt.v1.local.*.*.*.failed", "dynamo.evt.v1.local.*.*.*.ready"],
        ),
        (
            EventQuery(types=["com.nvidia.dynamo.deployment.ready.v1"]),
            ["dynamo.evt.v1.local.*.dynamographdeployment.*.ready"],
        ),
        (EventQuery(kind="dgdr"), ["dynamo.evt.v1.local.*.dynamographdeploymentrequest.*.*"]),
        (EventQuery(kind="DynamoModel"), ["dynamo.evt.v1.local.*.dynamomodel.*.*"]),
        (EventQuery(kind="dynamomodels.nvidia.com"), ["dynamo.evt.v1.local.*.dynamomodel.*.*"]),
        (EventQuery(namespace="team", kind="platform", types=["resync"]), ["dynamo.evt.v1.local.*.platform.*.resync"]),
    ],
)
def test_filters_become_subjects(query: EventQuery, expected: list[str]) -> None:
    assert filters(query, "local") == expected


KINDS = r": .* use one of .*dcd, dckpt, dgd, dgdr, dgdsa, dm"


@pytest.mark.parametrize(
    ("query", "match"),
    [
        (EventQuery(types=["raedy"]), r"use one of .*ready"),
        (EventQuery(kind="pod"), f"^--kind pod{KINDS}"),
        (EventQuery(kind="wrong"), f"^--kind wrong{KINDS}"),
        (EventQuery(kind="dgd/chat"), r"^--kind dgd/chat: write --kind KIND --name NAME$"),
    ],
)
def test_an_unknown_type_or_kind_is_refused_with_what_there_is(query: EventQuery, match: str) -> None:
    with pytest.raises(CtlError, match=match) as caught:
        filters(query, "local")
    assert caught.value.code == ExitCode.USAGE


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("1h30m", 5400), ("2d", 172_800)])
def test_a_duration_has_one_or_more_units(text: str, seconds: int) -> None:
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["99999999d", "999999999999d"])
def test_a_duration_before_all_dates_means_all_events(text: str) -> None:
    assert datetime.now(UTC) - duration(text) < datetime(2020, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "10", "m", "-5m", "1.5h", "5 m"])
def test_other_durations_are_refused(text: str) -> None:
    with pytest.raises(CtlError, match="write a duration"):
        duration(text)


def test_without_a_server_the_error_names_the_options() -> None:
    with pytest.raises(CtlError, match="use --nats URL or --config FILE") as caught:
        nats_server(None, None, None)
    assert caught.value.code == ExitCode.UNREACHABLE


def test_events_are_read_from_the_platform_that_runs_here(elsewhere: Path) -> None:
    here = running_platform.RunningPlatform(__import__("os").getpid(), "demo", "nats://127.0.0.1:5")
    folder = elsewhere / running_platform.FOLDER
    with running_platform.claimed(folder), running_platform.announced(folder, here):
        result = nats_server(None, None, None)
        assert (result.options.servers, result.cluster) == (("nats://127.0.0.1:5",), "demo")
        assert nats_server(None, "other", None).cluster == "other"
        named = nats_server("nats://127.0.0.1:6", None, None)
        assert (named.options.servers, named.cluster) == (("nats://127.0.0.1:6",), "local")


def test_the_environment_names_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNAMO_PLATFORM__NATS__SERVERS", "nats://127.0.0.1:7")
    monkeypatch.setenv("DYNAMO_PLATFORM__CLUSTER_NAME", "west")
    result = nats_server(None, None, None)
    assert (result.options.servers, result.cluster) == (("nats://127.0.0.1:7",), "west")


def message(**changes: Any) -> Message:
    event = {
        "id": "1",
        "type": "com.nvidia.dynamo.deployment.ready.v1",
        "time": "2026-01-01T10:00:00.500Z",
        "data": {"reason": "all_resources_are_ready", "message": "All resources are ready"},
    } | changes
    return Message(SUBJECT, json.dumps(event).encode(), {}, 1)


def line_of(event: Message, *, as_json: bool = False) -> str:
    """The line of an event. Raises AssertionError if there is none."""
    line = stream._line(event, None, {}, as_json=as_json)
    assert line is not None
    return line


def test_a_line_has_time_kind_and_reason() -> None:
    line = line_of(message())
    assert "ready         dgd      team/chat" in line
    assert line.endswith("all_resources_are_ready: All resources are ready")


def test_a_reason_that_the_message_names_is_shown_once() -> None:
    data = {"reason": "BelowMinimum", "message": "Frontend stays at 1: BelowMinimum: 0 is below its minimum of 1"}
    assert line_of(message(data=data)).endswith(
        "team/chat  Frontend stays at 1: BelowMinimum: 0 is below its minimum of 1"
    )
    assert line_of(message(data={"message": "m"})).endswith("team/chat  m")


def test_the_names_of_frequent_events_keep_the_columns() -> None:
    applied = replace(message(), subject=SUBJECT.replace(".ready", ".scale-applied"))
    assert line_of(applied).index("dgd") == line_of(message()).index("dgd")


def test_events_of_other_days_have_their_date() -> None:
    line = line_of(message())
    moment = datetime(2026, 1, 1, 10, tzinfo=UTC)
    assert line.startswith(f"{moment.astimezone():%Y-%m-%d %H:%M:%S}.500  ready ")
    assert output.day(moment, moment + timedelta(minutes=1)) == ""


def test_a_deletion_is_not_described_by_the_last_state() -> None:
    gone = replace(message(), subject=SUBJECT.replace(".ready", ".deleted"))
    assert line_of(gone).endswith("team/chat")
    assert "all_resources_are_ready" in line_of(gone, as_json=True)


def test_an_event_is_shown_once_and_not_when_too_old() -> None:
    observed: dict[str, None] = {}
    assert stream._line(message(), None, observed, as_json=True)
    assert stream._line(message(), None, observed, as_json=True) is None
    later = datetime(2026, 1, 1, 10, 0, 1, tzinfo=UTC)
    assert stream._line(message(id="2"), later, {}, as_json=True) is None


def test_a_message_that_is_not_an_event_is_skipped() -> None:
    odd = Message(SUBJECT, b"not json", {}, 1)
    assert "not a CloudEvent" in line_of(odd)
    assert stream._line(odd, None, {}, as_json=True) is None


@pytest.mark.parametrize("data", [["a"], "text", 7, {"message": ["a"]}])
def test_data_of_any_type_is_displayed(data: object) -> None:
    assert "ready" in line_of(message(data=data))


def test_an_event_whose_time_has_no_time_zone_is_not_a_cloud_event() -> None:
    odd = message(time="2026-01-01T10:00:00")
    assert "not a CloudEvent" in (stream._line(odd, datetime(2026, 1, 1, tzinfo=UTC), {}, as_json=False) or "")


def test_a_message_of_several_lines_is_one_line() -> None:
    line = line_of(message(data={"message": "first\n10:00:00  ready  forged"}))
    assert line.endswith(r"first\n10:00:00  ready  forged")


@pytest.mark.parametrize(
    ("there", "follow", "said"),
    [
        ([STATE], False, "no event yet"),
        ([STATE], True, "no event yet; waiting for the first one"),
        ([EVENTS], False, "no stored event of cluster c matches; events are kept for a week"),
        ([EVENTS], True, "no stored event of cluster c matches; waiting for new ones"),
    ],
)
async def test_a_query_without_events_says_why(
    there: list[StreamSpec], follow: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, remarks = MemoryBus(), list[str]()
    await bus.declare(*there)

    @asynccontextmanager
    async def connected(_: NatsTarget) -> AsyncIterator[MemoryBus]:
        yield bus

    monkeypatch.setattr(stream, "connected", connected)
    listening = stream.listen(
        EventQuery(follow=follow), NatsTarget(NatsOptions(), "c"), pytest.fail, remark=remarks.append
    )
    async with in_background(listening) as task:
        await until(lambda: remarks if follow else task.done())
        bus.disconnect()
        bus.reconnect()
        await turns()
    assert remarks == [said]
