"""A managed process starts, crashes and stops, and never outlives its parent."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from dynamo_devcluster import LocalClusterError, ManagedProcess, NotReadyError, ProcessDiedError
from dynamo_devcluster.process import QUOTED_BYTES

from tests.building.waiting import until

SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]
BUSY = """
import threading

def write():
    while True:
        print("on")

for _ in range(4):
    threading.Thread(target=write).start()
"""
DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


async def test_an_early_exit_quotes_the_log(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_text("of an earlier run\n")
    command = [sys.executable, "-c", "print('bind: address already in use'); raise SystemExit(3)"]
    process = ManagedProcess("server", command, log, never)
    with pytest.raises(ProcessDiedError) as caught:
        await process.start()
    message = str(caught.value)
    assert "server ended with exit code 3 before it was ready" in message
    assert "bind: address already in use" in message
    assert "of an earlier run" not in message
    assert process.exit_code == 3


async def test_an_early_end_by_a_signal_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
    with pytest.raises(ProcessDiedError, match=r"server was ended by SIGKILL before it was ready"):
        await ManagedProcess("server", command, tmp_path / "x.log", never).start()


async def test_a_process_that_never_becomes_ready_is_stopped(tmp_path: Path) -> None:
    async def waits() -> bool:
        raise OSError("watcher: starting")

    process = ManagedProcess("server", SLEEP, tmp_path / "x.log", waits, ready_within=0.2)
    with pytest.raises(NotReadyError, match=r"server was not ready after 0 s \(watcher: starting\)"):
        await process.start()
    assert not process.running


async def test_a_cancelled_start_leaves_no_process(tmp_path: Path) -> None:
    process = ManagedProcess("server", SLEEP, tmp_path / "x.log", never)
    starting = asyncio.create_task(process.start())
    await until(lambda: process.pid is not None)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not process.running


async def test_a_process_can_be_stopped_restarted_and_killed(tmp_path: Path) -> None:
    process = ManagedProcess("server", SLEEP, tmp_path / "x.log")
    await process.start()
    first = process.pid
    await process.start()
    assert process.pid == first, "starting twice is starting once"
    await process.restart()
    assert process.pid not in (None, first)
    await process.stop()
    await process.stop()
    assert process.exit_code == -signal.SIGTERM
    await process.start()
    await process.kill()
    assert process.exit_code == -signal.SIGKILL
    assert process.pid is None


async def test_a_process_that_ignores_sigterm_is_killed_after_the_deadline(tmp_path: Path) -> None:
    log = tmp_path / "x.log"

    async def up() -> bool:
        return "up" in log.read_text()

    process = ManagedProcess("server", [sys.executable, "-c", DEAF], log, up, stop_within=0.2)
    await process.start()
    await process.stop()
    assert process.exit_code == -signal.SIGKILL


async def test_a_suspended_process_does_not_run(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    process = ManagedProcess("server", [sys.executable, "-uc", BUSY], log)
    await process.start()
    try:
        await until(lambda: log.stat().st_size > 0)
        for _ in range(5):
            await process.suspend()
            written = log.stat().st_size
            await asyncio.sleep(0.01)
            assert log.stat().st_size == written, "a thread still runs"
            process.resume()
            await until(lambda before=written: log.stat().st_size > before)  # type: ignore[misc]
    finally:
        await process.stop()


async def test_suspending_an_ended_process_has_no_effect(tmp_path: Path) -> None:
    process = ManagedProcess("server", SLEEP, tmp_path / "x.log")
    await process.start()
    await process.kill()
    async with asyncio.timeout(60):
        await process.suspend()


async def test_a_suspended_process_can_be_stopped(tmp_path: Path) -> None:
    process = ManagedProcess("server", SLEEP, tmp_path / "x.log", stop_within=60.0)
    await process.start()
    await process.suspend()
    await process.stop()
    assert process.exit_code == -signal.SIGTERM


async def test_a_process_that_ends_by_itself_is_not_a_zombie(tmp_path: Path) -> None:
    process = ManagedProcess("server", SLEEP, tmp_path / "x.log")
    await process.start()
    pid = process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not exists(pid))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
async def test_child_processes_end_with_a_killed_parent(tmp_path: Path) -> None:
    parent = subprocess.Popen(  # noqa: ASYNC220 - returns at once
        [sys.executable, "-c", PARENT, str(tmp_path / "x.log")], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert exists(child)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await until(lambda: not alive(child))


async def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    process = ManagedProcess("server", [tmp_path / "nothing"], tmp_path / "x.log")
    with pytest.raises(LocalClusterError, match=r"server cannot be started: .*does not exist or is not executable"):
        await process.start()


PARENT = """
import asyncio, sys, time
from pathlib import Path
from dynamo_devcluster import ManagedProcess
process = ManagedProcess("child", [sys.executable, "-c", "import time; time.sleep(600)"], Path(sys.argv[1]))
asyncio.run(process.start())
print(process.pid, flush=True)
time.sleep(600)
"""


async def never() -> bool:
    return False


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def alive(pid: int) -> bool:
    # An orphan is reaped by the process that adopts it, which the test does not control: a zombie counts as dead.
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_only_the_end_of_a_large_log_is_read(tmp_path: Path) -> None:
    process = ManagedProcess("server", ["server"], tmp_path / "server.log")
    process.log.write_text("old\n" + "x" * QUOTED_BYTES + "\nlast\n")
    assert process.log_tail(5).splitlines() == ["x" * (QUOTED_BYTES - 6), "last"]
    assert process.log_tail(5, begins_at=process.log.stat().st_size - 5) == "last"
