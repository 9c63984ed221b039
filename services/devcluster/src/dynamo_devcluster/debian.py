"""Obtains programs from Debian packages: unpacks them into the cache, without an installation and without root.

`apt-get download` downloads the package from the machine's package sources, and checks its signed digest.
"""

import asyncio
import os
import shutil
from pathlib import Path

from .cache import ProgramCache
from .catalog import Program, parse_version
from .progress import Progress, step
from .sources import NotAvailableError, version_of

_TIMEOUT_SECONDS = 300.0
_QUOTED_CHARACTERS = 200


class DebianPackageSource:
    """Downloads and unpacks the package of a program, if this machine has apt and knows the package."""

    def __init__(self, cache: ProgramCache) -> None:
        self._cache = cache

    async def find(self, program: Program, progress: Progress) -> Path:
        """The unpacked program."""
        if program.debian_package is None:
            raise NotAvailableError("no Debian package has it")
        for tool in ("apt-get", "dpkg-deb"):
            if shutil.which(tool) is None:
                raise NotAvailableError(f"{tool}, which unpacks Debian packages, is not installed")
        name = f"unpacking {program.name} of the Debian package {program.debian_package}"
        with step(progress, name), self._cache.staging(program) as folder:
            await _run(folder, "apt-get", "download", "--quiet=2", program.debian_package)
            packages = list(folder.glob("*.deb"))
            if not packages:
                raise NotAvailableError(f"apt-get downloaded no package {program.debian_package}")
            await _run(folder, "dpkg-deb", "--extract", str(packages[0]), "unpacked")
            places = [folder / "unpacked" / place / program.name for place in ("usr/bin", "bin")]
            binary = next((place for place in places if place.is_file()), None)
            if binary is None:
                raise NotAvailableError(f"the Debian package {program.debian_package} has no /usr/bin/{program.name}")
            version = parse_version(await version_of(program, binary))
            if not program.accepts(version):
                shown = ".".join(map(str, version)) if version else "unknown"
                raise NotAvailableError(f"the Debian package {program.debian_package} has version {shown}")
            return self._cache.install(program, binary)


async def _run(folder: Path, *command: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_TIMEOUT_SECONDS):
            _, errors = await process.communicate()
    except TimeoutError:
        raise NotAvailableError(f"{command[0]} did not end within {_TIMEOUT_SECONDS:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        error_text = " ".join(errors.decode(errors="replace").split())[-_QUOTED_CHARACTERS:]
        raise NotAvailableError(f"{' '.join(command[:2])} failed: {error_text} (apt-get update may help)")
