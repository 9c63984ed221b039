"""What several requests ask for at the same time is simulated once, whatever comes of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from dynamo_profiler.metrics import ProfilingMetrics
from dynamo_profiler.profiling.cache import AnswerCache
from dynamo_profiler.profiling.simulated import Simulations
from dynamo_profiler.profiling.simulation.wire import JobResult, JobStatus
from dynamo_shared.runtime.settings.planner import Rapid
from prometheus_client import CollectorRegistry

from tests.building.waiting import until

from .test_simulation_pool import job

FEASIBLE = JobResult(outcome=JobStatus.FEASIBLE, points=({"tokens": 1},))
LATE = JobResult(outcome=JobStatus.BROKEN, message="no answer within 300 s: raise platform.planner.rapid.timeLimit")


class Computed(Simulations):
    """Computes what the test says, once it may."""

    def __init__(self, result: JobResult, metrics: ProfilingMetrics | None = None) -> None:
        super().__init__(Rapid(), metrics=metrics)
        self.result, self.computing = result, 0
        self.may_end = asyncio.Event()

    async def computed(self, job: Any, report: Any, namespace: str = "") -> JobResult:
        self.computing += 1
        await self.may_end.wait()
        return self.result


def asked(simulations: Simulations, count: int) -> list[asyncio.Task[JobResult]]:
    return [asyncio.create_task(simulations.answer(job(), "digest", lambda _role, _text: None)) for _ in range(count)]


@pytest.mark.parametrize(("result", "computed"), [(FEASIBLE, 1), (LATE, 2)])
async def test_a_failure_is_not_cached(result: JobResult, computed: int) -> None:
    simulations = Computed(result)
    simulations.may_end.set()
    for _ in range(2):
        await asyncio.gather(*asked(simulations, 1))
    assert simulations.computing == computed


async def test_waiting_requests_count_as_cached() -> None:
    registry = CollectorRegistry()
    simulations = Computed(FEASIBLE, ProfilingMetrics(registry))
    tasks = asked(simulations, 3)
    await until(lambda: simulations.computing)
    simulations.may_end.set()
    await asyncio.gather(*tasks)
    samples = {
        (each.name, each.labels["cached"]): each.value
        for family in registry.collect()
        for each in family.samples
        if "cached" in each.labels and each.name.endswith("_total")
    }
    assert sorted((cached, value) for (_, cached), value in samples.items()) == [("false", 1.0), ("true", 2.0)]


async def test_processes_with_the_same_id_do_not_write_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In containers that share a volume: the text of both was mixed."""
    parts: list[Path] = []
    write = Path.write_text

    def noted(path: Path, text: str) -> int:
        parts.append(path)
        return write(path, text)

    monkeypatch.setattr(Path, "write_text", noted)
    for _ in range(2):
        await AnswerCache(1, tmp_path).put("key", JobResult(outcome=JobStatus.INFEASIBLE))
    assert len(set(parts)) == 2
    assert await AnswerCache(1, tmp_path).get("key") is not None
