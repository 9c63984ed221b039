"""The sockets that servers listen on."""

import socket

#: Each stands for all addresses of this host, of IPv4 and of IPv6. Go's servers take them so, and the addresses of an operator's
#: configuration are written for these; Python's would listen on one family alone.
ALL_ADDRESSES = frozenset({"", "0.0.0.0", "::"})  # noqa: S104 - compared with


def listening_socket(address: str, port: int, backlog: int) -> socket.socket:
    """A socket that takes connections to an address of this host, or to all. 0 picks a port. OSError where it is taken."""
    both = address in ALL_ADDRESSES and socket.has_dualstack_ipv6()
    host = "" if address in ALL_ADDRESSES else address
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=backlog, dualstack_ipv6=both)
