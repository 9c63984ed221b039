"""Messages between a service and a worker process: JSON, one object per line.

Does not import AI Configurator: the service never loads it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol

ReportProgress = Callable[[str, str], None]
"""Receives a job's progress: prefill or decode, and a sentence."""


class WorkerJob(Protocol):
    """A job for a worker process."""

    def job(self) -> dict[str, Any]:
        """The message: the job's fields, and its kind under `job`."""
        ...


class JobStatus(StrEnum):
    """The outcome of a job."""

    FEASIBLE = "found"
    INFEASIBLE = "infeasible"
    """engines fit, but none keeps the latencies"""
    TOO_SMALL = "too-small"
    """the model does not fit the GPUs"""
    UNSUPPORTED = "unsupported"
    """AI Configurator has no figures for this combination of model, GPU and engine"""
    BROKEN = "broken"
    """AI Configurator failed unexpectedly"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSweep:
    """A search over all engines of one backend in one way of serving; milliseconds and tokens."""

    model: str
    """name on Hugging Face that AI Configurator ships, or a folder with config.json"""
    system: str
    backend: str
    serving: str
    """disagg or agg"""
    total_gpus: int
    gpus_per_node: int
    isl: int
    osl: int
    ttft_ms: float
    itl_ms: float
    latency_ms: float | None
    autoscale: bool = False
    """choose the engines of each role independently"""
    relaxed: bool = False
    """return the closest points, also if they do not keep the latencies"""
    least: int = 1
    """number of engines of each role that must fit, if roles are chosen independently"""
    vram_mib: float | None = None
    """memory of one GPU if it is less than usual for this kind; None: the system's figure"""
    database: str = "SILICON"

    def job(self) -> dict[str, Any]:
        """The message as JSON values."""
        return {"job": "sweep", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """Times of prompts on one engine, and of tokens on another, over lengths and loads."""

    model: str
    system: str
    backend: str
    osl: int
    max_context: int
    """longest context, tokens"""
    prefill: dict[str, int]
    """tp, pp, dp, moe_tp, moe_ep"""
    decode: dict[str, int]
    prefill_points: int = 16
    decode_points: int = 6
    vram_mib: float | None = None
    """like in SimulationSweep"""
    database: str = "SILICON"

    def job(self) -> dict[str, Any]:
        """The message as JSON values."""
        return {"job": "curves", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """The result of a job: points, or arrays of curves by file."""

    outcome: JobStatus
    message: str = ""
    points: tuple[dict[str, Any], ...] = ()
    curves: dict[str, dict[str, list[float]]] | None = None
    seconds: float = 0.0

    def as_message(self) -> dict[str, Any]:
        """The message as JSON values."""
        return {"answer": asdict(self)}


def answer_from(data: dict[str, Any]) -> JobResult:
    """Parse an answer. Raises ValueError, TypeError or KeyError if it is invalid."""
    given = dict(data)
    return JobResult(outcome=JobStatus(given.pop("outcome")), points=tuple(given.pop("points", ())), **given)
