"""Credentials for the API server, kept valid.

kubernetes_asyncio's loaders read tokens, client certificates, exec plugins and auth providers. The library renews them
only in a background loop, and never after a refusal. Here renewal is part of a request: `refresh` runs before a request
with an expired token, and again if the server answers 401.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import structlog

from dynamo_shared.aio import ended

log = structlog.get_logger("dynamo.kube")

# An exec plugin may call a cloud, but a control loop that waits for it must not wait longer.
LOGIN_TIMEOUT_SECONDS = 60.0
# The kubelet rotates in-cluster tokens; client-go reads them at the same interval.
TOKEN_FILE_SECONDS = 60.0
# If renewed credentials are refused, the plugin does not run again for each failing request.
FORCED_REFRESH_SECONDS = 10.0
# Tokens are renewed this long before they expire, because of network latency and clock differences.
EXPIRY_MARGIN_SECONDS = 60.0


class ConfigError(Exception):
    """The cluster's configuration is unusable. The message says what to change."""


class LoadedConfiguration:
    """The attributes that the library's loaders set on a client Configuration."""

    def __init__(self) -> None:
        self.host = ""
        self.ssl_ca_cert: str | None = None
        self.cert_file: str | None = None
        self.key_file: str | None = None
        self.verify_ssl = True
        self.tls_server_name: str | None = None
        self.proxy: str | None = None
        self.api_key: dict[str, str] = {}
        self.refresh_api_key_hook: Any = None

    @property
    def authorization(self) -> str | None:
        """The value of the Authorization header, or None (client certificate, anonymous)."""
        token = self.api_key.get("BearerToken")
        return token.strip() if token else None


class Credentials:
    """The credentials of requests.

    This base class has a token of the kubeconfig, a password, a client certificate or nothing; only a person can renew
    these.
    """

    tls: ssl.SSLContext | None = None
    """has the client certificate of the last renewal; None: the connection's own context has it"""

    def __init__(self, authorization: str | None) -> None:
        self.authorization = authorization

    def stale(self) -> bool:
        """Whether `refresh` must run before the next request. Called for each request: cheap, without I/O."""
        return False

    async def refresh(self, *, force: bool = False) -> bool:  # noqa: ARG002 - there is nothing to renew from
        """Renew; `force` after a 401. Returns True if something may have changed. Raises ConfigError."""
        return False

    async def close(self) -> None:
        """End the renewal."""


class TokenFile(Credentials):
    """A token that another program renews in a file: a pod's service account, or `tokenFile` of a user.

    With `authorities`, also the file of certificate authorities next to it: a cluster may replace its authorities
    meanwhile.
    """

    def __init__(
        self, path: Path, authorities: Path | None = None, new_tls: Callable[[], ssl.SSLContext | None] = lambda: None
    ) -> None:
        super().__init__(None)
        self._path, self._authorities, self._new_tls = path, authorities, new_tls
        self._read_at = 0.0
        self._read()
        self._trusted = authorities.read_bytes() if authorities is not None else b""

    def stale(self) -> bool:
        """Whether the last read of the files is more than a minute ago."""
        return time.monotonic() - self._read_at >= TOKEN_FILE_SECONDS

    async def refresh(self, *, force: bool = False) -> bool:  # noqa: ARG002 - reading a file is always cheap
        """Read the files again. If one cannot be read, its last content stays in use."""
        before = self.authorization, self.tls
        try:
            self._read()
            self._trust()
        except (ConfigError, OSError) as error:
            log.warning("cannot reload credentials; the previous ones stay in use", error=str(error))
            self._read_at = time.monotonic()
        return (self.authorization, self.tls) != before

    def _trust(self) -> None:
        """Let new connections trust the current authorities. Open connections were already verified."""
        if self._authorities is not None and (now := self._authorities.read_bytes()) != self._trusted:
            # ssl.SSLError is an OSError: an incomplete file is read again in a minute.
            self.tls, self._trusted = self._new_tls(), now

    def _read(self) -> None:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"cannot read token file {self._path}: {error.strerror}") from error
        if not token:
            raise ConfigError(f"token file {self._path} is empty")
        self.authorization = f"Bearer {token}"
        self._read_at = time.monotonic()


