"""Free TCP ports on 127.0.0.1, and remembering them so that a second start on the same data keeps its addresses."""

from __future__ import annotations

import json
import random
import socket
from pathlib import Path

from .errors import LocalClusterError

LOOPBACK = "127.0.0.1"

# Below the range that Linux takes source ports from (32768-60999). A client that retries a stopped server whose port
# is in that range can be given this very port as its source, connect to itself, and keep the server from coming back.
_FIRST, _LAST = 15000, 29999
_ATTEMPTS = 1000
_choice = random.SystemRandom()

# Ports handed out by this process: two servers started together must not be given the same one before they bind it.
_given: set[int] = set()


def is_free(port: int) -> bool:
    """Whether 127.0.0.1:`port` can be listened on now."""
    with socket.socket() as probe:
        # Connections of a server that just ended linger in TIME_WAIT; servers set this option too.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port without a listener, that this process did not give out before."""
    for _ in range(_ATTEMPTS):
        port = _choice.randint(_FIRST, _LAST)
        if port not in _given and is_free(port):
            _given.add(port)
            return port
    raise LocalClusterError(f"no free port between {_FIRST} and {_LAST} on {LOOPBACK}; stop some servers")


class PortFile:
    """Ports by name, kept in a file. A remembered port that another process took in between is replaced."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._ports: dict[str, int] = json.loads(file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            self._ports = {}

    def port(self, name: str, given: int = 0) -> int:
        """The port of `name`: `given` if not 0, else the remembered one if still free, else a free one."""
        remembered = self._ports.get(name, 0)
        if given:
            port = given
        elif remembered and remembered not in _given and is_free(remembered):
            port = remembered
            _given.add(port)
        else:
            port = free_port()
        self._ports[name] = port
        self._file.parent.mkdir(parents=True, exist_ok=True)
        self._file.write_text(json.dumps(self._ports))
        return port

    def release(self) -> None:
        """Let later starts in this process reuse the ports."""
        _given.difference_update(self._ports.values())
