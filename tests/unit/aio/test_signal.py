"""Waits with a time limit: each lasts its full time, and one timer serves many."""

import asyncio
from collections.abc import Callable
from unittest.mock import Mock

import pytest
from dynamo_shared.aio import Signal

from tests.building.waiting import turns


class Timers:
    """Timers of the test's event loop, with a manual clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.set, self._now = 0, 0.0
        self._due = dict[Callable[[], None], float]()
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "time", lambda: self._now)
        monkeypatch.setattr(loop, "call_at", self._call_at)

    def _call_at(self, when: float, callback: Callable[[], None]) -> Mock:
        self.set += 1
        self._due[callback] = when
        return Mock()

    async def advance(self, seconds: float) -> None:
        self._now += seconds
        for callback in [callback for callback, when in self._due.items() if when <= self._now]:
            del self._due[callback]
            callback()
        await turns()


async def begun(signal: Signal) -> asyncio.Future[None]:
    waiting = asyncio.ensure_future(signal.wait())
    await turns()
    return waiting


async def test_a_wait_ends_when_it_is_set() -> None:
    signal = Signal(60)
    waiting = await begun(signal)
    assert not waiting.done()
    signal.set()
    await waiting


async def test_a_signal_set_before_ends_the_next_wait_until_it_is_cleared() -> None:
    signal = Signal(60)
    signal.set()
    signal.set()
    await signal.wait()
    signal.clear()
    waiting = await begun(signal)
    assert not waiting.done()
    waiting.cancel()


async def test_each_wait_lasts_its_full_time_and_one_timer_serves_many(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, signal = Timers(monkeypatch), Signal(60)
    for _ in range(100):
        waiting = await begun(signal)
        signal.set()
        await waiting
        signal.clear()
    assert timers.set == 1
    waiting = await begun(signal)
    await timers.advance(30)
    signal.set()
    await waiting
    signal.clear()
    waiting = await begun(signal)
    await timers.advance(59)
    assert not waiting.done()
    await timers.advance(1)
    with pytest.raises(TimeoutError):
        await waiting


async def test_an_unused_timer_ends_and_the_next_wait_gets_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    timers, signal = Timers(monkeypatch), Signal(60)
    waiting = await begun(signal)
    waiting.cancel()
    await timers.advance(60)
    waiting = await begun(signal)
    assert timers.set == 2
    await timers.advance(60)
    with pytest.raises(TimeoutError):
        await waiting
