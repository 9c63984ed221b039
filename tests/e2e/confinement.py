"""Network, mount and process namespaces for a command: all its processes and mounts end with it, however it ends.

The kernel cleans up: all processes of a process namespace end with its first one, and mounts, addresses and packet
filters with their last process. Cgroups and the folder of the node's files stay: the process outside removes them, or
if that process was killed, the next run.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from dynamo_devcluster.process import LAUNCHER

FOLDER_PREFIX = "dynamo-node-"
CONTROL_GROUPS = Path("/sys/fs/cgroup")
#: containerd's cgroup for containers, if the kubelet creates no cgroups; one in each hierarchy.
CONTAINERS_GROUP = "k8s.io"
#: containerd's records of containers, below the node's folder; records of containers that run at the end stay.
TASKS = f"run/io.containerd.runtime.v2.task/{CONTAINERS_GROUP}/*"
ENDS_WITHIN = 60.0
"""Seconds from Ctrl-C until everything is killed; meanwhile the tests may clean up."""


def run(command: Sequence[str], failed: Callable[[Path], None]) -> int:
    """Run a command in separate namespaces, with `DYNAMO_NODE_FOLDER` set; returns its exit code.

    Ctrl-C reaches the command, which may still clean up for a while. `failed` gets the folder of a failed command
    before the folder is removed.
    """
    folders = Path(tempfile.gettempdir())
    clear_leftovers(folders)
    with _folder(folders) as folder:
        inside = [sys.executable, "-m", "tests.e2e.inside", str(folder), *command]
        namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        process = subprocess.Popen(
            # If this process is killed, the kernel also kills `unshare` and with it everything inside.
            [sys.executable, "-I", "-S", str(LAUNCHER), str(os.getpid()), _unshare(), *namespaces, "--", *inside],
            env={**os.environ, "DYNAMO_NODE_FOLDER": str(folder)},
        )
        try:
            code = _wait(process)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if code:
            failed(folder)
        return code


def clear_leftovers(folders: Path) -> None:
    """Remove the remains of runs that were killed together with the process that started them."""
    for folder in folders.glob(f"{FOLDER_PREFIX}*"):
        with contextlib.suppress(ValueError):
            if not Path("/proc", str(int(folder.name.removeprefix(FOLDER_PREFIX)))).exists():
                _remove(folder)


@contextlib.contextmanager
def _folder(folders: Path) -> Iterator[Path]:
    folder = folders / f"{FOLDER_PREFIX}{os.getpid()}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    for container in folder.glob(TASKS):
        for group in (CONTROL_GROUPS / CONTAINERS_GROUP, *CONTROL_GROUPS.glob(f"*/{CONTAINERS_GROUP}")):
            # From the leaves up: nested cgroups of the container come first.
            for place, _, _ in os.walk(group / container.name, topdown=False):
                with contextlib.suppress(OSError):
                    Path(place).rmdir()
            # Empty, unless another node's containers use it.
            with contextlib.suppress(OSError):
                group.rmdir()
    shutil.rmtree(folder, ignore_errors=True)


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The command's exit code; it receives Ctrl-C and TERM, and is killed only if it does not end."""
    deadline = float("inf")

    def reported(number: int, _: object) -> None:
        nonlocal deadline
        if deadline == float("inf"):
            deadline = time.monotonic() + ENDS_WITHIN
            if number == signal.SIGTERM:
                _report_inside(process.pid)
        else:
            deadline = 0.0

    before = {number: signal.signal(number, reported) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(timeout=0.2)
        process.kill()
        return 128 + signal.SIGKILL
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _report_inside(unshare: int) -> None:
    """Send TERM to the first process inside, because `unshare` does not forward it."""
    children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    for child in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGTERM)


def _unshare() -> str:
    program = shutil.which("unshare")
    if program is None:
        raise FileNotFoundError("unshare (util-linux) is not installed")
    return program
