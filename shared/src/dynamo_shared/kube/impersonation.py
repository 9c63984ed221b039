"""Acting with the rights of a user: RBAC and audit of the API server see the user, and this process behind it.

One object acts for one identity and never changes, so that requests of different users cannot mix.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from urllib.parse import quote

import aiohttp

from dynamo_shared.kube.transport import Outgoing, Requests, Transport, WarningObserver


@dataclass(frozen=True, slots=True)
class Identity:
    """Who acts, as the API server's authentication describes users."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def headers(self) -> Iterator[tuple[str, str]]:
        """The headers of impersonation. A key of `extra` is percent-encoded, since header names take few characters."""
        yield "Impersonate-User", self.user
        if self.uid:
            yield "Impersonate-Uid", self.uid
        for group in self.groups:
            yield "Impersonate-Group", group
        for key, values in self.extra.items():
            for value in values:
                yield f"Impersonate-Extra-{quote(key.lower(), safe='-._~')}", value


class ImpersonatingTransport:
    """Sends the requests of one user through the connections of a Transport."""

    def __init__(
        self, transport: Requests, identity: Identity, *, request: str, warned: WarningObserver | None = None
    ) -> None:
        if not identity.user:
            # Without the header the request would be made with the rights of this process.
            raise ValueError("an identity has a user name")
        if not isinstance(transport, Transport):
            raise TypeError("a client that acts for a user acts for no other")
        self._transport = transport
        # The API server takes an id that comes along for its audit events.
        self._headers = (*identity.headers(), ("Audit-ID", request))
        self._warned = warned

    @property
    def server(self) -> str:
        """URL of the API server, without a trailing slash."""
        return self._transport.server

    async def close(self) -> None:
        """Closes nothing: the connections are the transport's."""

    async def request(self, outgoing: Outgoing) -> bytes:
        """As Transport.request, with the user's rights."""
        return await self._transport.request(self._of_user(outgoing))

    def stream(self, outgoing: Outgoing, *, silence: float) -> AbstractAsyncContextManager[aiohttp.StreamReader]:
        """As Transport.stream, with the user's rights."""
        return self._transport.stream(self._of_user(outgoing), silence=silence)

    def _of_user(self, outgoing: Outgoing) -> Outgoing:
        return replace(outgoing, headers=(*outgoing.headers, *self._headers), warned=self._warned)
