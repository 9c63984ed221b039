"""Records in files (`DYN_FILE_KV`), for development and tests: `v1/<kind>/<percent-encoded key>`.

A process touches its files every few seconds. This source ignores files that were not touched for LIFETIME, because a
killed process leaves its files. It removes no files.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from dynamo_model_discovery.workers.assembly import FILE
from dynamo_model_discovery.workers.records import CARDS, INSTANCES, MAX_VALUE_BYTES
from dynamo_model_discovery.workers.sources.base import RecordTable

#: Interval of polls. Seconds.
INTERVAL = 0.5
#: Age from which on a file is ignored: the same as in Dynamo's own discovery. Seconds.
LIFETIME = 10.0
MAX_FILES = 10_000
_TEMPORARY = ".tmp_"


class _FileVersion(NamedTuple):
    changed: int
    """mtime in nanoseconds"""
    size: int


class FileSource(RecordTable):
    """Polls a directory every half second."""

    name = FILE

    def __init__(self, directory: Path, changed: Callable[[], None], *, now: Callable[[], float] = time.time) -> None:
        super().__init__(FILE)
        self._directory = directory
        self._changed = changed
        self._now = now
        self._versions: dict[Path, _FileVersion] = {}
        self._values: dict[str, bytes] = {}
        self.ready = False
        self.error = ""

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            await self.poll()
            await asyncio.sleep(INTERVAL)

    async def poll(self) -> None:
        """Poll once."""
        try:
            alive = await asyncio.to_thread(self._read)
        except OSError as failure:
            error = f"{failure.filename or self._directory}: {failure.strerror or failure}"
            if error != self.error:
                self.error = error
                self._changed()
            return
        differing: dict[str, bytes | None] = dict.fromkeys(self._values.keys() - alive.keys())
        differing |= {key: value for key, value in alive.items() if self._values.get(key) != value}
        recovered = not self.ready or bool(self.error)
        self._values, self.ready, self.error = alive, True, ""
        if differing or recovered:
            self.take(differing)
            self._changed()

    def _read(self) -> dict[str, bytes]:
        """Keys and values of the live files. Runs in a thread."""
        alive: dict[str, bytes] = {}
        versions: dict[Path, _FileVersion] = {}
        oldest = self._now() - LIFETIME
        for kind in (INSTANCES, CARDS):
            for path, status in _files(self._directory / "v1" / kind):
                if status.st_mtime < oldest:
                    continue
                key = f"{kind}/{unquote(path.name)}"
                versions[path] = now = _FileVersion(status.st_mtime_ns, status.st_size)
                known = self._values.get(key)
                try:
                    alive[key] = known if known is not None and self._versions.get(path) == now else _value(path)
                except FileNotFoundError:
                    del versions[path]
        self._versions = versions
        return alive


def _files(directory: Path) -> list[tuple[Path, os.stat_result]]:
    """The files of a directory with their status, at most MAX_FILES; none before the first process creates it."""
    files: list[tuple[Path, os.stat_result]] = []
    with suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            if len(files) == MAX_FILES:
                break
            # A process may remove its file at any time.
            with suppress(FileNotFoundError):
                if not entry.name.startswith(_TEMPORARY) and entry.is_file(follow_symlinks=False):
                    files.append((Path(entry.path), entry.stat(follow_symlinks=False)))
    return files


def _value(path: Path) -> bytes:
    with path.open("rb") as file:
        value = file.read(MAX_VALUE_BYTES + 1)
    return value if len(value) <= MAX_VALUE_BYTES else b""
