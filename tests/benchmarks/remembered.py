"""Caches results of simulations on disk: a run is deterministic, so the same input and code give the same output."""

import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import dynamo_planner
import numpy as np
from dynamo_planner.replay.traces import TraceRequest

CODE = (
    *(
        f"replay/{name}.py"
        for name in ("engine", "graph", "history", "outcome", "pool", "comparison", "simulator", "measured_engine")
    ),
    "core/reference",
    "core/predictors.py",
    "core/limits.py",
    "core/observation.py",
    "core/decision.py",
    "core/profile.py",
    "core/scraped_traffic.py",
)
"""The planner's packages on which simulations and baselines depend. Reports and tables may change without a new run."""


def folder() -> Path:
    """The folder of the cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dynamo-platform" / "bench-plan"


def remembered(key: Sequence[object], compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The cached result of `compute` for this key, or a new one: plain data."""
    name = sha256(json.dumps([_code(), *map(str, key)]).encode()).hexdigest()[:32]
    file = folder() / f"{name}.json"
    if file.is_file():
        known: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return known
    result = compute()
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(result), encoding="utf-8")
    part.rename(file)
    return result


def digest(requests: Sequence[TraceRequest]) -> str:
    """A digest of a trace."""
    numbers = np.array([(request.at, request.isl, request.osl, len(request.blocks)) for request in requests])
    return sha256(numbers.tobytes()).hexdigest()


@cache
def _code() -> str:
    root, here = Path(dynamo_planner.__file__).parent, Path(__file__).parent
    files = [file for part in CODE for file in sorted((root / part).rglob("*.py")) or [root / part]]
    return sha256(b"".join(file.read_bytes() for file in (*files, here / "hpa.py", here / "splits.py"))).hexdigest()
