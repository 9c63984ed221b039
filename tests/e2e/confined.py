"""Runs a command on a node's machine: prepares, confines it, and keeps the logs if it fails."""

import asyncio
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from dynamo_devcluster import LocalClusterError
from dynamo_devcluster.progress import LineProgress, Progress

from . import confinement
from .machine import UnsuitableMachineError
from .prepare import prepare

#: The logs of a failed run, below the working directory; the next failure replaces them.
KEPT_LOGS = Path(".dynamo/e2e-logs")
UNSUITABLE = 2
INTERRUPTED = 130


def confined(command: Sequence[str], before: Callable[[Progress], Awaitable[None]] = prepare) -> int:
    """Run a command once `before` has downloaded what it needs, since there is no network inside.

    Returns the command's exit code, 2 if this machine cannot run a node, 130 after Ctrl-C."""
    try:
        asyncio.run(_obtained(before))
        return confinement.run(command, failed=_keep_logs)
    except (UnsuitableMachineError, LocalClusterError) as error:
        print(error, file=sys.stderr)
        return UNSUITABLE
    except KeyboardInterrupt:
        return INTERRUPTED


async def _obtained(before: Callable[[Progress], Awaitable[None]]) -> None:
    await before(LineProgress())


def _keep_logs(folder: Path) -> None:
    """Keep the logs of the node's programs, its control plane, the platform and all pods."""
    shutil.rmtree(KEPT_LOGS, ignore_errors=True)
    for name in ("logs", "kubernetes/logs"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, KEPT_LOGS / name, symlinks=True)
    for log in folder.glob("platform/*/platform.log"):
        KEPT_LOGS.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, KEPT_LOGS)
    print(f"the logs of everything that ran are in {KEPT_LOGS}", file=sys.stderr)
