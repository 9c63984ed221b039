"""Allocates free TCP ports on 127.0.0.1, and stores them, so that a second start on the same data keeps its addresses."""

import functools
import json
import random
import socket
from pathlib import Path

from .cache import default_cache_root
from .errors import LocalClusterError
from .locks import ByteLocks

LOOPBACK = "127.0.0.1"

# Below the range of Linux's source ports (32768-60999). If a stopped server's port is in that range, a client that
# retries may get this port as its source port, connect to itself, and prevent the server from restarting.
_FIRST, _LAST = 15000, 29999
_ATTEMPTS = 1000
_choice = random.SystemRandom()


@functools.cache
def _claims() -> ByteLocks:
    """The ports that processes of this user have allocated: byte N of the file is the lock of port N.

    A port is allocated before its server binds it, and a server that is stopped for some time keeps its port. Without
    this file, another process that allocates a port in between could get the same port.
    """
    return ByteLocks(default_cache_root() / "locks" / "ports.lock")


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1:`port` now."""
    with socket.socket() as probe:
        # As servers do: it allows the port of connections in TIME_WAIT, which a recently ended server leaves.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port without a listener that no process of this user has allocated. It stays allocated until this process ends.

    Raises LocalClusterError if there is none.
    """
    for _ in range(_ATTEMPTS):
        port = _choice.randint(_FIRST, _LAST)
        if _claim(port):
            return port
    raise LocalClusterError(f"no free port between {_FIRST} and {_LAST} on {LOOPBACK}; stop some servers")


def _claim(port: int) -> bool:
    """Allocate the port, if no process has allocated it and no server listens on it; returns whether it did."""
    if not _claims().take(port):
        return False
    if is_free(port):
        return True
    _claims().release(port)
    return False


class PortFile:
    """Ports by name, stored in a file. A stored port that is no longer free is replaced."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._claimed: set[int] = set()
        try:
            self._ports: dict[str, int] = json.loads(file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            self._ports = {}

    def port(self, name: str, given: int = 0) -> int:
        """The port of `name`: `given` if not 0, otherwise the stored port if still free, otherwise a free port."""
        port = given
        if not port:
            stored = self._ports.get(name, 0)
            port = stored if stored and _claim(stored) else free_port()
            self._claimed.add(port)
        self._ports[name] = port
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._ports))
        return port

    def release(self) -> None:
        """Let later starts reuse the ports that this object allocated."""
        while self._claimed:
            _claims().release(self._claimed.pop())
