"""The note by which `get`, `events` and the other commands find the platform that `up` or `demo` runs: `.dynamo/platform.json`.

It is looked for in the working folder and those above it, as git looks for its own folder. It holds no secret.
It counts while the process that wrote it holds the lock of its folder, which the kernel frees when that process ends,
however it ends: the number of a process may be another's by now. And it counts where the folder is the user's own: it
names a kubeconfig, which may start programs, and a server that gets the user's token. Others may write above /tmp/mine.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from dynamo_ctl.errors import CtlError

FOLDER = Path(".dynamo")
NAME = "platform.json"


@dataclass(frozen=True, slots=True)
class RunningPlatform:
    """A platform that a process on this machine runs. `kubeconfig` and `context` are "" where defaults are used.

    `nats_credentials`: folder of the password files of its NATS; "" where the settings say how to get in. `api` is the URL of
    its REST API, and `token_file` has a token for it; "" where the platform made none.
    """

    pid: int
    cluster: str
    nats: str
    kubeconfig: str = ""
    context: str = ""
    nats_credentials: str = ""
    api: str = ""
    token_file: str = ""


def find(start: Path | None = None) -> RunningPlatform | None:
    """The platform that runs in this folder or one above it; None where no platform does."""
    start = (start or Path.cwd()).absolute()
    for folder in (start, *start.parents):
        if (running := _own(folder / FOLDER)) is not None:
            return running
    return None


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Make the folder, and be the only platform in it while this lasts; CtlError where one runs in it already."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _opened(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            running = _read(lock)
            which = f" (process {running.pid})" if running is not None else ""
            raise CtlError(f"a platform runs here already{which}; stop it first, or use another folder") from None
        # Of a process that was killed.
        (folder / NAME).unlink(missing_ok=True)
        yield


@contextlib.contextmanager
def announced(folder: Path, running: RunningPlatform) -> Iterator[None]:
    """Let others find `running` while this lasts, in a folder that is claimed."""
    file = folder / NAME
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(asdict(running), indent=2) + "\n", encoding="utf-8")
    unfinished.replace(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _own(folder: Path) -> RunningPlatform | None:
    """The platform that runs in a folder of this user."""
    try:
        with _opened(folder) as lock:
            if os.fstat(lock).st_uid != os.getuid() or not _is_claimed(lock):
                return None
            return _read(lock)
    except OSError:
        return None


def _is_claimed(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield number
    finally:
        os.close(number)


def _read(folder: int) -> RunningPlatform | None:
    """What stands in the note of an open folder; None where there is none that can be read."""
    try:
        with open(os.open(NAME, os.O_RDONLY, dir_fd=folder), encoding="utf-8") as note:  # noqa: PTH123 - of this very folder
            return RunningPlatform(**json.load(note))
    except (OSError, ValueError, TypeError):
        return None
