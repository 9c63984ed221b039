"""Queries Prometheus: one query, limited in time and size; returns values, or an error with its reason."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple, Self, TypeVar

import aiohttp
import msgspec
from dynamo_shared.aio import Offload
from dynamo_shared.runtime import outbound

from dynamo_planner.core.observation import Missing
from dynamo_planner.inputs.prometheus.options import PrometheusOptions

CONNECTIONS = 4
"""Maximum concurrent connections to a Prometheus that a PlannerConfig names, for its graph."""
SHARED_CONNECTIONS = 32
"""Maximum concurrent connections to the platform's Prometheus, for all graphs of this process: by default, Prometheus
accepts 512 in total.
"""
TOKEN_BYTES = 64 << 10
MAX_SERIES = 10_000
"""Series of one answer: within the size limit, there could be thirty times as many empty ones."""
MAX_POINTS, MAX_SERIES_BYTES = 11_000, 512 << 10
"""Points and bytes of one series. Prometheus itself sends no more points for a range."""
_LARGE = Offload(above=64 << 10, at_once=2)
"""Reads large answers, which take half a second: a graph's owner names the server, which may send any answer."""
MAX_ERROR = 64 << 10
"""Bytes of an answer without values."""
T = TypeVar("T")
QUERY, QUERY_RANGE = "/api/v1/query", "/api/v1/query_range"
#: Label that says which of several combined queries a series answers.
ASKED = "dynamo_planner_asked"
#: `errorType` of Prometheus's API (web/api/v1).
_KINDS_OF_ERRORS = frozenset(
    {"timeout", "canceled", "execution", "bad_data", "internal", "unavailable", "not_found", "not_acceptable"}
)
#: Prefixes of warnings about the query itself (util/annotations); all other warnings mean that data is missing.
_ABOUT_QUERIES = ("PromQL warning", "PromQL info")


class PrometheusError(Exception):
    """There is no usable answer. `why` is its name; the message contains no secret and nothing from the server except
    the error type that Prometheus's API defines.
    """

    def __init__(self, message: str, why: Missing = Missing.UNREACHABLE) -> None:
        super().__init__(message)
        self.why = why


class SeriesValue(NamedTuple):
    """One series' value at the time of the query."""

    labels: Mapping[str, str]
    at: float
    """seconds since 1970, by Prometheus's clock"""
    value: float


class Track(NamedTuple):
    """Scrapes of one series: the times of its samples within a range, oldest first, seconds since 1970."""

    labels: Mapping[str, str]
    times: tuple[float, ...]


class SeriesValues(NamedTuple):
    """One series' values over time, oldest first: (seconds since 1970, value)."""

    labels: Mapping[str, str]
    points: tuple[tuple[float, float], ...]


class _Series(msgspec.Struct, gc=False):
    metric: dict[str, str]
    value: tuple[float, str] | None = None
    values: list[tuple[float, str]] | None = None


class _Data(msgspec.Struct, gc=False):
    resultType: str  # noqa: N815 - the API's name
    result: list[msgspec.Raw]
    """read one by one: other threads run only between two"""


class _QueryAnswer(msgspec.Struct, gc=False):
    status: str
    data: _Data | None = None
    errorType: str = ""  # noqa: N815 - the API's name
    error: str = ""
    warnings: list[str] | None = None


_decode = msgspec.json.Decoder(_QueryAnswer).decode
_decode_series = msgspec.json.Decoder(_Series).decode


class PrometheusConnections:
    """Connections to one Prometheus, and the TLS contexts that verify its certificate. Must be closed."""

    def __init__(self, connector: aiohttp.BaseConnector | None = None) -> None:
        """Without a connector: the connections to the platform's Prometheus, which all graphs share."""
        self.connector = connector or aiohttp.TCPConnector(limit=SHARED_CONNECTIONS, keepalive_timeout=30)
        self._tls: dict[tuple[bool, Path | None], ssl.SSLContext | bool] = {}
        """by the options: only connections with the same context are reused"""

    async def tls(self, options: PrometheusOptions) -> ssl.SSLContext | bool:
        """The TLS verification; PrometheusError if the CA certificates cannot be read."""
        if (known := self._tls.get(_checking(options))) is not None:
            return known
        made = await asyncio.to_thread(_tls, options)
        return self._tls.setdefault(_checking(options), made)

    def read_again(self, options: PrometheusOptions) -> None:
        """Certificates may have been renewed: the next query reads the CA certificates again."""
        self._tls.pop(_checking(options), None)

    async def close(self) -> None:
        """Close all connections."""
        await self.connector.close()


