"""Runs external programs: their output is shown only if they fail."""

import subprocess
from collections.abc import Mapping, Sequence


class ImageError(Exception):
    """An image cannot be built; the message names the reason and the remedy."""


def run(command: Sequence[str], within: float, environment: Mapping[str, str] | None = None) -> str:
    """Standard output of a command. Raises ImageError, with the end of its output, if it fails or times out."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise ImageError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise ImageError(f"{' '.join(command[:3])} did not end within {within:.0f} s") from None
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-12:])
        raise ImageError(f"{' '.join(command[:3])} failed with exit code {done.returncode}:\n{tail}")
    return done.stdout


def succeeds(command: Sequence[str]) -> bool:
    """Whether a command succeeds in time."""
    try:
        run(command, 30.0)
    except ImageError:
        return False
    return True
