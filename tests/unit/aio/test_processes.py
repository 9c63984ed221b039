"""Child processes of a service: their streams, their end, and code that must not run in between."""

import asyncio
import os
import sys
import threading
from pathlib import Path

import pytest
from dynamo_shared.aio import Process, ended

from tests.building.waiting import turns, until

CAT = ("cat",)
SLEEP = ("sleep", "600")


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def test_output_is_read() -> None:
    async with await Process.start(CAT, writes=True) as process:
        assert process.stdin is not None
        process.stdin.write(b"a line\n")
        await process.stdin.drain()
        assert await process.stdout.readline() == b"a line\n"
        assert process.alive
        process.stdin.close()
        assert await process.stdout.read() == b""
        assert await process.wait() == 0
        assert not process.alive


async def test_output_and_errors_are_separate() -> None:
    async with await Process.start(("sh", "-c", "echo $WHAT; echo no >&2; exit 3"), environ={"WHAT": "yes"}) as process:
        assert await process.stdout.read() == b"yes\n"
        assert await process.stderr.read() == b"no\n"
        assert await process.wait() == 3


async def test_waiting_for_a_process_takes_no_thread_and_may_be_cancelled() -> None:
    async with await Process.start(SLEEP) as process:
        before = threading.active_count()
        waiting = asyncio.create_task(process.wait())
        await turns()
        assert threading.active_count() == before
        await ended(waiting)
        assert process.alive


async def test_a_process_ends_with_the_block() -> None:
    async with await Process.start(SLEEP) as process:
        assert not gone(process.pid)
    assert gone(process.pid)
    assert await process.stdout.read() == b""


async def test_a_process_ends_although_its_child_holds_the_streams() -> None:
    async with await Process.start(("sh", "-c", "sleep 600 & echo $!; wait")) as process:
        child = int(await process.stdout.readline())
    os.kill(child, 9)


@pytest.mark.parametrize("goes_on", ["wait", "exit"])
async def test_children_in_the_same_session_end_with_it(tmp_path: Path, goes_on: str) -> None:
    os.mkfifo(held := tmp_path / "held")
    command = ("sh", "-c", f"exec 9> {held}; sleep 600 & {goes_on}")
    async with await Process.start(command, own_session=True):
        reader = await asyncio.to_thread(held.open, "rb", 0)
    with reader:
        os.set_blocking(reader.fileno(), False)
        await until(lambda: reader.read() == b"")


async def test_unread_output_does_not_keep_its_streams_open() -> None:
    async with await Process.start(("sh", "-c", "sleep 600 & echo $!; wait"), writes=True) as process:
        child = int(await process.stdout.readline())
        assert process.stdin is not None
        process.stdin.write(bytes(1 << 22))
    try:
        async with asyncio.timeout(60):
            await process.stdin.wait_closed()
    finally:
        os.kill(child, 9)


async def test_a_cancelled_start_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Process] = []
    reached = asyncio.Event()

    async def never(process: Process, _: object) -> None:
        started.append(process)
        reached.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Process, "_connect", never)
    task = asyncio.create_task(Process.start(SLEEP, writes=True))
    await reached.wait()
    await ended(task)
    assert task.cancelled()
    assert gone(started[0].pid)


async def test_a_program_that_cannot_be_started_raises_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        await Process.start(("/no/such/program",), writes=True)


async def test_no_python_code_runs_in_the_child(tmp_path: Path) -> None:
    """A fork handler of OpenTelemetry, which starts a thread, made such a child spin for twenty minutes."""
    called = tmp_path / "called"
    watched = [called]

    def handler() -> None:
        for path in watched:
            path.touch()

    os.register_at_fork(after_in_child=handler)
    try:
        async with await Process.start((sys.executable, "-c", ""), writes=True, own_session=True) as process:
            assert await process.wait() == 0
    finally:
        watched.clear()
    assert not called.exists()


async def test_a_process_gets_its_own_session_on_request() -> None:
    async with await Process.start(SLEEP, own_session=True) as process:
        assert os.getsid(process.pid) == process.pid
    async with await Process.start(SLEEP) as process:
        assert os.getsid(process.pid) == os.getsid(0)
