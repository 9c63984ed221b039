"""Random passwords of the NATS and etcd that this machine brings along: files that only their owner can read.

One file a user, `<folder>/<user>`, kept over restarts, so that commands and integrations of this machine find the way in.
"""

import os
import secrets
import string
from collections.abc import Iterable
from pathlib import Path

#: 40 characters of 62: 238 bits.
_LENGTH = 40
OWNER_ONLY, OWNER_AND_GROUP = 0o600, 0o640


def password() -> str:
    """A random password. It begins with a letter, as nats-server wants of one that comes from its environment."""
    rest = (secrets.choice(string.ascii_letters + string.digits) for _ in range(_LENGTH - 1))
    return secrets.choice(string.ascii_letters) + "".join(rest)


def kept(folder: Path, users: Iterable[str], *, mode: int = OWNER_ONLY) -> dict[str, str]:
    """The users' passwords; those that have none yet get one. `mode`: of the files."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return {user: _kept(folder / user, mode) for user in users}


def _kept(file: Path, mode: int) -> str:
    try:
        kept = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        kept = ""
    if not kept:
        kept = password()
        write(file, kept + "\n", mode=mode)
    return kept


def write(file: Path, text: str, *, mode: int = OWNER_ONLY) -> None:
    """Write a file that others cannot read; it is never there with less protection, nor in part."""
    unfinished = file.with_name(f".{file.name}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w", encoding="utf-8") as out:
        out.write(text)
    unfinished.replace(file)
