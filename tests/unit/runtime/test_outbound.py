"""Host names from tenants are resolved once, and never lead to this host, a cloud's metadata or the platform."""

import asyncio
import socket
import threading
from typing import Any

import aiohttp
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from dynamo_shared.api.untrusted.addresses import may_be_called, parsed
from dynamo_shared.runtime import load_settings, outbound
from dynamo_shared.runtime.outbound import CheckedResolver, RefusedAddressError, check, connector, platform_hosts

from tests.building.waiting import turns


class Names(AbstractResolver):
    """Names and their addresses."""

    def __init__(self, **names: list[str]) -> None:
        self.names = names
        self.asked: list[str] = []

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        self.asked.append(host)
        if host not in self.names:
            raise OSError(f"{host} is not known")
        return [
            ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=0)
            for address in self.names[host]
        ]

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("address", ["10.0.0.7", "192.168.1.2", "8.8.8.8", "fd00::7", "2001:4860:4860::8888"])
def test_addresses_of_networks_may_be_called(address: str) -> None:
    result = parsed(address)
    assert result is not None
    assert may_be_called(result)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.9.9.9", "169.254.169.254", "0.0.0.0", "255.255.255.255", "224.0.0.1", "100.100.100.200"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "ff02::1", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1"),
        *("64:ff9b::7f00:1", "64:ff9b:1::a9fe:a9fe", "2002:7f00:1::", "2001:0:53aa:64c::1", "fd00:ec2::254"),
    ],
)
async def test_other_addresses_may_not_be_called(address: str) -> None:
    with pytest.raises(RefusedAddressError):
        check(address)
    with pytest.raises(RefusedAddressError):
        await CheckedResolver(names=Names(evil=["10.0.0.7", address])).resolve("evil", 9090)


async def test_a_name_of_a_server_of_the_platform_is_rejected() -> None:
    names = Names(nats=["10.0.0.4"], other=["10.0.0.4"], api=["10.0.0.1"], metrics=["10.0.0.9"])
    resolver = CheckedResolver(["nats", "10.0.0.1", "unknown"], names)
    for host in ("nats", "NATS.", "other", "api"):
        with pytest.raises(RefusedAddressError):
            await resolver.resolve(host, 9090)
    assert [each["host"] for each in await resolver.resolve("metrics", 9090)] == ["10.0.0.9"]
    # Resolved once, and then cached.
    assert names.asked.count("nats") == 1


async def test_a_server_of_the_platform_is_rejected_while_its_name_cannot_be_resolved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbound, "REMEMBERED", 0.0)
    names = Names(nats=["10.0.0.4"], other=["10.0.0.4"])
    resolver = CheckedResolver(["nats"], names)
    for _ in range(2):
        with pytest.raises(RefusedAddressError):
            await resolver.resolve("other", 9090)
        names.names.pop("nats", None)


async def test_nothing_is_called_before_the_platforms_own_addresses_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first lookup failed, and for a minute a tenant's name could lead to the platform's NATS."""
    names = Names(nats=["10.0.0.4"], other=["10.0.0.4"], metrics=["10.0.0.9"])
    resolver, answer = CheckedResolver(["nats", "kubernetes.default.svc"], names), names.resolve

    async def later(host: str, *arguments: Any) -> list[ResolveResult]:
        if host not in ("other", "metrics"):
            raise socket.gaierror(socket.EAI_AGAIN, "temporary failure")
        return await answer(host, *arguments)

    with monkeypatch.context() as broken:
        broken.setattr(names, "resolve", later)
        with pytest.raises(RefusedAddressError):
            await resolver.resolve("other", 9090)
    assert [each["host"] for each in await resolver.resolve("metrics", 9090)] == ["10.0.0.9"]
    with pytest.raises(RefusedAddressError):
        await resolver.resolve("other", 9090)


async def test_a_client_does_not_connect_to_a_rejected_address() -> None:
    async with aiohttp.ClientSession(connector=connector(1), trust_env=False) as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get("http://localhost:9/")


def test_hosts_of_the_platform_are_known() -> None:
    settings = load_settings(
        None,
        {
            "DYNAMO_PLATFORM__NATS__SERVERS": "nats://nats.dynamo.svc:4222",
            "DYNAMO_PLATFORM__ETCD__ENDPOINTS": "https://10.0.0.5:2379",
            "DYNAMO_INFRASTRUCTURE__ETCD_ADDRESS": "etcd.dynamo:2379",
        },
    )
    hosts = platform_hosts(settings, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"})
    assert {"nats.dynamo.svc", "10.0.0.5", "etcd.dynamo", "10.96.0.1", "kubernetes.default.svc"} <= hosts


async def test_unanswered_names_of_tenants_do_not_block_other_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop resolves two names at a time: NATS could not reconnect while such names are resolved. And names of one
    namespace do not block those of another.
    """
    answered, lookups = threading.Event(), socket.getaddrinfo

    def silent(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "tenant.example":
            answered.wait()
        return lookups("127.0.0.1" if host == "tenant.example" else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    waiting = [asyncio.create_task(CheckedResolver(lane="one").resolve("tenant.example", 9090)) for _ in range(8)]
    try:
        await turns()
        async with asyncio.timeout(60):
            assert await asyncio.get_running_loop().getaddrinfo("localhost", 4222)
            with pytest.raises(RefusedAddressError):
                await CheckedResolver(lane="other").resolve("localhost", 9090)
        assert not any(each.done() for each in waiting)
    finally:
        answered.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(each) for each in results} == {RefusedAddressError}, "they are checked all the same"
