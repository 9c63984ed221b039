"""Endpoints and keys that an OIDC issuer publishes, read over verified TLS and with a size limit."""

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, TypeVar
from urllib.parse import quote_plus, urlsplit

import aiohttp
import jwt
from dynamo_shared.api.untrusted.addresses import parsed
from dynamo_shared.runtime.outbound import read_at_most
from dynamo_shared.runtime.settings.dynadmin import Oidc

#: Issuers rotate keys over days. An unknown key id causes an immediate read, but at most one per `NOT_BEFORE`. Seconds.
VALID_FOR, NOT_BEFORE = 3600.0, 10.0
#: Limit of tokens that wait for keys: anyone can write a token with an unknown key id, and it waits if the issuer does
#: not answer.
WAITING = 32
ANSWER_WITHIN = 10.0
LARGEST_ANSWER = 1 << 20
#: Redirects are refused: another address does not speak for the issuer, and codes and secrets are only for the issuer.
_DIRECTLY: dict[str, Any] = {"allow_redirects": False}
_Keys = dict[str, Mapping[str, Any]]
T = TypeVar("T")


class Endpoints(NamedTuple):
    """URLs of an issuer."""

    authorization: str
    token: str
    keys: str


def unprotected(settings: Oidc) -> list[str]:
    """Settings that fetch keys from another machine without TLS: an attacker on the network could replace the keys and
    act as any user.
    """
    urls = {"issuer": settings.issuer, "jwksUri": settings.jwks_uri}
    return [name for name, url in urls.items() if urlsplit(url).scheme == "http" and not _is_here(url)]


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    address = parsed(host)
    return host == "localhost" if address is None else address.is_loopback


class IssuerRefused(Exception):
    """The issuer refuses a request; the message is its reason."""


class IssuerUnavailable(Exception):
    """The issuer does not answer, or its answer cannot be used; the message says why."""


class _Publication(Generic[T]):
    """A document of the issuer. One task at a time reads it, once an hour; more often if a caller needs newer content,
    but at most once every `NOT_BEFORE` seconds.
    """

    def __init__(self, read: Callable[[], Awaitable[T]], now: Callable[[], float]) -> None:
        self._read = read
        self._now = now
        self._last: T | None = None
        self._read_at = self._asked_at = float("-inf")
        self._failure: IssuerUnavailable | None = None
        """error of the last read, if it failed"""
        self._reading = asyncio.Lock()

    async def latest(self, suffices: Callable[[T], bool]) -> T | None:
        """The content of the last read; read again if the old content does not suffice. Raises IssuerUnavailable."""
        if not self.has(suffices):
            # Calls for which the content suffices do not wait for a read that others need: a caller chooses the key id.
            async with self._reading:
                if not self.has(suffices):
                    await self._ask()
        return self._last

    def has(self, suffices: Callable[[T], bool]) -> bool:
        """Whether the content suffices and is not too old."""
        return self._last is not None and self._now() - self._read_at <= VALID_FOR and suffices(self._last)

    async def _ask(self) -> None:
        """Read it, unless the last attempt was less than `NOT_BEFORE` seconds ago. Raises IssuerUnavailable."""
        if self._now() - self._asked_at > NOT_BEFORE:
            try:
                self._last, self._failure = await self._read(), None
                self._read_at = self._now()
            except IssuerUnavailable as error:
                self._failure = error
            self._asked_at = self._now()
        if self._failure is not None:
            raise self._failure


