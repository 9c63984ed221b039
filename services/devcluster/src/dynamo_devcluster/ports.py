"""Allocates free TCP ports on 127.0.0.1, and remembers them, so that a second start on the same data keeps its
addresses.
"""

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
    """The ports that processes of this user have taken: byte N of the file stands for port N.

    A port is allocated before its server binds it, and a server that is stopped for some time keeps its port. Without
    this file, another process that looks for a free port in between would get the same port.
    """
    return ByteLocks(default_cache_root() / "locks" / "ports.lock")


def is_free(port: int) -> bool:
    """Whether 127.0.0.1:`port` can be listened on now."""
    with socket.socket() as probe:
        # Connections of a recently ended server stay in TIME_WAIT; servers set this option, too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port without a listener that no process of this user has taken. This process keeps it until it ends."""
    for _ in range(_ATTEMPTS):
        port = _choice.randint(_FIRST, _LAST)
        if _claimed(port):
            return port
    raise LocalClusterError(f"no free port between {_FIRST} and {_LAST} on {LOOPBACK}; stop some servers")


def _claimed(port: int) -> bool:
    """Take the port, if no process has taken it and nothing listens there."""
    if not _claims().take(port):
        return False
    if is_free(port):
        return True
    _claims().release(port)
    return False


class PortFile:
    """Ports by name, stored in a file. If another process has taken a remembered port, the port is replaced."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._ports: dict[str, int] = json.loads(file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            self._ports = {}

    def port(self, name: str, given: int = 0) -> int:
        """The port of `name`: `given` if not 0, otherwise the remembered port if still free, otherwise a free port."""
        remembered = self._ports.get(name, 0)
        if given:
            port = given
        elif remembered and _claimed(remembered):
            port = remembered
        else:
            port = free_port()
        self._ports[name] = port
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._ports))
        return port

    def release(self) -> None:
        """Let later starts reuse the ports."""
        for port in self._ports.values():
            _claims().release(port)
