"""The client of the LoRA management API of workers. It limits concurrency, duration, and size of responses.

Only URLs of workers from `models.workers` are called. Redirects, cookies, proxies of the environment and decompression
are disabled.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote

import aiohttp
from dynamo_shared.runtime.outbound import read_at_most
from yarl import URL

from dynamo_model_discovery.lora.adapter import Adapter
from dynamo_model_discovery.lora.responses import LoraError, complaint, is_published, is_refusal, names_in

PATHS = ("/v1/loras", "/loras")
"""Paths of the API: that of Dynamo's workers, and an older one that some workers have instead."""

MODELS = "/v1/models"
"""Path at which a worker without the API may list its models."""

METADATA = "/metadata"
"""Path at which a worker that registers in Kubernetes has its registration."""

#: Size limit of a response: 1,000 adapters take a tenth of it. Bytes.
RESPONSE_LIMIT = 1 << 20
#: Time limit to connect: an existing pod accepts within milliseconds. Seconds.
CONNECT_WITHIN = 3.0

#: Time limit of a listing, shorter than that of a load, because a healthy worker responds at once. Seconds.
PROBE_WITHIN = 5.0

#: Statuses that mean that a path or a method does not exist.
_ABSENT = frozenset({404, 405, 501})
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "dynamo-model-discovery"}

Observer = Callable[[str, str, float], None]
"""Called after each request with its operation, its outcome and its duration in seconds."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The loaded adapters that a worker reports, and the path of that list."""

    names: frozenset[str]
    path: str | None
    """path of the LoRA management API; None if the worker lists only its models"""


@dataclass(frozen=True, slots=True)
class _EngineResponse:
    status: int
    content: bytes

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def summary(self) -> str:
        text = complaint(self.content)
        return f"HTTP {self.status}: {text}" if text else f"HTTP {self.status}"


class WorkerApi:
    """The client of the LoRA management API. Enter it to open its connections. All requests raise LoraError."""

    def __init__(
        self, *, timeout: float, concurrency: int, proxy: str = "", observe: Observer = lambda *_: None
    ) -> None:
        self._timeout = timeout
        self._concurrency = concurrency
        self._proxy = proxy or None
        self._observe = observe
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._concurrency, keepalive_timeout=2.0),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            auto_decompress=False,
            trust_env=False,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def listing(self, url: str) -> Listing:
        """The loaded adapters, from the first path that the worker supports."""
        for path in (*PATHS, MODELS):
            answer = await self._request("probe", "GET", url + path)
            if answer.status in _ABSENT:
                continue
            if not answer.ok:
                raise LoraError(f"GET {path}: {answer.summary}")
            names = names_in(answer.content)
            if names is None:
                refused = is_refusal(answer.content)
                message = complaint(answer.content) if refused else "the answer is not a list of adapters"
                raise LoraError(f"GET {path}: {message}")
            return Listing(names, path if path in PATHS else None)
        raise LoraError(
            f"the worker serves none of {', '.join((*PATHS, MODELS))}: is DYN_LORA_ENABLED=true set on it?",
            outcome="absent",
        )

    async def publishes(self, url: str, name: str) -> bool | None:
        """Whether the worker has published an adapter for frontends; None if it does not respond now.

        True for a worker that does not register in Kubernetes, because it does not report this.
        """
        try:
            answer = await self._request("probe", "GET", url + METADATA)
        except LoraError:
            return None
        if answer.status >= 500:
            return None
        return not answer.ok or is_published(name, answer.content)

    async def load(self, url: str, path: str | None, adapter: Adapter) -> None:
        """Request to load an adapter; `path` is that of the worker's listing.

        The worker may respond before it has loaded the adapter: only a listing confirms it.
        """
        body = {"lora_name": adapter.name, "source": {"uri": adapter.uri}}
        answer, candidate = None, ""
        for candidate in (path,) if path else PATHS:
            answer = await self._request("load", "POST", url + candidate, body)
            if answer.status not in _ABSENT:
                break
        assert answer is not None
        if not answer.ok or is_refusal(answer.content):
            raise LoraError(f"POST {candidate}: {answer.summary}")

    async def unload(self, url: str, path: str | None, name: str) -> bool:
        """Request to unload an adapter; returns whether the worker confirms it. Otherwise only a listing shows whether the
        adapter is loaded.
        """
        segment = quote(name, safe="")
        for candidate in (path,) if path else PATHS:
            answer = await self._request("unload", "DELETE", f"{url}{candidate}/{segment}")
            if answer.status not in _ABSENT:
                return answer.ok and not is_refusal(answer.content)
        return False

    async def _request(
        self, operation: str, method: str, url: str, body: dict[str, Any] | None = None
    ) -> _EngineResponse:
        started = time.perf_counter()
        outcome = "ok"
        try:
            timeout = min(PROBE_WITHIN, self._timeout) if operation == "probe" else self._timeout
            answer = await self._exchange(method, url, body, timeout)
            if not answer.ok:
                outcome = f"http_{answer.status // 100}xx"
        except LoraError as error:
            outcome = error.outcome
            raise
        else:
            return answer
        finally:
            self._observe(operation, outcome, time.perf_counter() - started)

    async def _exchange(self, method: str, url: str, body: dict[str, Any] | None, timeout: float) -> _EngineResponse:
        if self._session is None:
            raise RuntimeError("not entered")
        # The path is already percent-encoded: yarl must neither decode `%2F` nor encode it again.
        target = URL(url, encoded=True)
        request = f"{method} {target.raw_path}"
        try:
            async with self._session.request(
                method,
                target,
                json=body,
                allow_redirects=False,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(CONNECT_WITHIN, timeout)),
            ) as response:
                if 300 <= response.status < 400:
                    message = f"{request}: HTTP {response.status}, redirects are not followed"
                    raise LoraError(message, outcome="redirect")
                content = await read_at_most(response, RESPONSE_LIMIT)
                if content is None:
                    message = f"{request}: the answer is longer than {RESPONSE_LIMIT} bytes"
                    raise LoraError(message, outcome="too_large")
                return _EngineResponse(response.status, content)
        except aiohttp.ConnectionTimeoutError:
            raise LoraError(
                f"{request}: no connection within {min(CONNECT_WITHIN, timeout):g} s", outcome="unreachable"
            ) from None
        except TimeoutError:
            raise LoraError(f"{request}: no answer within {timeout:g} s", outcome="timeout", unanswered=True) from None
        except aiohttp.ClientConnectorError as error:
            reason = error.os_error.strerror or type(error.os_error).__name__
            raise LoraError(f"{request}: cannot be reached: {reason}", outcome="unreachable") from None
        except (aiohttp.ClientError, ConnectionError, ValueError, asyncio.IncompleteReadError) as error:
            raise LoraError(
                f"{request}: the answer is incomplete ({type(error).__name__})", outcome="broken", unanswered=True
            ) from None
