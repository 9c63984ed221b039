"""The file `.dynamo/platform.json`, by which `get`, `events` and other commands find the platform of `up` or `demo`.

Commands search the working folder and the folders above it, like git searches its own folder. The file holds no secret.
The file is valid only while the process that wrote it holds the lock of its folder. The kernel frees the lock when the
process ends, however it ends; a process id may be reused. The folder must also be the user's own, because the file
names a kubeconfig, which may start programs, and a server that gets the user's token. Other users may write above
/tmp/mine.
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
    """A platform that a process on this machine runs. `kubeconfig` and `context` are "" for the defaults.

    `nats_credentials`: folder with the password files of its NATS; "" if the settings contain the credentials. `api`:
    URL of its REST API. `token_file`: a file with a token for the API; "" if the platform created none.
    """

    pid: int
    cluster: str
    nats: str
    kubeconfig: str = ""
    context: str = ""
    nats_credentials: str = ""
    api: str = ""
    token_file: str = ""

    @property
    def cluster_options(self) -> tuple[Path | None, str | None]:
        """The kubeconfig and the context of its cluster; None for the defaults."""
        return Path(self.kubeconfig) if self.kubeconfig else None, self.context or None


def find(start: Path | None = None) -> RunningPlatform | None:
    """The platform that runs in this folder or a folder above it; None if there is none."""
    start = (start or Path.cwd()).absolute()
    for folder in (start, *start.parents):
        if (running := _own(folder / FOLDER)) is not None:
            return running
    return None


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Create the folder and hold its lock during this block. Raises CtlError if a platform already runs in it.

    A folder that this call created and that is empty at the end is removed, for example if there is no cluster.
    """
    is_new = not folder.exists()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _opened(folder) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            running = _read(lock)
            which = f" (process {running.pid})" if running is not None else ""
            raise CtlError(
                f"a platform already runs in this folder{which}; stop it first, or use another folder"
            ) from None
        # A process that was killed left this file.
        (folder / NAME).unlink(missing_ok=True)
        try:
            yield
        finally:
            if is_new:
                with contextlib.suppress(OSError):  # it has content
                    folder.rmdir()


@contextlib.contextmanager
def announced(folder: Path, running: RunningPlatform) -> Iterator[None]:
    """Let other commands find `running` during this block, in a claimed folder."""
    file = folder / NAME
    unfinished = file.with_suffix(".new")
    unfinished.write_text(json.dumps(asdict(running), indent=2) + "\n", encoding="utf-8")
    unfinished.replace(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def _own(folder: Path) -> RunningPlatform | None:
    """The platform that runs in a folder that this user owns."""
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
    """The content of the file in an open folder; None if it does not exist or cannot be read."""
    try:
        with open(os.open(NAME, os.O_RDONLY, dir_fd=folder), encoding="utf-8") as note:  # noqa: PTH123 - relative to the open folder
            return RunningPlatform(**json.load(note))
    except (OSError, ValueError, TypeError):
        return None
