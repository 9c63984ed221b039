"""Which addresses may be called on a tenant's word: those of a pod network and beyond, none of this host or of a cloud."""

import ipaddress
from typing import TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Where clouds answer with credentials besides the link-local address: Alibaba, Azure, AWS and Google by IPv6.
_METADATA_SERVERS = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254"))
)
#: NAT64 (RFC 6052, 8215) and addresses that embed one of IPv4 without a name for it (RFC 4291).
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))


def parsed(text: str) -> Address | None:
    """The address that a text is, an IPv4 one in IPv6 clothing as that; None where it is not an address."""
    try:
        address = ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def in_url(host: str) -> str:
    """A name or an address as a URL has it: that of IPv6 in brackets."""
    return f"[{host}]" if ":" in host else host


def may_be_called(address: Address) -> bool:
    """Whether an address leads neither to this host, nor to many, nor to the metadata of a cloud, nor hides another."""
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
    """Whether an address names an interface of this host, or contains one of IPv4."""
    if address.scope_id is not None or address.sixtofour is not None or address.teredo is not None:
        return True
    return any(address in network for network in _EMBEDDING)
