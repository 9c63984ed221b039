"""What a service asks of a worker process, and what that answers: JSON, one object a line.

Nothing here imports AI Configurator: the service itself never loads it.
"""

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol


class WorkerJob(Protocol):
    """What a worker process can be asked for."""

    def job(self) -> dict[str, Any]:
        """As it is sent: its parts, and under `job` what kind it is."""
        ...


class JobStatus(StrEnum):
    """What came of a job."""

    FEASIBLE = "found"
    INFEASIBLE = "infeasible"
    """engines fit, and none keeps the times"""
    TOO_SMALL = "too-small"
    """the model does not fit the GPUs"""
    UNSUPPORTED = "unsupported"
    """AI Configurator has no figures for model, GPU and engine together"""
    BROKEN = "broken"
    """AI Configurator failed in a way that it should not"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSweep:
    """All engines of one backend, serving in one way; milliseconds and tokens."""

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
    """engines of each role are chosen alone"""
    relaxed: bool = False
    """times need not be kept: what comes closest"""
    least: int = 1
    """engines of each role that must fit, where they are chosen alone"""
    vram_mib: float | None = None
    """memory of one GPU where it is less than such GPUs have; None: as the system's figures say"""
    database: str = "SILICON"

    def job(self) -> dict[str, Any]:
        """As it is sent."""
        return {"job": "sweep", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """How long prompts take on one engine, and tokens on another, over lengths and loads."""

    model: str
    system: str
    backend: str
    osl: int
    max_context: int
    """longest context that is considered, tokens"""
    prefill: dict[str, int]
    """tp, pp, dp, moe_tp, moe_ep"""
    decode: dict[str, int]
    prefill_points: int = 16
    decode_points: int = 6
    vram_mib: float | None = None
    """as in Sweep"""
    database: str = "SILICON"

    def job(self) -> dict[str, Any]:
        """As it is sent."""
        return {"job": "curves", **asdict(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """What a job gave: points, or arrays of curves by file."""

    outcome: JobStatus
    message: str = ""
    points: tuple[dict[str, Any], ...] = ()
    curves: dict[str, dict[str, list[float]]] | None = None
    seconds: float = 0.0

    def as_message(self) -> dict[str, Any]:
        """As it is sent."""
        return {"answer": asdict(self)}


def answer_from(data: dict[str, Any]) -> JobResult:
    """An answer as it was sent; ValueError, TypeError or KeyError where it was not one of these."""
    given = dict(data)
    return JobResult(outcome=JobStatus(given.pop("outcome")), points=tuple(given.pop("points", ())), **given)
