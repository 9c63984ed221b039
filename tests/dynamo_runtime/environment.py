"""The Python environment with the real Dynamo runtime: made on demand in the cache, from pinned and hashed packages.

`python -m tests.dynamo_runtime` makes it and prints where it is. It is apart from the project's own environment, which
shall not depend on what the runtime depends on.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from dynamo_ctl.localcluster.cache import default_cache_root
from dynamo_ctl.localcluster.locks import turn

#: What is installed: `make lock-dynamo-runtime` writes it. An image for the runtime's pods is made from it, too.
REQUIREMENTS = Path(__file__).parents[2] / "requirements" / "dynamo-runtime.txt"
INSTALLS_WITHIN = 540.0
"""Seconds: the runtime's wheel alone is 75 MB."""

_COMPLETE = ".complete"


class RuntimeUnavailableError(Exception):
    """The runtime cannot be had on this machine; the message says why and what to do."""


@dataclass(frozen=True)
class RuntimeEnvironment:
    """Where the runtime is installed."""

    root: Path

    @property
    def python(self) -> Path:
        """Its interpreter: `python -m dynamo.mocker`, `python -m dynamo.frontend`."""
        return self.root / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        """The folder of its packages; with it on PYTHONPATH, any interpreter of the same minor version will do."""
        version = sys.version_info
        return self.root / "lib" / f"python{version.major}.{version.minor}" / "site-packages"


def environment_of(requirements: Path = REQUIREMENTS, cache: Path | None = None) -> RuntimeEnvironment:
    """Where these requirements stand, or will stand: other requirements or another Python are another folder."""
    version = sys.version_info
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()[:12]
    root = cache if cache is not None else default_cache_root()
    return RuntimeEnvironment(root / "dynamo-runtime" / f"py{version.major}{version.minor}-{digest}")


async def obtain(requirements: Path = REQUIREMENTS, cache: Path | None = None) -> RuntimeEnvironment:
    """The environment, complete. Raises RuntimeUnavailableError, for instance without a network.

    Any number of processes may ask at once, one of them makes it.
    """
    environment = environment_of(requirements, cache)
    complete = environment.root / _COMPLETE
    async with turn(environment.root.with_suffix(".lock")):
        if not complete.exists():
            # What a killed process left; an environment cannot be moved, so it is made where it stays.
            shutil.rmtree(environment.root, ignore_errors=True)
            await _run("make an environment", sys.executable, "-m", "venv", "--without-pip", str(environment.root))
            await _run(
                f"install {requirements.name}", sys.executable, "-m", "pip", "--python", str(environment.python), "install",
                "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(requirements),
            )  # fmt: skip
            complete.touch()
    return environment


async def _run(what: str, *command: str) -> None:
    environ = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    environ |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        env=environ,
    )  # fmt: skip
    try:
        async with asyncio.timeout(INSTALLS_WITHIN):
            output, _ = await process.communicate()
    except TimeoutError:
        raise RuntimeUnavailableError(
            f"could not {what}: not done after {INSTALLS_WITHIN:.0f} s. Is the package index slow or away?"
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        tail = "\n".join(output.decode(errors="replace").splitlines()[-8:])
        raise RuntimeUnavailableError(
            f"could not {what}: {' '.join(command[1:4])} ended with {process.returncode}:\n{tail}\n"
            "The real Dynamo runtime comes from the package index that pip is told of: allow access to it (PIP_INDEX_URL), "
            "or put the wheels of requirements/dynamo-runtime.txt into a folder that PIP_FIND_LINKS names. "
            "It is published for Linux on x86_64 and aarch64."
        )
