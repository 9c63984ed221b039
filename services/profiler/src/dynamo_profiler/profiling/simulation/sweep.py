"""A sweep by AI Configurator in a worker process. Only this module and `curves` call AI Configurator.

Builds tasks like AI Configurator's command line (0.12), so that the figures equal its tables.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from time import monotonic
from typing import Any

import aiconfigurator_core
import pandas
from aiconfigurator.sdk import common, perf_database
from aiconfigurator.sdk.errors import (
    InsufficientMemoryError,
    KVCacheCapacityError,
    NoFeasibleConfigError,
    is_expected_cli_error,
)
from aiconfigurator.sdk.predictor import AnalyticPredictor
from aiconfigurator.sdk.task_v2 import Task
from aiconfigurator.sdk.utils import HuggingFaceDownloadError
from dynamo_shared.api.engines.engine import EngineLayout

from dynamo_profiler.profiling.objective import AGG, NO_LIMIT_MS, split
from dynamo_profiler.profiling.points import DECODE, PREFILL, WORKER, Point
from dynamo_profiler.profiling.simulation.wire import Curves, JobResult, JobStatus, ReportProgress, SimulationSweep

_EVERY = 0.5
"""Interval between two reports of progress, seconds."""
_CONFIGURATIONS = Path(aiconfigurator_core.__file__).with_name("model_configs")
#: Columns about single operations: larger than all others together, and not needed.
_HEAVY = ["_per_ops_source", "_moe_comm_fallbacks"]


class _Reporting(AnalyticPredictor):  # type: ignore[misc]  # the library is untyped
    """Counts the tried configurations."""

    def __init__(self, title: str, report: ReportProgress) -> None:
        self._title = title
        self._report = report
        self._tried = 0
        self._last = ("", 0.0)

    def predict_agg_worker(self, **arguments: Any) -> Any:
        self._count(DECODE)
        return super().predict_agg_worker(**arguments)

    def predict_disagg_worker(self, **arguments: Any) -> Any:
        self._count(str(arguments["role"]))
        return super().predict_disagg_worker(**arguments)

    def _count(self, role: str) -> None:
        now = monotonic()
        if role != self._last[0] or now - self._last[1] >= _EVERY:
            self._last = (role, now)
            self._report(role, f"{self._title}: {self._tried} configurations tried")
        self._tried += 1


def admit(model: str) -> None:
    """Let AI Configurator use files that it ships: its list of names lacks some of these models, and it would download
    them.
    """
    name = f"{model.replace('/', '--')}_config.json"
    if model not in common.DefaultHFModels and (_CONFIGURATIONS / name).is_file():
        common.DefaultHFModels.add(model)


def sweep(job: SimulationSweep, report: ReportProgress) -> JobResult:
    """All points that keep the latencies, or with `relaxed` the closest ones; otherwise the reason for no points."""
    if job.backend not in perf_database.get_supported_databases().get(job.system, {}):
        return JobResult(outcome=JobStatus.UNSUPPORTED, message=f"no figures of {job.backend} on {job.system}")
    admit(job.model)
    # Engines across nodes only if none fits into one node: the figures assume the links within a node.
    answer = _sweep(job, report, within_node=True)
    if answer.outcome is JobStatus.TOO_SMALL and job.total_gpus > job.gpus_per_node:
        answer = _sweep(job, report, within_node=False)
    return answer


def _sweep(job: SimulationSweep, report: ReportProgress, *, within_node: bool) -> JobResult:
    try:
        task = _task(job, within_node=within_node)
        task.predictor = _Reporting(f"{job.backend} {job.serving}", report)
        database = task._load_database(job.system, job.backend, task.primary_backend_version)
        with memory_of(database, job.vram_mib):
            frame = _frame(task, job)
    except Exception as error:
        return _failed(error)
    rows = frame.drop(columns=_HEAVY, errors="ignore").to_dict("records") if frame is not None else []
    points = tuple(asdict(point) for row in rows if (point := _point(row, job)) is not None)
    if not points:
        return JobResult(outcome=JobStatus.INFEASIBLE, message="no configuration meets the latencies")
    return JobResult(outcome=JobStatus.FEASIBLE, points=points)


def _frame(task: Task, job: SimulationSweep) -> Any:
    frame = task.run(autoscale=_chooses_roles_separately(job))
    if not _chooses_roles_separately(job) or frame is None or frame.empty:
        return frame
    # The best engines of both roles may be too large together. So also choose the best that leave half of the GPUs to
    # the other role, as often as requested.
    for least in sorted({job.least, 1}, reverse=True):
        if frame["num_total_gpus"].min() * least > job.total_gpus:
            _limit_engines(task, job.total_gpus // least // 2)
            frame = pandas.concat([frame, *_smaller(task)])
            break
    return frame[frame["num_total_gpus"] <= job.total_gpus]


def _smaller(task: Task) -> list[Any]:
    try:
        return [task.run(autoscale=True)]
    except Exception as error:
        if _failed(error).outcome in (JobStatus.TOO_SMALL, JobStatus.INFEASIBLE):
            return []
        raise


@contextmanager
def memory_of(database: Any, vram_mib: float | None) -> Iterator[None]:
    """Set the memory of GPUs that have less than the system's figures assume, such as A100s with 40 GB."""
    gpu = database.system_spec["gpu"]
    before = gpu["mem_capacity"]
    if vram_mib is not None:
        gpu["mem_capacity"] = min(before, int(vram_mib * 1024 * 1024))
    try:
        yield
    finally:
        # The database stays in the process for other jobs.
        gpu["mem_capacity"] = before


def _chooses_roles_separately(job: SimulationSweep) -> bool:
    """Whether the engines of both roles are chosen independently. If none keeps a latency, AI Configurator returns the
    closest.
    """
    return job.serving != AGG and (job.autoscale or job.relaxed)


