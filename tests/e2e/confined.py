"""Running a command on a node's machine: prepared for, confined, its logs kept where it failed."""

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

#: Where the logs of a run that failed are kept, below the working directory; the next one replaces them.
KEPT_LOGS = Path(".dynamo/e2e-logs")
UNSUITABLE = 2
INTERRUPTED = 130


def confined(command: Sequence[str], before: Callable[[Progress], Awaitable[None]] = prepare) -> int:
    """Run a command once `before` has obtained what it takes, since there is no network within.

    Exit code of the command, 2 where this machine cannot have a node, 130 after Ctrl-C."""
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
    """The logs of the node's programs, of its control plane, of the platform and of all pods."""
    shutil.rmtree(KEPT_LOGS, ignore_errors=True)
    for name in ("logs", "kubernetes/logs"):
        if (folder / name).is_dir():
            shutil.copytree(folder / name, KEPT_LOGS / name, symlinks=True)
    for log in folder.glob("platform/*/platform.log"):
        KEPT_LOGS.mkdir(parents=True, exist_ok=True)
        shutil.copy(log, KEPT_LOGS)
    print(f"the logs of everything that ran are in {KEPT_LOGS}", file=sys.stderr)
