"""Server addresses: health probes use the address of a pod, which is IPv4, IPv6 or both."""

import socket
from contextlib import suppress

import aiohttp
import pytest
from dynamo_shared.runtime import Health
from dynamo_shared.runtime.endpoints import ALL_ADDRESSES, health_app, listening_socket, serving

IPV4, IPV6 = "127.0.0.1", "::1"


def reached(port: int) -> set[str]:
    """Which of the two families accept connections at a port."""
    results = set()
    for host in (IPV4, IPV6):
        with suppress(OSError), socket.create_connection((host, port), timeout=5):
            results.add(host)
    return results


def has_ipv6() -> bool:
    """Whether this machine has IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6) as trial:
        trial.bind((IPV6, 0))
        return True
    return False


without_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@without_ipv6
@pytest.mark.parametrize("address", sorted(ALL_ADDRESSES))
async def test_all_addresses_include_both_families(address: str) -> None:
    async with serving(health_app(Health()), address, 0) as port, aiohttp.ClientSession() as session:
        for host in (IPV4, f"[{IPV6}]"):
            assert (await session.get(f"http://{host}:{port}/healthz")).status == 200


@without_ipv6
@pytest.mark.parametrize("address", [IPV4, IPV6])
def test_a_single_address_is_the_only_one(address: str) -> None:
    with listening_socket(address, 0, 1) as listening:
        assert reached(listening.getsockname()[1]) == {address}


def test_a_host_without_ipv6_uses_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listening_socket("::", 0, 1) as listening:
        assert reached(listening.getsockname()[1]) == {IPV4}


@pytest.mark.parametrize("address", ["0.0.0.0", IPV4])
def test_a_taken_port_raises(address: str) -> None:
    with listening_socket(IPV4, 0, 1) as taken, pytest.raises(OSError, match="in use"):
        listening_socket(address, taken.getsockname()[1], 1)