class PrometheusClient:
    """Queries one Prometheus for one graph."""

    def __init__(
        self,
        options: PrometheusOptions,
        session: aiohttp.ClientSession,
        connections: PrometheusConnections,
        lane: str = "",
    ) -> None:
        self._options = options
        self._lane = lane
        self._session = session
        self.connections = connections

    @classmethod
    @asynccontextmanager
    async def open(
        cls, options: PrometheusOptions, shared: PrometheusConnections | None = None, *, lane: str = ""
    ) -> AsyncIterator[Self]:
        """A client with the shared connections; with its own if there are none, or if a PlannerConfig names the
        Prometheus. `lane`: the graph's namespace; namespaces take turns at resolving names, and at reading
        large answers.
        """
        if options.named_by_tenant:
            connections = PrometheusConnections(outbound.connector(CONNECTIONS, options.forbidden, lane=lane))
        else:
            connections = shared or PrometheusConnections()
        session = aiohttp.ClientSession(
            connector=connections.connector,
            connector_owner=connections is not shared,
            cookie_jar=aiohttp.DummyCookieJar(),
            # A proxy from the environment would resolve names instead of this client's resolver.
            trust_env=False,
        )
        async with session:
            yield cls(options, session, connections, lane)

    @property
    def url(self) -> str:
        """The URL, without secrets."""
        return self._options.url

    async def query(self, promql: str) -> list[SeriesValue]:
        """The values of an instant query; empty if there is no series. PrometheusError if the query fails."""
        return await self._ask(QUERY, promql, {}, "vector", partial(_samples, url=self.url))

    async def query_all(self, asked: Mapping[str, str]) -> dict[str, list[SeriesValue]]:
        """The values of several instant queries by name: sent as one query, for one moment. PrometheusError as in
        `query`.
        """
        parts = (f'label_replace({promql}, "{ASKED}", "{name}", "", "")' for name, promql in asked.items())
        answers: dict[str, list[SeriesValue]] = {name: [] for name in asked}
        for each in await self.query(" or ".join(parts)):
            labels = dict(each.labels)
            if (name := labels.pop(ASKED, "")) not in answers:
                raise PrometheusError(
                    f"{self.url} returned a series that the query does not request; is it a Prometheus?"
                )
            answers[name].append(each._replace(labels=labels))
        return answers

    async def scrapes(self, selector: str, *, at: float) -> list[Track]:
        """The scrape times of the series of a range selector, `name{...}[180s]`. PrometheusError as in `query`.

        `at`: seconds since 1970, by Prometheus's clock.
        """
        return await self._ask(QUERY, selector, _moment(time=at), "matrix", _tracks)

    async def query_range(self, promql: str, *, since: float, until: float, step: float) -> list[SeriesValues]:
        """The values of a query every `step` seconds, including `until`. Times as in `scrapes`, PrometheusError as in
        `query`.
        """
        times = _moment(start=since, end=until, step=step)
        most = round((until - since) / step) + 1
        return await self._ask(QUERY_RANGE, promql, times, "matrix", partial(_values, url=self.url, most=most))

    async def _ask(
        self, path: str, promql: str, times: Mapping[str, str], kind: str, read: Callable[[Sequence[_Series]], T]
    ) -> T:
        try:
            async with asyncio.timeout(self._options.timeout):
                body = await self._get(path, promql, times)
        except TimeoutError as error:
            raise PrometheusError(f"{self.url} did not answer within {self._options.timeout:g} s") from error
        except (aiohttp.ClientError, OSError) as error:
            self.connections.read_again(self._options)
            raise PrometheusError(f"{self.url} cannot be queried: {_plain(error)}") from error
        return await self.offload(len(body), lambda: read(_series(body, kind, self.url)))

    async def offload(self, size: int, work: Callable[[], T]) -> T:
        """The result of work on an answer; in a thread if the answer has many bytes."""
        return await _LARGE.run(size, work, self._lane)

    async def _get(self, path: str, promql: str, times: Mapping[str, str]) -> bytes:
        headers = await self._identity()
        tls = await self.connections.tls(self._options)
        async with self._session.get(
            f"{self.url}{path}",
            params={
                **self._options.extra_params,
                "query": promql,
                "timeout": f"{self._options.timeout:g}s",
                **times,
            },
            headers=headers,
            ssl=tls,
            # A redirect could send the token to another host.
            allow_redirects=False,
        ) as answer:
            body = await outbound.read_at_most(answer, self._options.max_answer)
            if body is None:
                limit = self._options.max_answer >> 10
                raise PrometheusError(f"{self.url} sends more than {limit} KiB; is it a Prometheus?")
            if answer.status in {401, 403}:
                raise PrometheusError(f"{self.url} answers {answer.status}: set a token that may query it")
            if 300 <= answer.status < 400:
                raise PrometheusError(f"{self.url} redirects ({answer.status}); set the target address instead")
            if answer.status != 200:
                raise PrometheusError(f"{self.url} answers {answer.status}{_reason(body)}")
            return body

    async def _identity(self) -> dict[str, str]:
        token = self._options.token
        if self._options.token_file is not None and not token:
            try:
                token = await asyncio.to_thread(_read_token, self._options.token_file)
            except (OSError, UnicodeDecodeError) as error:
                raise PrometheusError(
                    f"token file {self._options.token_file} cannot be read: {_plain(error)}"
                ) from error
        if any(not 32 <= ord(letter) < 127 for letter in token):
            raise PrometheusError(
                "the token for Prometheus has a line break or another character that HTTP headers do not allow"
            )
        return {"Authorization": f"Bearer {token}"} if token else {}


