"""Results of a simulation: engines of certain sizes, and their expected figures together."""

from dataclasses import dataclass
from typing import Any

from dynamo_shared.api.engines.engine import EngineLayout

PREFILL, DECODE, WORKER = "prefill", "decode", "agg"

#: Share of its own rate that a pool keeps next to the other pool: prompts come in bursts, and batches are not always
#: full (planner.md, b.3).
PREFILL_SHARE, DECODE_SHARE = 0.90, 0.92


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Engines that serve together, and the number of each."""

    backend: str
    serving: str
    engines: dict[str, EngineLayout]
    """by role: prefill and decode, or agg"""
    replicas: dict[str, int]

    @property
    def gpus(self) -> int:
        """GPUs of all replicas together."""
        return sum(engine.gpus * self.replicas[role] for role, engine in self.engines.items())

    @property
    def words(self) -> str:
        """The engines as text for users: `4 x prefill tp2 + 1 x decode tp8`."""
        return " + ".join(f"{self.replicas[role]} x {role} {_words(engine)}" for role, engine in self.engines.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Point(Layout):
    """A layout with its expected figures, in milliseconds, tokens, requests and seconds."""

    ttft_ms: float
    itl_ms: float
    latency_ms: float
    concurrency: float | None = None
    requests_per_second: float | None = None
    tokens_per_second_per_gpu: float | None = None
    tokens_per_second_per_user: float | None = None


def _words(engine: EngineLayout) -> str:
    sizes = (
        ("tp", engine.tp),
        ("pp", engine.pp),
        ("dp", engine.dp),
        ("etp", engine.moe_tp),
        ("ep", engine.moe_ep),
    )
    return " ".join(f"{name}{size}" for name, size in sizes if size > 1) or "tp1"


def sizes(engine: EngineLayout) -> dict[str, int]:
    """The parallelism of an engine, as in PlannerConfigs and messages to worker processes."""
    return {"tp": engine.tp, "pp": engine.pp, "dp": engine.dp, "moe_tp": engine.moe_tp, "moe_ep": engine.moe_ep}


def point_from(data: dict[str, Any]) -> Point:
    """Parse a point from a worker process: the fields of Point, with the fields of EngineLayout in `engines`."""
    engines = {role: EngineLayout(**engine) for role, engine in data["engines"].items()}
    return Point(**{**data, "engines": engines})