def _task(job: SimulationSweep, *, within_node: bool) -> Task:
    ttft, itl = job.ttft_ms, job.itl_ms
    latency = job.latency_ms
    alone = _chooses_roles_separately(job)
    if latency is not None and alone:
        # Roles that are chosen independently have one latency each.
        (ttft, itl), latency = split(latency, job.osl), None
    elif job.relaxed:
        ttft, itl, latency = NO_LIMIT_MS, NO_LIMIT_MS, None
    given: dict[str, Any] = {
        "serving_mode": job.serving,
        "isl": job.isl,
        # AI Configurator needs two tokens for a time between tokens.
        "osl": max(2, job.osl),
        "ttft": ttft,
        "tpot": itl,
        "request_latency": latency,
        "total_gpus": job.total_gpus,
        "database_mode": job.database,
        # If roles are chosen independently, AI Configurator's own grid of latencies would replace this one.
        "pareto_sweep": not alone,
    }
    if job.serving == AGG:
        task = Task(
            model_path=job.model,
            system_name=job.system,
            backend_name=job.backend,
            agg_cp_candidates=[1],
            **given,
        )
    else:
        task = disaggregated(job, **given)
        sizes = task.num_gpu_per_replica
        if sizes and job.total_gpus not in sizes:
            task.num_gpu_per_replica = sorted({*sizes, job.total_gpus})
    if within_node:
        for role in ("agg",) if job.serving == AGG else ("prefill", "decode"):
            _keep_within_node(task, role, job.gpus_per_node)
    return task


def disaggregated(job: SimulationSweep | Curves, **given: Any) -> Task:
    """Parameters that both roles share."""
    each = {"model_path": job.model, "system_name": job.system, "backend_name": job.backend}
    roles = {f"{role}_{name}": value for role in ("prefill", "decode") for name, value in each.items()}
    return Task(**roles, prefill_cp_candidates=[1], **given)


def _keep_within_node(task: Task, role: str, gpus_per_node: int) -> None:
    """Keep tensor-parallel ranks within a node; data-parallel and expert-parallel ranks may span nodes."""
    for name in ("tp", "moe_tp"):
        attribute = f"{role}_{name}_candidates"
        kept = [size for size in getattr(task, attribute) or [1] if size <= gpus_per_node]
        setattr(task, attribute, kept or [1])
    if not task.is_moe:
        attribute = f"{role}_num_gpu_candidates"
        setattr(task, attribute, [size for size in getattr(task, attribute) if size <= gpus_per_node] or [1])


def _limit_engines(task: Task, gpus: int) -> None:
    for role in ("prefill", "decode"):
        attribute = f"{role}_num_gpu_candidates"
        setattr(task, attribute, [size for size in getattr(task, attribute) if size <= gpus] or [1])


def _failed(error: BaseException) -> JobResult:
    """The result for an error of AI Configurator. It wraps causes, so its innermost own error counts."""
    for cause in _chain(error):
        if isinstance(cause, InsufficientMemoryError | KVCacheCapacityError):
            return JobResult(outcome=JobStatus.TOO_SMALL, message=str(cause))
        if isinstance(cause, NoFeasibleConfigError):
            return JobResult(outcome=JobStatus.INFEASIBLE, message=str(cause))
    expected = is_expected_cli_error(error) or isinstance(error, HuggingFaceDownloadError)
    outcome = JobStatus.UNSUPPORTED if expected else JobStatus.BROKEN
    return JobResult(outcome=outcome, message=f"{type(error).__name__}: {error}"[:1000])


def _chain(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _point(row: Mapping[str, Any], job: SimulationSweep) -> Point | None:
    if job.serving == AGG:
        engines = {WORKER: _engine(row, "", rate=row["seq/s"])}
        replicas = {WORKER: 1}
    else:
        engines = {
            PREFILL: _engine(row, "(p)", rate=row["(p)seq/s/worker"]),
            DECODE: _engine(row, "(d)", rate=row["(d)seq/s/worker"]),
        }
        replicas = {PREFILL: int(row["(p)workers"]), DECODE: int(row["(d)workers"])}
    gpus = sum(engine.gpus * replicas[role] for role, engine in engines.items())
    # AI Configurator rounds rates to hundredths, but not tokens. It counts two tokens for an answer of one token.
    rate = float(row["tokens/s/gpu"]) * gpus / max(2, job.osl)
    point = Point(
        backend=job.backend,
        serving=job.serving,
        engines=engines,
        replicas=replicas,
        ttft_ms=float(row["ttft"]),
        itl_ms=float(row["tpot"]),
        latency_ms=float(row["request_latency"]),
        concurrency=float(row["concurrency"]),
        requests_per_second=rate,
        tokens_per_second_per_gpu=rate * job.osl / gpus,
        tokens_per_second_per_user=float(row["tokens/s/user"]),
    )
    figures = (point.ttft_ms, point.itl_ms, point.latency_ms, point.tokens_per_second_per_gpu)
    return point if all(isfinite(figure) for figure in figures if figure is not None) else None


def _engine(row: Mapping[str, Any], prefix: str, *, rate: float) -> EngineLayout:
    def size(name: str) -> int:
        value = row.get(prefix + name)
        return int(value) if value and isfinite(value) and value > 0 else 1

    tp, pp, dp = size("tp"), size("pp"), size("dp")
    return EngineLayout(
        tp=tp,
        pp=pp,
        dp=dp,
        moe_tp=size("moe_tp"),
        moe_ep=size("moe_ep"),
        batch_size=size("bs"),
        eight_bit_cache=row.get(prefix + "kvcache") == "fp8",
        gpus=tp * pp * dp,
        requests_per_second=float(rate),
    )
