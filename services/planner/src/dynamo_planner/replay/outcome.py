"""The outcome of a run: requests within their targets, GPU time, scaling events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan

from dynamo_planner.core.observation import Pool
from dynamo_planner.replay.engine import Job
from dynamo_planner.replay.graph import Graph


@dataclass(frozen=True, slots=True)
class Action:
    """A change of a pool's replicas."""

    at: float
    pool: Pool
    before: int
    after: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSample:
    """The graph at one moment."""

    at: float
    rate: float
    """requests a second that arrived since the last sample"""
    ready: dict[Pool, int]
    target: dict[Pool, int]
    gpus: int


@dataclass(frozen=True, kw_only=True)
class ReplayOutcome:
    """A run, and its figures."""

    name: str
    graph: Graph
    jobs: Sequence[Job]
    seconds: float
    """planned and counted time"""
    gpu_seconds: float
    actions: Sequence[Action] = ()
    samples: Sequence[GraphSample] = ()

    def attainment(self) -> float:
        """Share of requests within both targets; unfinished requests do not count as within."""
        kept = self.in_time()
        return sum(kept) / len(kept) if kept else nan

    def ttft_attainment(self) -> float:
        """Share of requests with the first token in time."""
        return self._share(self._in_ttft)

    def itl_attainment(self) -> float:
        """Share of requests with a mean time between tokens within the target."""
        return self._share(self._in_itl)

    def in_time(self) -> list[bool]:
        """Whether each request is within both targets, in order of arrival."""
        return [self._in_ttft(job) and self._in_itl(job) for job in self.jobs]

    @property
    def gpu_hours(self) -> float:
        """GPU time, including replicas that start or drain."""
        return self.gpu_seconds / 3600

    @property
    def events(self) -> int:
        """Scaling decisions that changed anything; a change of both pools is one decision."""
        return len({action.at for action in self.actions})

    def ttft(self, share: float) -> float:
        """Quantile of the time to first token, ms; NaN without any."""
        return _quantile([job.ttft for job in self.jobs], share)

    def itl(self, share: float) -> float:
        """Quantile of requests' mean time between tokens, ms; NaN without any."""
        return _quantile([job.itl for job in self.jobs], share)

    def mean_ttft(self) -> float:
        """Mean time to first token, ms, of requests that got one; NaN without any."""
        return _mean([job.ttft for job in self.jobs])

    def mean_itl(self) -> float:
        """Mean of requests' mean time between tokens, ms; NaN without any."""
        return _mean([job.itl for job in self.jobs])

    def _in_ttft(self, job: Job) -> bool:
        return job.ttft is not None and job.ttft <= self.graph.ttft

    def _in_itl(self, job: Job) -> bool:
        return job.itl is not None and job.itl <= self.graph.itl

    def _share(self, good: Callable[[Job], bool]) -> float:
        return sum(map(good, self.jobs)) / len(self.jobs) if self.jobs else nan


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return 1000 * sum(known) / len(known) if known else nan


def _quantile(values: Sequence[float | None], share: float) -> float:
    known = sorted(value for value in values if value is not None)
    return 1000 * known[min(len(known) - 1, int(share * len(known)))] if known else nan


HEADER = ("run", "within both", "TTFT", "ITL", "TTFT p50/p99 ms", "ITL p50/p99 ms", "GPU-hours", "scalings")


def row(outcome: ReplayOutcome) -> tuple[str, ...]:
    """One outcome's cells."""
    return (
        outcome.name,
        f"{100 * outcome.attainment():.1f} %",
        f"{100 * outcome.ttft_attainment():.1f} %",
        f"{100 * outcome.itl_attainment():.1f} %",
        f"{outcome.ttft(0.5):.0f} / {outcome.ttft(0.99):.0f}",
        f"{outcome.itl(0.5):.1f} / {outcome.itl(0.99):.1f}",
        f"{outcome.gpu_hours:.2f}",
        str(outcome.events),
    )


def table(outcomes: Sequence[ReplayOutcome]) -> list[str]:
    """Lines, with names left-aligned and figures right-aligned."""
    rows = [HEADER, *(row(outcome) for outcome in outcomes)]
    widths = [max(len(cells[i]) for cells in rows) for i in range(len(HEADER))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        for cells in rows
    ]