# Logs in again. Returns the Authorization header or None, its expiry in seconds since the epoch or None, and a TLS
# context with a new client certificate or None.
Login = Callable[[], Awaitable[tuple[str | None, float | None, ssl.SSLContext | None]]]


class LoginCredentials(Credentials):
    """Credentials that a login renews: an exec plugin (token or client certificate), an auth provider, or files.

    `login` runs the library's loader again. A new client certificate needs a new TLS context. Open connections keep the
    old certificate, which the API server refuses when it expires, so they must not be used again.
    """

    def __init__(self, login: Login, authorization: str | None, expires_at: float | None) -> None:
        super().__init__(authorization)
        self._login = login
        self._running: asyncio.Task[None] | None = None
        self._forced_at = self._tried_at = float("-inf")
        self._failure = ""
        """why the last login failed; empty if it succeeded"""
        self._expires_at = expires_at

    def stale(self) -> bool:
        """Whether the token has expired, or expires within a minute and the last login is not recent."""
        if self._expires_at is None or time.time() < self._expires_at - EXPIRY_MARGIN_SECONDS:
            return False
        return self._has_ended() or not self._tried_just_now()

    async def refresh(self, *, force: bool = False) -> bool:
        """Run the login, once for all waiting requests. A forced or failed login is repeated at most every ten seconds.

        If a login fails before the token has expired, the token stays in use.
        """
        if self._running is None:
            if force:
                if time.monotonic() - self._forced_at < FORCED_REFRESH_SECONDS:
                    return False
            elif not self.stale():
                return False
            if force or not (self._failure and self._tried_just_now()):
                self._running = asyncio.create_task(self._try(forced=force), name="kube-login")
        if self._running is not None:
            # A request may have less time than a login takes. The login then continues for later requests.
            await asyncio.wait((self._running,))
        if not self._failure:
            return True
        if force or self._has_ended():
            raise ConfigError(self._failure)
        return False

    async def close(self) -> None:
        """End a running login."""
        if self._running is not None:
            await ended(self._running)

    async def _try(self, *, forced: bool) -> None:
        try:
            self.authorization, ends, self.tls = await self._login()
            # If the new token has already expired, the plugin or a clock is wrong. Use the token, so that the server
            # reports it, instead of a login for each request.
            self._expires_at = None if ends is not None and time.time() >= ends else ends
            self._failure = ""
        except asyncio.CancelledError:
            self._failure = "the client was closed"
            raise
        except TimeoutError:
            self._failure = f"login to the cluster took longer than {LOGIN_TIMEOUT_SECONDS:.0f} s"
        except Exception as error:
            self._failure = str(error) or type(error).__name__
        finally:
            self._running, self._tried_at = None, time.monotonic()
            if forced:
                self._forced_at = self._tried_at
        if self._failure:
            log.warning("cannot renew credentials", error=self._failure)

    def _tried_just_now(self) -> bool:
        return time.monotonic() - self._tried_at < FORCED_REFRESH_SECONDS

    def _has_ended(self) -> bool:
        return self._expires_at is not None and time.time() >= self._expires_at


@dataclass(frozen=True, slots=True)
class Identity:
    """The acting user, as the API server's authentication describes users."""

    user: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))

    def headers(self) -> Iterator[tuple[str, str]]:
        """The impersonation headers. A key of `extra` is percent-encoded, since header names allow few characters."""
        yield "Impersonate-User", self.user
        if self.uid:
            yield "Impersonate-Uid", self.uid
        for group in self.groups:
            yield "Impersonate-Group", group
        for key, values in self.extra.items():
            for value in values:
                yield f"Impersonate-Extra-{quote(key.lower(), safe='-._~')}", value
