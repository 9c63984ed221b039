"""Who we are to the API server, kept fresh.

kubernetes_asyncio's loaders read tokens, client certificates, exec plugins and auth providers; it renews them only in a
background loop and never after a refusal. Here renewal is part of a request: `refresh` before one that would carry an
expired token, and again when the server answers 401.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import structlog

from dynamo_shared.aio import ended

log = structlog.get_logger("dynamo.kube")

# An exec plugin may ask a cloud, but a control loop that cannot start must not wait longer.
LOGIN_TIMEOUT_SECONDS = 60.0
# In-cluster tokens are rotated by the kubelet; client-go reads them as often.
TOKEN_FILE_SECONDS = 60.0
# After a refusal of renewed credentials, do not run the plugin again for each request that fails.
FORCED_REFRESH_SECONDS = 10.0
# Tokens are renewed this long before they expire: time on the way, and clocks that differ.
EXPIRY_MARGIN_SECONDS = 60.0


class ConfigError(Exception):
    """The cluster's configuration cannot be used; the message says what to change."""


class LoadedConfiguration:
    """What the library's loaders set on what they take for a client Configuration."""

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
        """Value of the Authorization header, or None (client certificate, anonymous)."""
        token = self.api_key.get("BearerToken")
        return token.strip() if token else None


class Credentials:
    """How requests are authorised.

    By itself: a token of the kubeconfig, a password, a client certificate or nothing, which only a person can renew.
    """

    tls: ssl.SSLContext | None = None
    """has the client certificate of the last renewal; None: the connection's own has it"""

    def __init__(self, authorization: str | None) -> None:
        self.authorization = authorization

    def stale(self) -> bool:
        """Whether `refresh` must run before the next request. Called for each request: cheap, no I/O."""
        return False

    async def refresh(self, *, force: bool = False) -> bool:  # noqa: ARG002 - there is nothing to renew from
        """Renew; `force` after a 401. True where something may have changed. Raises ConfigError."""
        return False

    async def close(self) -> None:
        """End what renews them."""


class TokenFile(Credentials):
    """A token that another program keeps fresh in a file: a pod's service account, or `tokenFile` of a user.

    With `authorities`, so is the file of certificate authorities next to it: a cluster may replace its own while we run.
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
        """Whether the files were read more than a minute ago."""
        return time.monotonic() - self._read_at >= TOKEN_FILE_SECONDS

    async def refresh(self, *, force: bool = False) -> bool:  # noqa: ARG002 - reading a file is always cheap
        """Read the files again; what cannot be read leaves the last token, or the last authorities, in use."""
        before = self.authorization, self.tls
        try:
            self._read()
            self._trust()
        except (ConfigError, OSError) as error:
            log.warning("cannot read the credentials again; the last ones stay in use", error=str(error))
            self._read_at = time.monotonic()
        return (self.authorization, self.tls) != before

    def _trust(self) -> None:
        """Connections from now on trust the authorities of now; those that are open were verified."""
        if self._authorities is not None and (now := self._authorities.read_bytes()) != self._trusted:
            # ssl.SSLError is an OSError: half a file is read again in a minute.
            self.tls, self._trusted = self._new_tls(), now

    def _read(self) -> None:
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"cannot read the token {self._path}: {error.strerror}") from error
        if not token:
            raise ConfigError(f"the token file {self._path} is empty")
        self.authorization = f"Bearer {token}"
        self._read_at = time.monotonic()


# Logs in again: (Authorization header or None, expiry in seconds since the epoch or None, TLS context with a new client
# certificate or None).
Login = Callable[[], Awaitable[tuple[str | None, float | None, ssl.SSLContext | None]]]


class LoginCredentials(Credentials):
    """Credentials that a login renews: an exec plugin (token or client certificate), an auth provider, or files.

    `login` runs the library's loader again. A new client certificate comes with a TLS context of its own: connections that
    are open keep the old one, which the API server refuses as soon as it ends, so they must not be used again.
    """

    def __init__(self, login: Login, authorization: str | None, expires_at: float | None) -> None:
        super().__init__(authorization)
        self._login = login
        self._running: asyncio.Task[None] | None = None
        self._forced_at = self._tried_at = float("-inf")
        self._failure = ""
        """why the last login failed; empty where it did not"""
        self._expires_at = expires_at

    def stale(self) -> bool:
        """Whether the token has run out, or does within a minute and was not asked for just now."""
        if self._expires_at is None or time.time() < self._expires_at - EXPIRY_MARGIN_SECONDS:
            return False
        return self._has_ended() or not self._tried_just_now()

    async def refresh(self, *, force: bool = False) -> bool:
        """Run the login, once however many requests wait for it; a forced or failed one at most every ten seconds.

        One that fails before the token has run out leaves that token in use.
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
            # A request may have less time than a login takes, which then goes on for those that come after it.
            await asyncio.wait((self._running,))
        if not self._failure:
            return True
        if force or self._has_ended():
            raise ConfigError(self._failure)
        return False

    async def close(self) -> None:
        """End a login that is under way."""
        if self._running is not None:
            await ended(self._running)

    async def _try(self, *, forced: bool) -> None:
        try:
            self.authorization, ends, self.tls = await self._login()
            # What has ended when it comes: the plugin or a clock is wrong. The server says which, not a login for each request.
            self._expires_at = None if ends is not None and time.time() >= ends else ends
            self._failure = ""
        except asyncio.CancelledError:
            self._failure = "the client was closed"
            raise
        except TimeoutError:
            self._failure = f"logging in to the cluster took more than {LOGIN_TIMEOUT_SECONDS:.0f} s"
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
