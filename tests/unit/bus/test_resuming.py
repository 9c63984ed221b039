"""Reading continues after any interruption."""

import asyncio
from typing import Any, cast

import pytest
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusClosedError, BusError, BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.nats import resuming
from dynamo_shared.bus.nats.pull import PullEndedError, Puller


class ConnectedKeeper:
    """A keeper that has a session."""

    async def wait_session(self) -> None:
        """The session exists."""


class Reading(resuming.Resuming[str]):
    """Reads a stream that is missing until it is declared, which first fails with the given errors."""

    def __init__(self, *errors: BusError) -> None:
        super().__init__(cast("Any", ConnectedKeeper()), self._make, streams.STATE, "a reading")
        self._errors = list(errors)
        self._exists = False

    async def _make(self, _: streams.StreamSpec) -> None:
        if self._errors:
            raise self._errors.pop(0)
        self._exists = True

    async def establish(self) -> None:
        """Like the real readings."""
        if not self._exists:
            raise StreamNotFoundError("the stream does not exist")
        self._puller = cast("Puller", self)

    async def _next(self, puller: Puller) -> str:
        return "message"


class Ending(Reading):
    """A reading whose first pulls end at once; each pull that starts gives a sign."""

    def __init__(self, ends: int) -> None:
        super().__init__()
        self._exists = True
        self._ends = ends
        self._begun = False

    async def establish(self) -> None:
        await super().establish()
        self._begun = True

    def _sign(self) -> str | None:
        begun, self._begun = self._begun, False
        return "restarted" if begun else None

    async def _next(self, puller: Puller) -> str:
        if not self._ends:
            return "message"
        self._ends -= 1
        raise PullEndedError("503 no responders")

    async def _drop(self) -> None:
        self._puller = None


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "FIRST_PAUSE", 0.0)


@pytest.mark.parametrize("error", [BusUnavailableError("away"), BusError("subjects overlap with an existing stream")])
async def test_a_stream_that_cannot_be_created_yet_is_retried(error: BusError) -> None:
    """A rejection by the server ended the reading, unlike any other error of the bus."""
    assert await Reading(error, error).__anext__() == "message"


async def test_a_reading_ends_if_the_bus_is_closed_while_its_stream_is_missing() -> None:
    with pytest.raises(StopAsyncIteration):
        await Reading(BusClosedError("the bus is closed")).__anext__()


async def test_pulls_that_end_at_once_are_repeated_with_growing_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer without a leader has no server that answers, and each new pull sent requests to the server."""
    monkeypatch.setattr(resuming, "FIRST_PAUSE", 1.0)
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", pause)
    reading = Ending(3)
    assert [await reading.__anext__() for _ in range(5)] == [*["restarted"] * 4, "message"]
    assert len(pauses) == 3
    assert pauses[0] <= 1.0 <= pauses[2] <= resuming.LAST_PAUSE