def _series(body: bytes, kind: str, url: str) -> list[_Series]:
    try:
        answer = _decode(body)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PrometheusError(f"{url} sends an answer that is not in the format of Prometheus") from error
    if answer.status != "success" or answer.data is None:
        raise PrometheusError(f"{url} answers with an error{_kind_of(answer)}")
    if answer.data.resultType != kind:
        raise PrometheusError(f"{url} sends another type of result than {kind}")
    if any(not each.startswith(_ABOUT_QUERIES) for each in answer.warnings or ()):
        # A Thanos store is unavailable, or a remote read failed: the answer has less traffic than there is.
        raise PrometheusError(f"{url} warns that its answer is incomplete: are all of its stores up?")
    if len(answer.data.result) > MAX_SERIES:
        raise PrometheusError(f"{url} sends more than {MAX_SERIES} series, but a graph has few; is it a Prometheus?")
    return [_one_series(each, url) for each in answer.data.result]


def _one_series(raw: msgspec.Raw, url: str) -> _Series:
    if len(memoryview(raw)) <= MAX_SERIES_BYTES:
        try:
            series = _decode_series(raw)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise PrometheusError(f"{url} sends a series that is not in the format of Prometheus") from error
        if len(series.values or ()) <= MAX_POINTS:
            return series
    raise PrometheusError(f"{url} sends more than {MAX_POINTS} points of a series; is it a Prometheus?")


def _moment(**times: float) -> dict[str, str]:
    return {name: f"{time:.3f}" for name, time in times.items()}


def _samples(series: Sequence[_Series], url: str) -> list[SeriesValue]:
    samples = []
    for each in series:
        if each.value is None:
            raise PrometheusError(f"{url} sends a series without a value")
        at, value = each.value
        samples.append(SeriesValue(each.metric, at, _number(value, url)))
    return samples


def _tracks(series: Sequence[_Series]) -> list[Track]:
    return [Track(each.metric, tuple(time for time, _ in each.values or ())) for each in series]


def _values(series: Sequence[_Series], url: str, most: int) -> list[SeriesValues]:
    """Values over time; PrometheusError if there are more than `most` times, which then are not those of the query."""
    times = {at for each in series for at, _ in each.values or ()}
    if len(times) > most or any(len(each.values or ()) > most for each in series):
        raise PrometheusError(f"{url} sends more times than the query requests; is it a Prometheus?")
    return [
        SeriesValues(each.metric, tuple((at, _number(value, url)) for at, value in each.values or ()))
        for each in series
    ]


def _number(text: str, url: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise PrometheusError(f"{url} sends a value that is not a number", Missing.NOT_A_NUMBER) from error


def _reason(body: bytes) -> str:
    """The error type, if Prometheus sent the body."""
    try:
        return _kind_of(_decode(body[:MAX_ERROR]))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return ""


def _kind_of(answer: _QueryAnswer) -> str:
    """Only error types that the API defines, so that a condition never repeats arbitrary text of a server."""
    return f": {answer.errorType}" if answer.errorType in _KINDS_OF_ERRORS else ""


def _checking(options: PrometheusOptions) -> tuple[bool, Path | None]:
    return options.verify, options.ca_file


def _tls(options: PrometheusOptions) -> ssl.SSLContext | bool:
    if not options.url.startswith("https:"):
        return True
    if not options.verify:
        return False
    try:
        return ssl.create_default_context(cafile=options.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise PrometheusError(f"CA file {options.ca_file} cannot be used: {_plain(error)}") from error


def _read_token(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(TOKEN_BYTES).strip()


def _plain(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) and error.strerror else str(error)) or type(error).__name__
