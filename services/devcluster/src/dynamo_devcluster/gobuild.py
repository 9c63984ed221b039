"""Builds programs from Go modules, which the project's go.mod and go.sum files lock (package data below `go/`)."""

import asyncio
import contextlib
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

from .cache import ProgramCache
from .catalog import GO_MINIMUM, GoPackage, Program, Version
from .progress import Progress, step
from .sources import NotAvailableError

GO_FOLDER = Path(__file__).parent / "go"
_TOOLCHAIN_SWITCHING: Version = (1, 21, 0)
_QUOTED_LINES = 3
#: The flags that decide whether a package of an earlier build can be reused.
_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath")


def go_environment(installed: Version, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of every go command: `environ`, with fixed values for variables that could change the result.

    Go GO_MINIMUM or newer is used unchanged. An older Go (1.21 or newer) downloads the toolchain that go.mod requires.
    """
    return {
        **environ,
        "GOFLAGS": "",
        "GOWORK": "off",
        "GO111MODULE": "on",
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local" if installed >= GO_MINIMUM else "auto",
    }


class GoBuildSource:
    """Builds a program with the Go toolchain into the cache. This takes minutes, or seconds with a warm build cache."""

    def __init__(self, cache: ProgramCache, environ: Mapping[str, str] | None = None, folder: Path = GO_FOLDER) -> None:
        self._cache = cache
        self._environ = os.environ if environ is None else environ
        self._folder = folder

    async def find(self, program: Program, progress: Progress) -> Path:
        """The built program."""
        if program.go is None:
            raise NotAvailableError("it is not a Go program")
        environment = await self._toolchain()
        name = f"building {program.name} {program.version}"
        with step(progress, name):
            return await self._build(program, program.go, environment, name, progress)

    async def _build(
        self, program: Program, go: GoPackage, environment: Mapping[str, str], name: str, progress: Progress
    ) -> Path:
        packages = await self._packages(go, environment, name, progress)
        compiled = 0

        def on_line(_: str) -> None:
            nonlocal compiled
            compiled += 1
            progress.advanced(name, compiled, packages, "packages compiled")

        with self._cache.staging(program) as staging:
            out = staging / program.name
            await self._go(
                environment, go, on_line,
                "build", "-v", *_FLAGS, "-ldflags", go.ldflags, "-o", str(out), go.package,
            )  # fmt: skip
            return self._cache.install(program, out)

    async def _toolchain(self) -> dict[str, str]:
        go = shutil.which("go", path=self._environ.get("PATH"))
        minimum = ".".join(map(str, GO_MINIMUM[:2]))
        if go is None:
            raise NotAvailableError(f"no Go toolchain is on PATH (building needs Go {minimum} or newer)")
        process = await asyncio.create_subprocess_exec(
            go, "env", "GOVERSION", env={**self._environ, "GOTOOLCHAIN": "local"}, stdout=asyncio.subprocess.PIPE
        )
        output = (await process.communicate())[0].decode().strip()
        match = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", output)
        version = (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)
        if version < _TOOLCHAIN_SWITCHING:
            raise NotAvailableError(f"{go} is {output or 'of an unknown version'}; Go {minimum} or newer is needed")
        return go_environment(version, self._environ)

    async def _packages(self, go: GoPackage, environment: Mapping[str, str], name: str, progress: Progress) -> int:
        """Number of packages to compile, without packages in Go's build cache; also downloads the modules."""
        modules = (self._folder / go.folder / "go.mod").read_text().count("\n\t")
        fetched = 0

        def on_line(line: str) -> None:
            nonlocal fetched
            if line.startswith("go: downloading"):
                fetched += 1
                progress.advanced(name, fetched, modules, "modules downloaded, of at most")

        stale = "{{if .Stale}}{{.ImportPath}}{{end}}"
        listed = await self._go(environment, go, on_line, "list", *_FLAGS, "-deps", "-f", stale, go.package)
        return len(listed.split())

    async def _go(
        self, environment: Mapping[str, str], go: GoPackage, on_line: Callable[[str], None], *arguments: str
    ) -> str:
        """Run go; returns its standard output, and calls `on_line` with each line of its standard error."""
        process = await asyncio.create_subprocess_exec(
            shutil.which("go", path=environment.get("PATH")) or "go",
            *arguments,
            cwd=self._folder / go.folder,
            env=dict(environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            # Compilers are child processes of go: with one process group, an interrupted build ends at once.
            start_new_session=True,
        )
        if process.stdout is None or process.stderr is None:
            raise AssertionError("the process has no pipes")
        reading = asyncio.create_task(process.stdout.read())
        last: list[str] = []
        try:
            async for raw in process.stderr:
                line = raw.decode(errors="replace").rstrip()
                last = [*last, line][-_QUOTED_LINES:]
                on_line(line)
            output = (await reading).decode()
            code = await process.wait()
        finally:
            reading.cancel()
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        if code != 0:
            raise NotAvailableError(f"go {arguments[0]} failed: {' / '.join(last) or f'exit code {code}'}")
        return output
