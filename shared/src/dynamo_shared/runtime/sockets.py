"""Listening sockets of servers."""

import socket

#: Each means all addresses of this host, IPv4 and IPv6. Go's servers interpret them so, and addresses in an operator's
#: configuration rely on that; Python's would listen on only one family.
ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with


def listening_socket(address: str, port: int, backlog: int) -> socket.socket:
    """A socket that listens on one address of this host, or on all. Port 0: the system picks one. OSError if taken."""
    both = address in ALL_ADDRESSES and socket.has_dualstack_ipv6()
    host = "" if address in ALL_ADDRESSES else address
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=both)
