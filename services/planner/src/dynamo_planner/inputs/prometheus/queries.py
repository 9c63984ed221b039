"""The PromQL of Dynamo's planner (planner.md, section a.3), and the queries that show whether its answers are reliable.

Each query covers only one Dynamo namespace: if many graphs share a Prometheus, answers stay small. The caller checks
the model of a series, because its case may differ.
"""

import re
from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import MetricsSource

from dynamo_planner.inputs.prometheus.scrapers import SCRAPER

_MEANS = {
    "isl": "input_sequence_tokens",
    "osl": "output_sequence_tokens",
    "ttft": "time_to_first_token_seconds",
    "itl": "inter_token_latency_seconds",
}
NAMESPACE = "dynamo_namespace"
MODEL = "model"
_STARTED = "_requests_started_total"
_GENERATION = "(_[0-9a-f]{8})?"
_BY_ROUTER, _BY_MODEL = "sum by (dynamo_component)", f"sum by ({MODEL})"
# For a router that several jobs scrape, as in `once`.
_ONCE = f"max without ({', '.join(SCRAPER)})"


@dataclass(frozen=True, slots=True)
class Queries:
    """The queries to one source about one graph, over `window` seconds."""

    source: MetricsSource
    namespace: str
    """Dynamo namespace of the graph"""
    kubernetes_namespace: str
    """the graph's; series with this label and another namespace are excluded, because any pod can claim the Dynamo
    namespace
    """
    window: float
    by_model: bool = False
    """whether the caller distinguishes models: then means are per model, not over all"""
    disaggregated: bool = False
    """whether separate routers choose the prefill and the decode workers of a request: each router counts it"""

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the counters of requests, the better one first."""
        # While load climbs, fewer requests end than arrive. Older releases count only ended requests.
        of = "component_router" if self.source is MetricsSource.ROUTER else "frontend"
        return (f"dynamo_{of}{_STARTED}", f"dynamo_{of}_requests_total")

    @staticmethod
    def counts_ended(counter: str) -> bool:
        """Whether one of `counters` counts requests when they end: routers until Dynamo 1.5, and old frontends."""
        return not counter.endswith(_STARTED)

    def requests(self, counter: str) -> str:
        """Requests that arrived within the window, one value per series."""
        grown = f"increase({self.of(counter)}[{self._span}])"
        return f"max({_BY_ROUTER} ({_ONCE} ({grown})))" if self._counts_twice else grown

    def scraped(self, counter: str) -> str:
        """The samples themselves: their scrape times explain the result of `increase`."""
        return f"{self.of(counter)}[{self._span}]"

    def unlabelled(self, counter: str) -> str:
        """Series without a Dynamo namespace: reported if the graph's namespace has no series."""
        return f'count({counter}{{{NAMESPACE}="",{self._namespace_matcher}}})'

    def mean(self, signal: str) -> str:
        """The mean of a signal over all requests within the window, across all frontends; NaN without any.

        The prefill router reports one output token.
        """
        if self._counts_twice:
            return f"max({self._over_all(f'dynamo_component_router_{_MEANS[signal]}', _BY_ROUTER)})"
        if self.source is MetricsSource.ROUTER:
            return self._over_all(f"dynamo_component_router_{_MEANS[signal]}")
        return self._over_all(f"dynamo_frontend_{_MEANS[signal]}", _BY_MODEL if self.by_model else "sum")

    @property
    def _counts_twice(self) -> bool:
        return self.disaggregated and self.source is MetricsSource.ROUTER

    @property
    def kv_hit_rate(self) -> str | None:
        """The mean KV-cache hit rate; only the router reports it."""
        return self._over_all("dynamo_component_router_kv_hit_rate") if self.source is MetricsSource.ROUTER else None

    def _over_all(self, histogram: str, total: str = "sum") -> str:
        sums, counts = (f"{total} (increase({self.of(histogram + part)}[{self._span}]))" for part in ("_sum", "_count"))
        return f"{sums} / {counts}"

    def of(self, metric: str) -> str:
        """The raw series of a metric, of all models."""
        return f"{metric}{{{NAMESPACE}{self._named},{self._namespace_matcher}}}"

    @property
    def _named(self) -> str:
        if self.source is not MetricsSource.ROUTER:
            return f"={_quoted(self.label_namespace)}"
        # A standalone router has the graph's namespace. A router inside a frontend has the namespace of its workers,
        # which contains the hash of their generation.
        return f"=~{_quoted(_literal(self.label_namespace) + _GENERATION)}"

    @property
    def _namespace_matcher(self) -> str:
        # Prometheus sets `namespace` for each pod that it scrapes; series of scrape configs without it match, too.
        return f"namespace=~{_quoted('|' + _literal(self.kubernetes_namespace))}"

    @property
    def label_namespace(self) -> str:
        """The namespace in the spelling of the source."""
        # The runtime converts its own labels to metric-safe names; the frontend's label comes from a pod's label.
        return self.namespace.replace("-", "_") if self.source is MetricsSource.ROUTER else self.namespace

    @property
    def _span(self) -> str:
        return f"{max(1, round(self.window))}s"


def _literal(text: str) -> str:
    return re.escape(text).replace("\\-", "-")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
