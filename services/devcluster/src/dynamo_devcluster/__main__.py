"""`python -m dynamo_devcluster`: run a control plane in the foreground, or obtain the programs that it needs."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from .catalog import PROGRAMS
from .controlplane import ControlPlane
from .errors import LocalClusterError, ProgramUnavailableError
from .options import ControlPlaneOptions
from .programs import Programs
from .progress import LineProgress


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m dynamo_devcluster", description=__doc__)
    parser.add_argument("command", nargs="?", choices=("run", "fetch"), default="run")
    parser.add_argument("--dir", type=Path, help="folder of the state, which later runs reuse (default: temporary)")
    parser.add_argument("--kwok-nodes", type=int, default=2, help="simulated GPU nodes (default: 2, 0 for none)")
    parser.add_argument("--api-server-port", type=int, default=0)
    parser.add_argument("--no-controller-manager", action="store_true")
    parser.add_argument("--no-scheduler", action="store_true")
    parsed = parser.parse_args(arguments)
    programs = Programs(LineProgress())
    try:
        if parsed.command == "fetch":
            return asyncio.run(fetch(programs))
        options = ControlPlaneOptions(
            directory=parsed.dir,
            kwok_nodes=parsed.kwok_nodes,
            api_server_port=parsed.api_server_port,
            controller_manager=not parsed.no_controller_manager,
            scheduler=not parsed.no_scheduler,
        )
        return asyncio.run(_run(options, programs))
    except (LocalClusterError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


async def fetch(programs: Programs) -> int:
    """Obtain every program of a control plane, and print its path; optional programs may be missing."""
    for name, program in PROGRAMS.items():
        if program.node_only:
            continue
        try:
            print(f"{name}: {await programs.obtain(name)}", flush=True)
        except ProgramUnavailableError as error:
            if not program.optional:
                raise
            print(f"{name}: skipped, with the tests that need it: {error}", flush=True)
    return 0


async def _run(options: ControlPlaneOptions, programs: Programs) -> int:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    starting = asyncio.current_task()

    def end() -> None:
        # Before the cluster is up, no task waits for the event.
        if not ended.is_set():
            ended.set()
            if not up and starting is not None:
                starting.cancel()

    up = False
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    begun = time.monotonic()
    try:
        async with ControlPlane(options, programs) as control_plane:
            up = True
            print(f"ready after {time.monotonic() - begun:.1f} s; Ctrl-C stops it", file=sys.stderr)
            print(f"export KUBECONFIG={control_plane.kubeconfig}", flush=True)
            await ended.wait()
    except asyncio.CancelledError:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
