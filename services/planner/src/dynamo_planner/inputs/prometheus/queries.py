"""The PromQL of Dynamo's planner (planner.md, section a.3), and what shows whether its answers can be believed.

Prometheus is asked for one Dynamo namespace only: where many graphs share it, answers stay small. Which model a series
is of is checked by the caller, since its case may differ.
"""

import re
from dataclasses import dataclass

from dynamo_shared.api.contracts.planner import MetricsSource

from dynamo_planner.inputs.prometheus.scrapers import SCRAPER

LENGTHS = ("isl", "osl")
TIMES = ("ttft", "itl")
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
# Of a router that several jobs scrape, as in `once`.
_ONCE = f"max without ({', '.join(SCRAPER)})"


@dataclass(frozen=True, slots=True)
class Queries:
    """What to ask of one source about one graph, over `window` seconds."""

    source: MetricsSource
    namespace: str
    """Dynamo namespace of the graph"""
    kubernetes_namespace: str
    """the graph's; of series that have this label, those of other namespaces are left out: any pod can claim the other one"""
    window: float
    by_model: bool = False
    """whether the caller distinguishes models: means are of each, and not of all together"""
    disaggregated: bool = False
    """whether one router chooses workers for the prompts of requests and another one for their tokens: each counts a request"""

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the counters of requests, the better one first."""
        # Requests that ended are fewer than those that came, while load climbs. Older releases count nothing else.
        of = "component_router" if self.source is MetricsSource.ROUTER else "frontend"
        return (f"dynamo_{of}{_STARTED}", f"dynamo_{of}_requests_total")

    @staticmethod
    def counts_ended(counter: str) -> bool:
        """Whether one of `counters` counts requests when they end: of routers until Dynamo 1.5, and of old frontends."""
        return not counter.endswith(_STARTED)

    def requests(self, counter: str) -> str:
        """Requests that came within the window, a value for each series."""
        grown = f"increase({self.of(counter)}[{self._span}])"
        return f"max({_BY_ROUTER} ({_ONCE} ({grown})))" if self._counts_twice else grown

    def scraped(self, counter: str) -> str:
        """The samples themselves: when they were scraped explains what `increase` made of them."""
        return f"{self.of(counter)}[{self._span}]"

    def unlabelled(self, counter: str) -> str:
        """Series that say of no Dynamo namespace: reported when the graph's own has none."""
        return f'count({counter}{{{NAMESPACE}="",{self._wall}}})'

    def mean(self, signal: str) -> str:
        """The mean of a signal over all requests within the window, whichever frontend had them; NaN without any.

        The router of prompts reports one token of output.
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
        """The series of a metric, of all models, as they stand."""
        return f"{metric}{{{NAMESPACE}{self._named},{self._wall}}}"

    @property
    def _named(self) -> str:
        if self.source is not MetricsSource.ROUTER:
            return f"={_quoted(self.label_namespace)}"
        # A router of its own is in the graph's namespace. One within a frontend names that of the workers that it chooses, which
        # has the hash of their generation.
        return f"=~{_quoted(_literal(self.label_namespace) + _GENERATION)}"

    @property
    def _wall(self) -> str:
        # Prometheus sets `namespace` at each pod that it scrapes; scrape configs without it match, too.
        return f"namespace=~{_quoted('|' + _literal(self.kubernetes_namespace))}"

    @property
    def label_namespace(self) -> str:
        """The namespace as the source writes it."""
        # The runtime makes metric-safe names of what it labels itself; the frontend's label comes from a pod's.
        return self.namespace.replace("-", "_") if self.source is MetricsSource.ROUTER else self.namespace

    @property
    def _span(self) -> str:
        return f"{max(1, round(self.window))}s"


def _literal(text: str) -> str:
    return re.escape(text).replace("\\-", "-")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
