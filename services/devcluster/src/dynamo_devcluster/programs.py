"""Obtains programs: installed programs, the cache, Python packages, downloads, Debian packages, builds from source.

Sources are tried in this order, from fast to slow. Any number of processes may obtain a program at the same time: a lock
of the program allows only one of them to download or build it.
"""

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from .cache import ProgramCache
from .catalog import CONTROL_PLANE, PROGRAMS
from .debian import DebianPackageSource
from .download import DownloadSource
from .errors import ProgramUnavailableError
from .gobuild import GoBuildSource
from .progress import Progress, step
from .sources import CacheSource, InstalledSource, NotAvailableError, ProgramSource, PythonPackageSource


class Programs:
    """Finds or builds the programs of a local cluster.

    `local` are the sources that only search this machine; `fetching` are those that download or build into the cache.
    """

    def __init__(
        self,
        progress: Progress | None = None,
        cache: ProgramCache | None = None,
        local: Sequence[ProgramSource] | None = None,
        fetching: Sequence[ProgramSource] | None = None,
    ) -> None:
        self.progress = progress if progress is not None else Progress()
        self.cache = cache if cache is not None else ProgramCache()
        self._cached = CacheSource(self.cache)
        self._local: Sequence[ProgramSource] = (
            local if local is not None else (InstalledSource(), self._cached, PythonPackageSource())
        )
        self._fetching: Sequence[ProgramSource] = (
            fetching
            if fetching is not None
            else (DownloadSource(self.cache), DebianPackageSource(self.cache), GoBuildSource(self.cache))
        )
        self._obtained: dict[str, Path] = {}

    async def obtain(self, name: str) -> Path:
        """Absolute path of a suitable program.

        Raises ProgramUnavailableError (with every source's reason) or ChecksumMismatchError.
        """
        if name in self._obtained:
            return self._obtained[name]
        program = PROGRAMS.get(name)
        if program is None:
            raise ProgramUnavailableError(
                f"{name!r} is not a program of a local cluster; use one of {', '.join(PROGRAMS)}"
            )
        path, reasons = await self._first(name, self._local)
        if path is None:
            waiting = ExitStack()
            name_of_step = f"waiting for another process that obtains {name}"
            async with self.cache.lock(program, lambda: waiting.enter_context(step(self.progress, name_of_step))):
                waiting.close()
                # The process that held the lock may have just built it.
                path, more = await self._first(name, [self._cached, *self._fetching])
                reasons += more[1:]
        if path is None:
            raise ProgramUnavailableError(
                f"{name} ({program.allowed}) is not available: {'; '.join(reasons)}. Put it on PATH or into "
                "KUBEBUILDER_ASSETS, or install Go and allow access to a Go module proxy, "
                "or run the servers with a container engine: see compose.yaml"
            )
        self._obtained[name] = path.absolute()
        return self._obtained[name]

    async def obtain_all(self, names: Iterable[str] = CONTROL_PLANE) -> dict[str, Path]:
        """Obtain several programs, one after another: two parallel builds would only slow each other down."""
        return {name: await self.obtain(name) for name in names}

    async def _first(self, name: str, sources: Iterable[ProgramSource]) -> tuple[Path | None, list[str]]:
        reasons: list[str] = []
        for source in sources:
            try:
                return await source.find(PROGRAMS[name], self.progress), reasons
            except NotAvailableError as reason:
                reasons.append(str(reason))
        return None, reasons
