"""Which Prometheus is queried for a graph, and with which identity.

The graph's owner writes the PlannerConfig; the platform's operator writes the settings. So the platform's token is sent
only to the platform's Prometheus, and a PlannerConfig cannot make the planner read files of its host: the files that it
names must be in a folder that the settings name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.runtime.outbound import RefusedAddressError, check
from dynamo_shared.runtime.settings.planner import Prometheus

from dynamo_planner.inputs.outcome import InputError

MAX_ANSWER = 4 << 20
"""Maximum bytes of one answer: a graph has few series; a larger answer comes from a wrong address."""

LONGEST_TIMEOUT = 60.0
"""Maximum seconds of one query, regardless of the PlannerConfig."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusOptions:
    """Address, identity and limits of the queries of one graph. Secrets never appear in a repr."""

    url: str
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """read before each query, so that rotation works; takes precedence over `token`"""
    verify: bool = True
    ca_file: Path | None = None
    extra_params: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float = 10.0
    """seconds"""
    max_answer: int = MAX_ANSWER
    named_by_tenant: bool = False
    """whether the address comes from a PlannerConfig: then only addresses that tenants may name are called"""
    forbidden: frozenset[str] = frozenset()
    """hosts of the platform itself, which such an address must not reach"""


def prometheus_options(
    config: PlannerConfig, settings: Prometheus, infrastructure_endpoint: str, forbidden: frozenset[str] = frozenset()
) -> PrometheusOptions:
    """The options for a graph; InputError if its PlannerConfig requests something that is not allowed.

    `forbidden`: hosts of the platform itself, which a PlannerConfig must not name.
    """
    platform_url = (settings.endpoint or infrastructure_endpoint).rstrip("/")
    named = (config.metric_pulling_prometheus_endpoint or "").rstrip("/")
    own = bool(named) and named != platform_url
    if own and not settings.own_endpoints:
        raise InputError(
            f"metric_pulling_prometheus_endpoint is {named}; remove it, because platform.planner.prometheus.ownEndpoints is false"
        )
    url = named or platform_url
    if not url:
        raise InputError(
            "no Prometheus is configured; set metric_pulling_prometheus_endpoint, or platform.planner.prometheus.endpoint"
        )
    verify = config.metric_pulling_prometheus_ssl_verify
    ca_file = _file(config.metric_pulling_prometheus_ca_bundle, "ca_bundle", settings.files_dir)
    token_file = _file(config.metric_pulling_prometheus_token_file, "token_file", settings.files_dir)
    token = config.metric_pulling_prometheus_token or ""
    extra = dict(config.metric_pulling_prometheus_extra_query_params or {})
    if not own:
        # A tenant must not change how the platform's Prometheus is queried, because the request has the platform's
        # token.
        extra = {**extra, **settings.extra_query_params}
        ca_file = settings.ca_file or ca_file
        verify = settings.verify or verify is True
        if not (token or token_file):
            token_file = settings.token_file
    return PrometheusOptions(
        url=_checked(url, forbidden) if own else _well_formed(url),
        token=token,
        token_file=token_file,
        # Without certificate verification, a man in the middle could read the token, so an unset field means
        # verification.
        verify=verify is not False,
        ca_file=ca_file,
        extra_params=extra,
        timeout=min(config.metric_pulling_prometheus_request_timeout_seconds, LONGEST_TIMEOUT),
        named_by_tenant=own,
        forbidden=forbidden,
    )


def _file(name: str | None, field_name: str, folder: Path | None) -> Path | None:
    if name is None:
        return None
    where = f"metric_pulling_prometheus_{field_name}"
    if folder is None:
        raise InputError(
            f"{where} names a file, which is not allowed while platform.planner.prometheus.filesDir is unset"
        )
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InputError(f"{where} is {name}; it must be in {folder} (platform.planner.prometheus.filesDir)")
    return path


def _checked(url: str, forbidden: frozenset[str]) -> str:
    """An address from a PlannerConfig. Host names are checked when they are resolved."""
    host = urlsplit(_well_formed(url)).hostname or ""
    try:
        check(host, forbidden)
    except RefusedAddressError as error:
        raise InputError(
            f"metric_pulling_prometheus_endpoint is {url[:200]}: {error}; set the address of a Prometheus"
        ) from error
    if host.rstrip(".") in forbidden:
        raise InputError(f"metric_pulling_prometheus_endpoint is {url[:200]}: this is a server of the platform itself")
    return url


def _well_formed(url: str) -> str:
    try:
        parts = urlsplit(url)
        right = parts.scheme in {"http", "https"} and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        right = False
    if not right or parts.query or parts.fragment:
        raise InputError(
            f"{url.rsplit('@', maxsplit=1)[-1]} is not a valid address of a Prometheus; write http://host:9090"
        )
    if "@" in parts.netloc:
        raise InputError("the address of Prometheus has a user name or password; use metric_pulling_prometheus_token")
    return url
