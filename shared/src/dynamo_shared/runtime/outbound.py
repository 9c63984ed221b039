"""Connections to servers that tenants name, which are not the platform's, and limits for reading their answers.

A name is resolved once, and connections go only to checked addresses.
"""

import asyncio
import os
import socket
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from dynamo_shared.aio import Offload, all_of
from dynamo_shared.api.untrusted.addresses import may_be_called, parsed
from dynamo_shared.runtime.settings import Settings

#: How long the addresses of the platform's own servers are cached. Seconds.
REMEMBERED = 60.0
_API_SERVER = ("kubernetes.default.svc", "kubernetes.default", "kubernetes.default.svc.cluster.local")


#: Names of tenants that are resolved at a time, in threads of their own and one of each namespace: the event loop resolves
#: two names at a time, and a name whose name servers do not answer takes half a minute, in which NATS could not be
#: reconnected.
LOOKUPS = 4
_THREADS = Offload(above=0, at_once=LOOKUPS)


class RefusedAddressError(OSError):
    """A name resolves to an address that must not be called for a tenant. The message names no address."""


class _OwnThreads:
    """The part of an event loop that `ThreadedResolver` uses."""

    def __init__(self, lane: str) -> None:
        self._lane = lane

    async def getaddrinfo(self, *arguments: Any, **options: Any) -> Any:
        return await _THREADS.run(1, partial(socket.getaddrinfo, *arguments, **options), self._lane)

    async def getnameinfo(self, *arguments: Any) -> Any:
        return await _THREADS.run(1, partial(socket.getnameinfo, *arguments), self._lane)


class CheckedResolver(AbstractResolver):
    """Resolves servers that tenants name. `forbidden`: names or addresses of own hosts. `lane`: the tenant's namespace."""

    def __init__(self, forbidden: Iterable[str] = (), names: AbstractResolver | None = None, *, lane: str = "") -> None:
        self._forbidden = frozenset(host.lower().rstrip(".") for host in forbidden if host)
        self._names = names or ThreadedResolver(cast("asyncio.AbstractEventLoop", _OwnThreads(lane)))
        self._known: dict[str, frozenset[str]] = {}
        self._known_at: float | None = None

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """All addresses of a name; RefusedAddressError if one of them must not be called."""
        if host.lower().rstrip(".") in self._forbidden:
            raise RefusedAddressError("the address is a server of the platform")
        resolved = await self._names.resolve(host, port, family)
        forbidden = await self._own()
        for each in resolved:
            check(each["host"], forbidden)
        return resolved

    async def close(self) -> None:
        """Close the resolver."""
        await self._names.close()

    async def _own(self) -> frozenset[str]:
        """Addresses of the platform's own servers that can be resolved."""
        if self._known_at is None or time.monotonic() - self._known_at >= REMEMBERED:
            await all_of(map(self._look_up, self._forbidden))
            self._known_at = time.monotonic()
        return frozenset().union(*self._known.values())

    async def _look_up(self, host: str) -> None:
        if (address := parsed(host)) is not None:
            self._known[host] = frozenset({str(address)})
            return
        # If it cannot be resolved now, it keeps its addresses: a failed lookup must not permit connections to it.
        try:
            resolved = await self._names.resolve(host, 0, socket.AF_UNSPEC)
            self._known[host] = frozenset(str(parsed(each["host"]) or each["host"]) for each in resolved)
        except OSError as error:
            # The names of the API server need not exist: in a cluster, a variable has its address.
            if error.errno == socket.EAI_AGAIN and host not in self._known and host not in _API_SERVER:
                raise RefusedAddressError("the addresses of the platform's servers are not known yet") from error


def check(host: str, forbidden: frozenset[str] = frozenset()) -> None:
    """RefusedAddressError if a literal address must not be called for a tenant; names pass."""
    address = parsed(host)
    if address is not None and (str(address) in forbidden or not may_be_called(address)):
        raise RefusedAddressError("the address is this host, a cloud metadata server, or a server of the platform")


def connector(limit: int, forbidden: Iterable[str] = (), *, lane: str = "") -> aiohttp.TCPConnector:
    """A connector to allowed addresses only. `check` the literal addresses in URLs. `lane`: the tenant's namespace."""
    # Without its own cache: the connected address is the one that was checked for this connection.
    return aiohttp.TCPConnector(
        limit=limit, keepalive_timeout=30, resolver=CheckedResolver(forbidden, lane=lane), use_dns_cache=False
    )


async def read_at_most(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The body of an answer; None if it has more than `limit` bytes."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            # Close instead of release: the rest is not read.
            response.close()
            return None
    return bytes(body)


def platform_hosts(settings: Settings, environ: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Hosts of the platform's servers: the API server, its own NATS and etcd, and the runtime's."""
    platform, infrastructure = settings.platform, settings.infrastructure
    runtime = (*platform.planner.runtime_nats.servers, infrastructure.nats_address, infrastructure.etcd_address)
    servers = (*platform.nats.servers, *platform.etcd.endpoints, *runtime)
    named = (urlsplit(each if "://" in each else f"//{each}").hostname for each in servers if each)
    return frozenset(
        {host.lower().rstrip(".") for host in named if host}
        | {environ.get("KUBERNETES_SERVICE_HOST", "").strip("[]").lower(), *_API_SERVER} - {""}
    )
