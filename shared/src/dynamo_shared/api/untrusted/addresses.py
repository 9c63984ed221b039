"""The addresses that the platform may call if a tenant names them: not those of this host, or of a cloud's metadata server."""

import ipaddress
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Metadata servers of clouds, which return credentials, at other than link-local addresses: Alibaba, Azure, AWS, Google.
_METADATA_SERVERS = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"))
)
#: Networks of IPv6 addresses that embed an IPv4 address: NAT64 (RFC 6052, 8215), IPv4-compatible (RFC 4291).
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))


def parsed(text: str) -> Address | None:
    """The IP address in a string, an IPv4-mapped IPv6 address as IPv4; None if it is not an address."""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def in_url(host: str) -> str:
    """A host name or an address in the form of a URL: IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def may_be_called(address: Address) -> bool:
    """Whether an address is not of this host, multicast, reserved or a metadata server's, and embeds no other address."""
    return not (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address.is_reserved
        or address in _METADATA_SERVERS
        or (isinstance(address, ipaddress.IPv6Address) and _hides_another(address))
    )


def _hides_another(address: ipaddress.IPv6Address) -> bool:
    """Whether an address has a zone (an interface of this host), or embeds an IPv4 address."""
    if address.scope_id is not None or address.sixtofour is not None or address.teredo is not None:
        return True
    return any(address in network for network in _EMBEDDING)
