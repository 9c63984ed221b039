"""The Python environment with the real Dynamo runtime: created on demand in the cache, from pinned and hashed packages.

`python -m tests.dynamo_runtime` creates it and prints its path. It is separate from the project's own environment,
which must not depend on the runtime's dependencies.
"""

import asyncio
import hashlib
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dynamo_devcluster.cache import default_cache_root
from dynamo_devcluster.locks import file_lock
from dynamo_devcluster.progress import Progress

from tests.building.processes import ending
from tests.building.tasks import in_background

#: The packages to install: `make lock-dynamo-runtime` writes the file. Images for the runtime's pods also use it.
REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "dynamo-runtime.txt"
INSTALLS_WITHIN = 540.0
"""Seconds: the runtime's wheel alone is 75 MB."""

_COMPLETE = ".complete"
_COUNTED_EVERY = 1.0
"""Seconds between two counts of the installed packages."""
_QUOTED_LINES = 8


class RuntimeUnavailableError(Exception):
    """The runtime cannot be installed on this machine; the message says why and what to do."""


@dataclass(frozen=True)
class RuntimeEnvironment:
    """The location of the installed runtime."""

    root: Path

    @property
    def python(self) -> Path:
        """Its interpreter: `python -m dynamo.mocker`, `python -m dynamo.frontend`."""
        return self.root / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """The folder of its packages: with it on PYTHONPATH, any interpreter of the same minor version works."""
        version = sys.version_info
        return self.root / "lib" / f"python{version.major}.{version.minor}" / "site-packages"

    @property
    def complete(self) -> bool:
        """Whether the installation is complete."""
        return (self.root / _COMPLETE).exists()


def environment_of(requirements: Path = REQUIREMENTS, cache: Path | None = None) -> RuntimeEnvironment:
    """The location for these requirements: other requirements or another Python get another folder."""
    version = sys.version_info
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    root = cache if cache is not None else default_cache_root()
    return RuntimeEnvironment(root / "dynamo-runtime" / f"py{version.major}{version.minor}-{digest}")


async def obtain(
    requirements: Path = REQUIREMENTS, cache: Path | None = None, progress: Progress | None = None
) -> RuntimeEnvironment:
    """The complete environment. Raises RuntimeUnavailableError, for instance without a network.

    Any number of processes may call this at once; one of them creates it.
    """
    progress = progress if progress is not None else Progress()
    environment = environment_of(requirements, cache)
    step = "installing the Dynamo runtime"
    async with file_lock(
        environment.root.with_suffix(".lock"), lambda: progress.started(f"{step}: another process does")
    ):
        if not environment.complete:
            begun = time.monotonic()
            progress.started(step)
            # Remains of a killed process; an environment cannot be moved, so it is created in its final place.
            shutil.rmtree(environment.root, ignore_errors=True)
            await _run("make an environment", sys.executable, "-m", "venv", "--without-pip", str(environment.root))
            await _install(environment, requirements, progress, step)
            (environment.root / _COMPLETE).touch()
            progress.finished(step, time.monotonic() - begun)
    return environment


async def _install(environment: RuntimeEnvironment, requirements: Path, progress: Progress, step: str) -> None:
    packages, collected = _pinned(requirements), 0

    def on_line(line: str) -> None:
        nonlocal packages, collected
        # The lock also has packages for other platforms.
        packages -= line.startswith("Ignoring ")
        if line.startswith("Collecting "):
            collected += 1
            progress.advanced(step, collected, packages, "packages downloaded")

    async def count() -> None:
        # pip is silent while it installs.
        while True:
            await asyncio.sleep(_COUNTED_EVERY)
            if installed := len([*environment.site_packages.glob("*.dist-info")]):
                progress.advanced(step, installed, packages, "packages installed")

    async with in_background(count()):
        await _run(
            f"install {requirements.name}",
            *(sys.executable, "-m", "pip", "--python", str(environment.python), "install", "--progress-bar", "off"),
            *("--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(requirements)),
            on_line=on_line,
        )


def _pinned(requirements: Path) -> int:
    return sum("==" in line and not line.startswith(" ") for line in requirements.read_text().splitlines())


async def _run(what: str, *command: str, on_line: Callable[[str], None] = lambda _: None) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    environ |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=environ,
    )  # fmt: skip
    if process.stdout is None:
        raise AssertionError("a pipe was asked for")
    last: deque[str] = deque(maxlen=_QUOTED_LINES)
    try:
        async with ending(process), asyncio.timeout(INSTALLS_WITHIN):
            async for raw in process.stdout:
                line = raw.decode(errors="replace").rstrip()
                last.append(line)
                on_line(line)
            await process.wait()
    except TimeoutError:
        raise RuntimeUnavailableError(
            f"could not {what}: not done after {INSTALLS_WITHIN:.0f} s. Is the package index slow or away?"
        ) from None
    if process.returncode:
        tail = "\n".join(last)
        raise RuntimeUnavailableError(
            f"could not {what}: {' '.join(command[1:4])} ended with {process.returncode}:\n{tail}\n"
            "The real Dynamo runtime comes from pip's package index: allow access to it (PIP_INDEX_URL), or put "
            "the wheels of requirements/dynamo-runtime.txt into a folder that PIP_FIND_LINKS names. "
            "It is published for Linux on x86_64 and aarch64."
        )
