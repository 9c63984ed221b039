"""Reading goes on after whatever interrupts it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from dynamo_shared.bus import streams
from dynamo_shared.bus.errors import BusClosedError, BusError, BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.nats import resuming
from dynamo_shared.bus.nats.pull import Puller


class ConnectedKeeper:
    """One that has a session."""

    async def wait_session(self) -> None:
        """It is there."""


class Reading(resuming.Resuming[str]):
    """Reads a stream that is missing until it was declared, which fails with the given errors first."""

    def __init__(self, *errors: BusError) -> None:
        super().__init__(cast("Any", ConnectedKeeper()), self._make, streams.STATE, "a reading")
        self._errors = list(errors)
        self._exists = False

    async def _make(self, _: streams.StreamSpec) -> None:
        if self._errors:
            raise self._errors.pop(0)
        self._exists = True

    async def establish(self) -> None:
        """As of the real ones."""
        if not self._exists:
            raise StreamNotFoundError("there is no stream")
        self._puller = cast("Puller", self)

    async def _next(self, puller: Puller) -> str:
        return "message"


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resuming, "FIRST_PAUSE", 0.0)


@pytest.mark.parametrize("error", [BusUnavailableError("away"), BusError("subjects overlap with an existing stream")])
async def test_a_stream_that_cannot_be_made_yet_is_tried_again(error: BusError) -> None:
    """A refusal of the server ended the reading, as no other error of the bus does."""
    assert await Reading(error, error).__anext__() == "message"


async def test_a_reading_ends_where_the_bus_is_closed_while_its_stream_is_missing() -> None:
    with pytest.raises(StopAsyncIteration):
        await Reading(BusClosedError("the bus is closed")).__anext__()
