"""Random passwords of the NATS and etcd that dynamoctl starts on this machine, in files that only their owner can read.

There is one file for each user, `<folder>/<user>`. Later starts reuse it, so that commands and integrations can log in.
"""

import os
import secrets
import string
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

#: 40 characters of 62: 238 bits.
_LENGTH = 40
OWNER_ONLY, OWNER_AND_GROUP = 0o600, 0o640


def password() -> str:
    """A random password. It begins with a letter, which nats-server requires of a password from its environment."""
    rest = (secrets.choice(string.ascii_letters + string.digits) for _ in range(_LENGTH - 1))
    return secrets.choice(string.ascii_letters) + "".join(rest)


def load_or_create(folder: Path, users: Iterable[str], *, mode: int = OWNER_ONLY) -> dict[str, str]:
    """The users' passwords; missing ones are created. `mode` is the mode of the files."""
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if mode != OWNER_ONLY:
            # Set independently of the umask. Without this right no file in the folder can be read.
            folder.chmod(0o750)
    return {user: _load_or_create(folder / user, mode) for user in users}


def _load_or_create(file: Path, mode: int) -> str:
    try:
        stored = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        stored = ""
    if not stored:
        stored = password()
        write(file, stored + "\n", mode=mode)
    elif mode & ~file.stat().st_mode:
        # An earlier call may have created the file for its owner only.
        file.chmod(mode)
    return stored


def write(file: Path, text: str, *, mode: int = OWNER_ONLY) -> None:
    """Write a file that others cannot read. It never exists with less protection, or incomplete."""
    # A new file with a random name: others may write to the folder, and create a link under a name that they can guess.
    number, unfinished = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            # Set independently of the umask.
            os.fchmod(number, mode)
            out.write(text)
        Path(unfinished).replace(file)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(unfinished).unlink()
        raise
