import os
import signal
import subprocess
import sys

import pytest

ENDLESS = """
import asyncio, sys
from dynamo_ctl import interrupts

async def work():
    try:
        print("begun", flush=True)
        await asyncio.Event().wait()
    finally:
        print("tidying", flush=True)
        if "slow" in sys.argv:
            await asyncio.Event().wait()
        print("tidy", flush=True)

try:
    getattr(interrupts, sys.argv[1])(work())
except KeyboardInterrupt:
    sys.exit(130)
"""


def start(*arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


@pytest.mark.parametrize(
    ("how", "number", "code"),
    [
        ("run", signal.SIGINT, 130),
        ("run", signal.SIGTERM, 130),
        ("serve", signal.SIGINT, 0),
        ("serve", signal.SIGTERM, 0),
    ],
)
def test_the_first_signal_ends_in_order(how: str, number: signal.Signals, code: int) -> None:
    process = start(how)
    process.send_signal(number)
    out, _ = process.communicate(timeout=30)
    assert out == "tidying\ntidy\n"
    assert process.returncode == code


def test_the_second_signal_ends_at_once() -> None:
    process = start("serve", "slow")
    assert process.stdout is not None
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "tidying\n"
    os.kill(process.pid, signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
