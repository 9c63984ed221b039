"""How well the estimator foretells points of measured profiles that it was not given, beside the reference's least squares.

Usage: python -m tests.benchmarks.estimator [FOLDER or FILE...]; a profile is NAME-prefill.npz with NAME-decode.npz, or a folder
as the profiler writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from dynamo_planner.profile_files import read_profile

PROFILES = Path(__file__).resolve().parents[3] / "shared" / "planning" / "profiles"
GOALS = {"prefill": 0.04, "decode": 0.07}


@dataclass(frozen=True)
class Errors:
    """Relative errors at points that were left out, one at a time."""

    interior: float
    """mean over points with others on both sides of them: by length, or by KV tokens at the same context"""
    everywhere: float
    worst: float


@dataclass(frozen=True)
class Comparison:
    """Ours and the reference's, of one profile."""

    prefill: Errors
    prefill_baseline: Errors
    decode: Errors
    decode_baseline: Errors


def compare(profile: Profile) -> Comparison:
    """Leave each point out in turn, fit the others, and ask for it."""
    lengths = np.array([point.isl for point in profile.prefill])
    between = (lengths > lengths.min()) & (lengths < lengths.max())
    ttft = np.array([point.ttft for point in profile.prefill])
    contexts = np.array([point.context for point in profile.decode])
    kv = np.array([point.kv_tokens for point in profile.decode])
    itl = np.array([point.itl for point in profile.decode])
    lines = [kv[contexts == context] for context in contexts]
    inside = np.array([line.min() < x < line.max() for line, x in zip(lines, kv, strict=True)])
    batch = np.array([point.batch for point in profile.decode])
    return Comparison(
        _errors(_ours_prefill(profile), ttft, between),
        _errors(_least_squares([lengths], ttft), ttft, between),
        _errors(_ours_decode(profile), itl, inside),
        _errors(_least_squares([batch, kv], itl), itl, inside),
    )


def _ours_prefill(profile: Profile) -> Callable[[int], float]:
    def foretold(out: int) -> float:
        rest: tuple[PrefillPoint, ...] = profile.prefill[:out] + profile.prefill[out + 1 :]
        engine = EngineEstimator(Profile(prefill=rest, decode=profile.decode[:1]))
        return engine.prefill_ms(profile.prefill[out].isl).value

    return foretold


def _ours_decode(profile: Profile) -> Callable[[int], float]:
    def foretold(out: int) -> float:
        rest: tuple[DecodePoint, ...] = profile.decode[:out] + profile.decode[out + 1 :]
        point = profile.decode[out]
        return EngineEstimator(Profile(decode=rest)).decode_ms(point.kv_tokens / point.context, point.context).value

    return foretold


def _least_squares(columns: list[npt.NDArray[np.float64]], latency: npt.NDArray[np.float64]) -> Callable[[int], float]:
    """What the reference fits (planner notes, section a.4): a plane with an intercept, not below 1 microsecond."""
    matrix = np.column_stack([*columns, np.ones_like(latency)])

    def foretold(out: int) -> float:
        kept = np.arange(latency.size) != out
        plane = np.linalg.lstsq(matrix[kept], latency[kept], rcond=None)[0]
        return max(1e-3, float(matrix[out] @ plane))

    return foretold


def _errors(foretold: Callable[[int], float], truth: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_]) -> Errors:
    off = np.array([abs(foretold(i) / value - 1) for i, value in enumerate(truth)])
    return Errors(float(off[inside].mean()) if inside.any() else float("nan"), float(off.mean()), float(off.max()))


def profiles(paths: Sequence[Path]) -> dict[str, Profile]:
    """Profiles by name: pairs of files in a folder, folders of the profiler, or single files."""
    found: dict[str, list[Path]] = {}
    for path in paths or [PROFILES]:
        pairs = sorted(path.glob("*-prefill.npz")) if path.is_dir() else []
        for prefill in pairs:
            found[prefill.name.removesuffix("-prefill.npz")] = [
                prefill,
                prefill.with_name(prefill.name.replace("-prefill", "-decode")),
            ]
        if not pairs:
            found.setdefault(path.parent.name if path.is_file() else path.name, []).append(path)
    return {name: read_profile(files) for name, files in found.items()}


def main(arguments: Sequence[str]) -> int:
    """Print the table; 1 where a goal is missed."""
    if not arguments and not PROFILES.is_dir():
        print(f"no measured profiles at {PROFILES}; name a folder of them")
        return 2
    print("leave-one-out errors in percent: mean of interior points / of all points / worst")
    print(f"{'profile':<26} {'part':<8} {'points':>6}  {'estimator':>20}  {'least squares (reference)':>26}")
    missed = 0
    for name, profile in profiles([Path(argument) for argument in arguments]).items():
        result = compare(profile.complete())
        for part, points, ours, theirs in (
            ("prefill", len(profile.prefill), result.prefill, result.prefill_baseline),
            ("decode", len(profile.decode), result.decode, result.decode_baseline),
        ):
            missed += not ours.interior < GOALS[part]
            print(f"{name:<26} {part:<8} {points:>6}  {_percent(ours):>20}  {_percent(theirs):>26}")
    print(f"goals (interior): prefill < 4 %, decode < 7 %: {'met' if not missed else f'{missed} missed'}")
    return 1 if missed else 0


def _percent(errors: Errors) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in (errors.interior, errors.everywhere, errors.worst))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
