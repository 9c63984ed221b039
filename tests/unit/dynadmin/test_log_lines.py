"""Lines of logs, each with its time: what pods write is not trusted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_dynadmin.api import logs
from dynamo_dynadmin.api.logs.container_log import ContainerLine, LogPart, nanoseconds, read_log
from dynamo_dynadmin.api.logs.sources import ContainerStart, LogSource
from dynamo_shared.api.resources import ObjectKey

SOURCE = LogSource(ObjectKey("n", "p"), "main", "worker")
TIME = "2026-01-02T03:04:05.123456789Z"
LONG = 16384
ABSENT = cast("Any", None)


class Content:
    """A log, in the pieces that it arrives in."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    async def iter_chunked(self, _: int) -> AsyncIterator[bytes]:
        for each in self._pieces:
            yield each.encode()


class Kube:
    """An API server with one log."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    @asynccontextmanager
    async def stream_log(self, *_: Any, **__: Any) -> AsyncIterator[Content]:
        yield Content(self._pieces)


async def lines(*pieces: str) -> list[tuple[str, str]]:
    kept = []

    async def keep(line: ContainerLine) -> None:
        kept.append((line.time, line.text))

    assert await read_log(cast("Any", Kube(list(pieces))), SOURCE, "", 1.0, keep) == ""
    return kept


async def test_a_line_has_its_time() -> None:
    assert await lines(f"{TIME} a", f" b\n{TIME} c") == [(TIME, "a b"), (TIME, "c")]


@pytest.mark.parametrize("size", [1, 2, 5])
async def test_a_long_line_is_truncated(size: int) -> None:
    """The rest has no time of its own: its first word was one, and so the id of an event."""
    pieces = [f"{TIME} ", *("x" * LONG for _ in range(size)), f"y\revent: end\rdata: z\n{TIME} next\n"]
    (time, text), following = await lines(*pieces)
    assert (time, set(text), len(text)) == (TIME, {"x"}, LONG - len(TIME) - 1)
    assert following == (TIME, "next")


@pytest.mark.parametrize(
    "text", ["unable to retrieve container logs for containerd://12ab", "failed to try resolving symlinks: no file"]
)
async def test_a_message_of_a_node_in_place_of_a_log_has_no_time(text: str) -> None:
    """A kubelet without the log answers with a sentence in its place."""
    assert await lines(text) == [("", text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:01:00.123456789Z", 60_123_456_789),
        ("1970-01-01T02:01:00.5+02:00", 60_500_000_000),
        ("1970-01-01T00:01:00Z", 60_000_000_000),
        ("1969-12-31T00:00:00Z", None),
        ("2300-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:00", None),
        ("9999-12-31T23:59:59-23:00", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-01-01T00:00:00", None),
        ("2026-01-01T00:00:00.123456\revent: end", None),
    ],
)
def test_times_have_nanoseconds(text: str, expected: int | None) -> None:
    """A reader sends any Last-Event-ID, and a node may write anything where the time of a line belongs."""
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(("limit", "most"), [("_LINES", 2), ("_LONGEST", 250)])
async def test_lines_that_are_left_out_of_an_answer_are_counted(
    limit: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, limit, most)
    answered: list[Any] = []
    call = SimpleNamespace(kube=Kube([f"{TIME} {'a' * 100}\n" * 5]), answer=answered.append)
    selected = [ContainerStart(SOURCE, "u", 0)]
    await logs.Logs(ABSENT, ABSENT, ABSENT, ABSENT)._lines(cast("Any", call), selected, LogPart())
    (answer,) = answered
    assert len(answer["items"]) == 2
    assert answer["problems"] == ["3 more lines are omitted: select fewer with component, pod, container or tail"]
