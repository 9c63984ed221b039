"""The LoRA management API of workers over HTTP, with limits for requests, targets, duration and size of answers.

Only URLs of workers from `models.workers` are called. Redirects are refused, and proxies of the environment and cookies
are not used. At most a mebibyte of an answer is read, without decompression, and a request ends after its time-out.
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
"""Where workers offer it: Dynamo's own, and what some offer only."""

MODELS = "/v1/models"
"""Where a worker that lists no adapters may still list its models."""

METADATA = "/metadata"
"""Where a worker that registers in Kubernetes says what it has registered."""

#: Size limit of an answer: a thousand adapters take a tenth of it. Bytes.
ANSWER_LIMIT = 1 << 20
#: Time limit to connect: an existing pod accepts within milliseconds. Seconds.
CONNECT_WITHIN = 3.0

#: Time limit of a listing: a healthy worker answers at once, and a hanging one gets less time than a load. Seconds.
PROBE_WITHIN = 5.0

#: Statuses that mean that a path or a method does not exist.
_ABSENT = frozenset({404, 405, 501})
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "dynamo-model-discovery"}

Observer = Callable[[str, str, float], None]
"""Called after each request with what it was for, how it ended and its seconds."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The loaded adapters that a worker reports, and the path of that list."""

    names: frozenset[str]
    path: str | None
    """path of its LoRA management; None where only its models are listed"""


@dataclass(frozen=True, slots=True)
class _EngineAnswer:
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
        """The loaded adapters, from the first list that the worker supports."""
        for path in (*PATHS, MODELS):
            answer = await self._request("probe", "GET", url + path)
            if answer.status in _ABSENT:
                continue
            if not answer.ok:
                raise LoraError(f"GET {path}: {answer.summary}")
            names = names_in(answer.content)
            if names is None:
                summary = (
                    complaint(answer.content) if is_refusal(answer.content) else "the answer is not a list of adapters"
                )
                raise LoraError(f"GET {path}: {summary}")
            return Listing(names, path if path in PATHS else None)
        raise LoraError(
            f"the worker serves none of {', '.join((*PATHS, MODELS))}: is DYN_LORA_ENABLED=true set on it?",
            outcome="absent",
        )

    async def publishes(self, url: str, name: str) -> bool | None:
        """Whether frontends can know that the worker has an adapter; None if it does not answer now.

        A worker that does not register in Kubernetes does not report this: then only its list is known.
        """
        try:
            answer = await self._request("probe", "GET", url + METADATA)
        except LoraError:
            return None
        if answer.status >= 500:
            return None
        return not answer.ok or is_published(name, answer.content)

    async def load(self, url: str, path: str | None, adapter: Adapter) -> None:
        """Request an adapter; `path` is that of its listing. A 2xx is only a promise; the next listing confirms it."""
        body = {"lora_name": adapter.name, "source": {"uri": adapter.uri}}
        answer, asked = None, ""
        for asked in (path,) if path else PATHS:
            answer = await self._request("load", "POST", url + asked, body)
            if answer.status not in _ABSENT:
                break
        assert answer is not None
        if not answer.ok or is_refusal(answer.content):
            raise LoraError(f"POST {asked}: {answer.summary}")

    async def unload(self, url: str, path: str | None, name: str) -> bool:
        """Request to unload an adapter; False if the worker does not confirm it: then only its listing shows the
        result.
        """
        segment = quote(name, safe="")
        for asked in (path,) if path else PATHS:
            answer = await self._request("unload", "DELETE", f"{url}{asked}/{segment}")
            if answer.status not in _ABSENT:
                return answer.ok and not is_refusal(answer.content)
        return False

    async def _request(self, what: str, method: str, url: str, body: dict[str, Any] | None = None) -> _EngineAnswer:
        started = time.perf_counter()
        outcome = "ok"
        try:
            timeout = min(PROBE_WITHIN, self._timeout) if what == "probe" else self._timeout
            answer = await self._exchange(method, url, body, timeout)
            if not answer.ok:
                outcome = f"http_{answer.status // 100}xx"
        except LoraError as error:
            outcome = error.outcome
            raise
        else:
            return answer
        finally:
            self._observe(what, outcome, time.perf_counter() - started)

    async def _exchange(self, method: str, url: str, body: dict[str, Any] | None, timeout: float) -> _EngineAnswer:
        if self._session is None:
            raise RuntimeError("not entered")
        # The path is already escaped: a second escape would turn `%2F` into a slash or `%252F`.
        where = URL(url, encoded=True)
        asked = f"{method} {where.raw_path}"
        try:
            async with self._session.request(
                method,
                where,
                json=body,
                allow_redirects=False,
                proxy=self._proxy,
                timeout=aiohttp.ClientTimeout(total=timeout, sock_connect=min(CONNECT_WITHIN, timeout)),
            ) as response:
                if 300 <= response.status < 400:
                    raise LoraError(f"{asked}: HTTP {response.status}, redirects are not followed", outcome="redirect")
                content = await read_at_most(response, ANSWER_LIMIT)
                if content is None:
                    raise LoraError(f"{asked}: the answer is longer than {ANSWER_LIMIT} bytes", outcome="too_large")
                return _EngineAnswer(response.status, content)
        except aiohttp.ConnectionTimeoutError:
            raise LoraError(
                f"{asked}: no connection within {min(CONNECT_WITHIN, timeout):g} s", outcome="unreachable"
            ) from None
        except TimeoutError:
            raise LoraError(f"{asked}: no answer within {timeout:g} s", outcome="timeout", unanswered=True) from None
        except aiohttp.ClientConnectorError as error:
            summary = error.os_error.strerror or type(error.os_error).__name__
            raise LoraError(f"{asked}: cannot be reached: {summary}", outcome="unreachable") from None
        except (aiohttp.ClientError, ConnectionError, ValueError, asyncio.IncompleteReadError) as error:
            raise LoraError(
                f"{asked}: the answer is incomplete ({type(error).__name__})", outcome="broken", unanswered=True
            ) from None
