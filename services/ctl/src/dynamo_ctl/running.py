"""The note by which `get` and `events` find the platform that `up` or `demo` runs: `.dynamo/platform.json`.

It is looked for in the working folder and those above it, as git looks for its own folder. It holds no secret.
"""

from __future__ import annotations

import contextlib
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

    `nats_credentials`: folder of the password files of its NATS; "" where the settings say how to get in.
    """

    pid: int
    cluster: str
    nats: str
    kubeconfig: str = ""
    context: str = ""
    nats_credentials: str = ""

    @property
    def alive(self) -> bool:
        """Whether its process exists."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True


def find(start: Path | None = None) -> RunningPlatform | None:
    """The platform that runs in this folder or one above it; None where no platform does."""
    start = (start or Path.cwd()).absolute()
    for folder in (start, *start.parents):
        running = _read(folder / FOLDER / NAME)
        if running is not None and running.alive:
            return running
    return None


@contextlib.contextmanager
def announced(folder: Path, running: RunningPlatform) -> Iterator[None]:
    """Let others find `running` while this lasts."""
    file = folder / NAME
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_text(json.dumps(asdict(running), indent=2) + "\n", encoding="utf-8")
    unfinished.replace(file)
    try:
        yield
    finally:
        if _read(file) == running:
            file.unlink(missing_ok=True)


def claim(folder: Path) -> None:
    """Make the folder; CtlError where a platform runs in it already."""
    running = _read(folder / NAME)
    if running is not None and running.alive:
        raise CtlError(f"a platform runs here already (process {running.pid}); stop it first, or use another folder")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _read(file: Path) -> RunningPlatform | None:
    try:
        return RunningPlatform(**json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
