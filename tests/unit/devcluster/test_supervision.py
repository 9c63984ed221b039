"""Supervision restarts a server that crashes, not one that was stopped, and ends the block after repeated crashes."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from dynamo_devcluster import LocalClusterError, ManagedProcess
from dynamo_devcluster.supervision import MAX_CRASHES, supervised

from tests.building.waiting import until

from .test_process import SLEEP

SOON = {"check_interval": 0.02, "first_pause": 0.01}


async def test_a_killed_server_is_restarted_and_reported(tmp_path: Path) -> None:
    process, reports = ManagedProcess("server", SLEEP, tmp_path / "x.log"), list[str]()
    await process.start()
    first = killed(process)
    async with supervised([process], reports.append, **SOON):
        await until(lambda: process.pid not in (None, first))
    assert process.running, "the end of supervision does not stop the server"
    await process.stop()
    assert reports == [f"server was ended by SIGKILL; restarting; log: {tmp_path / 'x.log'}"]


async def test_a_server_stopped_on_purpose_stays_stopped(tmp_path: Path) -> None:
    process, reports = ManagedProcess("server", SLEEP, tmp_path / "x.log"), list[str]()
    await process.start()
    async with supervised([process], reports.append, **SOON):
        for end in (process.stop, process.kill):
            await end()
            await asyncio.sleep(0.2)
            assert not process.running
            await process.start()
        first = killed(process)
        await until(lambda: process.pid not in (None, first))
    await process.stop()
    assert len(reports) == 1


async def test_a_server_stopped_during_the_pause_is_not_started(tmp_path: Path) -> None:
    process, reports = ManagedProcess("server", SLEEP, tmp_path / "x.log"), list[str]()
    await process.start()
    async with supervised([process], reports.append, check_interval=0.02, first_pause=0.4):
        killed(process)
        await until(lambda: reports)
        await process.stop()
        await asyncio.sleep(0.5)
        assert not process.running


async def test_repeated_crashes_cancel_the_block(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    process, reports = ManagedProcess("server", failing_after_the_first(tmp_path), log), list[str]()
    await process.start()
    await until((tmp_path / "mark").exists)

    async def work() -> None:
        async with supervised([process], reports.append, **SOON):
            killed(process)
            await asyncio.Event().wait()

    with pytest.raises(LocalClusterError) as caught:
        await asyncio.wait_for(work(), 60)
    message = str(caught.value)
    assert message.startswith("server ended with exit code 7, and is not restarted after 3 crashes in a row; ")
    assert message.endswith(f"the end of {log}:" + "\nno space left on device" * (MAX_CRASHES - 1))
    assert sum("; restarting; " in each for each in reports) == MAX_CRASHES - 1
    assert not process.running


async def test_a_long_run_resets_the_count_of_crashes(tmp_path: Path) -> None:
    process, reports = ManagedProcess("server", SLEEP, tmp_path / "x.log"), list[str]()
    await process.start()
    async with supervised([process], reports.append, **SOON, stable_after=0.0):
        for _ in range(MAX_CRASHES + 1):
            pid = killed(process)
            await until(lambda before=pid: process.pid not in (None, before))  # type: ignore[misc]
    await process.stop()
    assert len(reports) == MAX_CRASHES + 1


async def test_a_server_that_is_not_ready_does_not_delay_others(tmp_path: Path) -> None:
    async def never_again() -> bool:
        return not reports

    reports = list[str]()
    hung = ManagedProcess("hung", SLEEP, tmp_path / "hung.log", never_again, ready_within=600.0)
    other = ManagedProcess("other", SLEEP, tmp_path / "other.log")
    for process in (hung, other):
        await process.start()
    async with supervised([hung, other], reports.append, **SOON):
        hung_before = killed(hung)
        await until(lambda: hung.pid not in (None, hung_before))
        before = killed(other)
        await until(lambda: other.pid not in (None, before))
    assert not hung.running, "a cancelled start leaves no process"
    await other.stop()


async def test_an_error_of_the_block_is_raised(tmp_path: Path) -> None:
    process = ManagedProcess("server", SLEEP, tmp_path / "x.log")
    await process.start()
    with pytest.raises(ValueError, match="of the work"):
        async with supervised([process], print):
            raise ValueError("of the work")
    await process.stop()


def killed(process: ManagedProcess) -> int:
    """Kill the process from outside; returns its process id."""
    pid = process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    return pid


def failing_after_the_first(folder: Path) -> list[str]:
    """The command of a server that fails from the second start on."""
    mark = folder / "mark"
    code = f"""
import pathlib, time
mark = pathlib.Path({str(mark)!r})
if mark.exists():
    print("no space left on device")
    raise SystemExit(7)
mark.touch()
time.sleep(600)
"""
    return [sys.executable, "-c", code]