class Provider:
    """One issuer."""

    def __init__(self, settings: Oidc, now: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._keys = _Publication(self._read_keys, now)
        self._endpoints = _Publication(self._read_endpoints, now)
        self._waiting = 0

    async def key(self, identifier: str, algorithm: str) -> jwt.PyJWK | None:
        """The key of an id; without an id, the issuer's only key. None if the key is unknown. Raises IssuerUnavailable.

        `algorithm` is used if the issuer does not name the key's algorithm, which is optional (RFC 7517, 4.4). Raises
        PyJWTError if the key does not fit the algorithm.
        """

        def suffice(keys: _Keys) -> bool:
            return identifier in keys or (not identifier and len(keys) == 1)

        if self._waiting >= WAITING and not self._keys.has(suffice):
            raise IssuerUnavailable("many tokens wait for the issuer's keys; retry later")
        self._waiting += 1
        try:
            keys = await self._keys.latest(suffice) or {}
        finally:
            self._waiting -= 1
        only = next(iter(keys.values())) if not identifier and len(keys) == 1 else None
        published = only or keys.get(identifier)
        return jwt.PyJWK(dict(published), published.get("alg") or algorithm) if published is not None else None

    async def endpoints(self) -> Endpoints:
        """The endpoints in the issuer's discovery document. Raises IssuerUnavailable."""
        endpoints = await self._endpoints.latest(lambda _: True)
        assert endpoints is not None
        return endpoints

    async def _read_endpoints(self) -> Endpoints:
        issuer = self._settings.issuer
        async with self._session() as session:
            document = await _read(session.get(f"{issuer.rstrip('/')}/.well-known/openid-configuration", **_DIRECTLY))
        if document.get("issuer") != issuer:
            raise IssuerUnavailable("the issuer's discovery document names another issuer")
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        endpoints = Endpoints(*(str(document.get(name) or "") for name in names))
        if any(each and urlsplit(each).scheme not in self._schemes() for each in endpoints):
            raise IssuerUnavailable("an endpoint of the issuer is not served over https")
        return endpoints

    async def exchange(self, form: Mapping[str, str], secret: str) -> dict[str, Any]:
        """The answer of the token endpoint. Raises IssuerRefused and IssuerUnavailable."""
        endpoint = (await self.endpoints()).token
        # RFC 6749, 2.3.1: client id and secret are form-encoded before they become Basic credentials.
        client, password = quote_plus(form["client_id"]), quote_plus(secret)
        credentials = aiohttp.encode_basic_auth(client, password) if secret else ""
        headers = {"Accept": "application/json", **({"Authorization": credentials} if credentials else {})}
        async with self._session() as session:
            return await _read(session.post(endpoint, data=form, headers=headers, **_DIRECTLY), refusals=True)

    def _schemes(self) -> tuple[str, ...]:
        return ("https",) if urlsplit(self._settings.issuer).scheme == "https" else ("https", "http")

    async def _read_keys(self) -> _Keys:
        uri = self._settings.jwks_uri or (await self.endpoints()).keys
        async with self._session() as session:
            document = await _read(session.get(uri, **_DIRECTLY))
        try:
            usable = jwt.PyJWKSet.from_dict(document).keys
        except jwt.PyJWTError as error:
            raise IssuerUnavailable(f"the issuer's keys cannot be read: {error}") from error
        return {str(key.key_id or ""): key._jwk_data for key in usable if key.key_type != "oct"}

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[aiohttp.ClientSession]:
        tls: ssl.SSLContext | bool = True
        if (file := self._settings.ca_file) is not None:
            try:
                tls = await asyncio.to_thread(ssl.create_default_context, cafile=str(file))
            except OSError as error:
                raise IssuerUnavailable(f"{file}: {error}") from error
        async with aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN),
            connector=aiohttp.TCPConnector(ssl=tls),
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as session:
            yield session


async def _read(request: Any, *, refusals: bool = False) -> dict[str, Any]:
    try:
        async with request as response:
            content = await read_at_most(response, LARGEST_ANSWER)
            if content is None:
                raise ValueError("the answer is too large")
            if refusals and 400 <= response.status < 500:
                raise IssuerRefused(_reason(content))
            if response.status != 200:
                raise IssuerUnavailable(f"the issuer answers {response.status}")
        answer = json.loads(content)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, RecursionError) as error:
        why = str(error) or f"no answer within {ANSWER_WITHIN:g} s"
        raise IssuerUnavailable(f"the issuer cannot be read: {why}") from error
    if not isinstance(answer, dict):
        raise IssuerUnavailable("the issuer's answer is not a JSON object")
    return answer


def _reason(content: bytes) -> str:
    """The error fields of the token endpoint's answer; no other parts, because they may hold secrets."""
    try:
        answer = json.loads(content)
        return " ".join(str(answer[name])[:200] for name in ("error", "error_description") if name in answer)
    except (ValueError, TypeError, RecursionError):
        return ""
