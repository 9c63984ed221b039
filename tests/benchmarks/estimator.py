"""How well the estimator predicts held-out points of profiles, compared with the reference's least squares.

Usage: python -m tests.benchmarks.estimator [--measured] [FOLDER or FILE...]; a profile is NAME-prefill.npz with NAME-
decode.npz, or a folder as the profiler writes it. Without names: the available measured profiles, and those of ten
models on four GPUs by AI Configurator (a few minutes; --measured omits them). Models marked with * were used to choose
the kinds of fits; the others are held out.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from dynamo_planner.core.estimator.engine import EngineEstimator
from dynamo_planner.core.profile import DecodePoint, PrefillPoint, Profile
from dynamo_planner.profile_files import read_profile

from tests.benchmarks import generated_profiles

PROFILES = Path(__file__).resolve().parents[3] / "shared" / "planning" / "profiles"
GOALS = {"prefill": 0.04, "decode": 0.07}
"""Goals for the mean error of interior points, for each profile."""
USED = {
    "h200-llama-3.1-8b-fp8",
    "h200-tp1",
    "Qwen/Qwen3-0.6B",
    "Qwen/Qwen3-1.7B",
    "Qwen/Qwen3-8B",
    "meta-llama/Meta-Llama-3.1-8B",
}
"""Models that were used while the kinds of fits were chosen."""


@dataclass(frozen=True)
class Errors:
    """Relative errors at held-out points, one at a time."""

    interior: float
    """mean over points with others on both sides of them: by length, or by KV tokens at the same context"""
    everywhere: float
    worst: float


@dataclass(frozen=True)
class Comparison:
    """The errors of this project and of the reference, for one profile."""

    prefill: Errors
    prefill_baseline: Errors
    decode: Errors
    decode_baseline: Errors


def compare(profile: Profile) -> Comparison:
    """Hold out each point in turn, fit the others, and predict it."""
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
        _errors(_own_prefill(profile), ttft, between),
        _errors(_least_squares([lengths], ttft), ttft, between),
        _errors(_own_decode(profile), itl, inside),
        _errors(_least_squares([batch, kv], itl), itl, inside),
    )


def _own_prefill(profile: Profile) -> Callable[[int], float]:
    def predicted(out: int) -> float:
        rest: tuple[PrefillPoint, ...] = profile.prefill[:out] + profile.prefill[out + 1 :]
        engine = EngineEstimator(Profile(prefill=rest, decode=profile.decode[:1]))
        return engine.prefill_ms(profile.prefill[out].isl)

    return predicted


def _own_decode(profile: Profile) -> Callable[[int], float]:
    def predicted(out: int) -> float:
        rest: tuple[DecodePoint, ...] = profile.decode[:out] + profile.decode[out + 1 :]
        point = profile.decode[out]
        return EngineEstimator(Profile(decode=rest)).decode_ms(point.kv_tokens / point.context, point.context)

    return predicted


def _least_squares(columns: list[npt.NDArray[np.float64]], latency: npt.NDArray[np.float64]) -> Callable[[int], float]:
    """The reference's fit (planner.md, section a.4): a plane with an intercept, at least 1 microsecond."""
    matrix = np.column_stack([*columns, np.ones_like(latency)])

    def predicted(out: int) -> float:
        kept = np.arange(latency.size) != out
        plane = np.linalg.lstsq(matrix[kept], latency[kept], rcond=None)[0]
        return max(1e-3, float(matrix[out] @ plane))

    return predicted


def _errors(predicted: Callable[[int], float], truth: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_]) -> Errors:
    off = np.array([abs(predicted(i) / value - 1) for i, value in enumerate(truth)])
    return Errors(float(off[inside].mean()) if inside.any() else float("nan"), float(off.mean()), float(off.max()))


def profiles(paths: Sequence[Path]) -> dict[str, Profile]:
    """Profiles by name: pairs of files in a folder, folders of the profiler, or single files."""
    results: dict[str, list[Path]] = {}
    for path in paths or [PROFILES]:
        pairs = sorted(path.glob("*-prefill.npz")) if path.is_dir() else []
        for prefill in pairs:
            results[prefill.name.removesuffix("-prefill.npz")] = [
                prefill,
                prefill.with_name(prefill.name.replace("-prefill", "-decode")),
            ]
        if not pairs:
            results.setdefault(path.parent.name if path.is_file() else path.name, []).append(path)
    return {name: read_profile(files) for name, files in results.items()}


def main(arguments: Sequence[str]) -> int:
    """Print a line for each profile and a mean for each model; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", action="store_true", help="without the profiles by AI Configurator")
    parser.add_argument("paths", nargs="*", type=Path)
    chosen = parser.parse_args(arguments)
    if not chosen.paths and not PROFILES.is_dir() and chosen.measured:
        print(f"no measured profiles at {PROFILES}; name a folder of them")
        return 2
    print("leave-one-out errors in percent: mean of interior points / of all points / worst")
    print(f"{'profile':<44} {'part':<8} {'points':>6}  {'estimator':>20}  {'least squares (reference)':>26}")
    collected: dict[str, list[Comparison]] = {}
    for model, name, profile in _all(chosen.paths, measured=chosen.measured):
        if isinstance(profile, str):
            print(f"{name:<44} none: {profile[:120]}")
            continue
        collected.setdefault(model, []).append(_print_profile(name, profile.complete()))
    results = [each for models in collected.values() for each in models]
    print()
    for model, each in collected.items():
        print(f"{model + ('*' if model in USED else ''):<53} {len(each):>6}  {_means(each)}")
    print(f"{'all':<53} {len(results):>6}  {_means(results)}")
    return _goals(results)


def _all(paths: Sequence[Path], *, measured: bool) -> Iterator[tuple[str, str, Profile | str]]:
    """Model, name and profile of each, or why it is missing."""
    if paths or PROFILES.is_dir():
        yield from ((name, name, profile) for name, profile in profiles(paths).items())
    if not paths and not measured:
        yield from (
            (model, f"{model.partition('/')[2]} on {gpu}", made) for model, gpu, made in generated_profiles.profiles()
        )


def _print_profile(name: str, profile: Profile) -> Comparison:
    result = compare(profile)
    for part, points, own, theirs in (
        ("prefill", len(profile.prefill), result.prefill, result.prefill_baseline),
        ("decode", len(profile.decode), result.decode, result.decode_baseline),
    ):
        behind = "" if own.interior <= theirs.interior else "  behind"
        print(f"{name:<44} {part:<8} {points:>6}  {_percent(own):>20}  {_percent(theirs):>26}{behind}", flush=True)
    return result


def _means(results: Sequence[Comparison]) -> str:
    def mean(part: str) -> float:
        return 100 * float(np.mean([getattr(each, part).interior for each in results]))

    return (
        f"prefill {mean('prefill'):.1f} (least squares {mean('prefill_baseline'):.1f}), "
        f"decode {mean('decode'):.1f} (least squares {mean('decode_baseline'):.1f})"
    )


def _goals(results: Sequence[Comparison]) -> int:
    over = sum(each.prefill.interior >= GOALS["prefill"] for each in results)
    over += sum(each.decode.interior >= GOALS["decode"] for each in results)
    behind = sum(each.decode.interior > each.decode_baseline.interior for each in results)
    behind += sum(each.prefill.interior > each.prefill_baseline.interior for each in results)
    print(
        f"goals (interior), each profile: prefill < 4 %, decode < 7 %: {'met' if not over else f'{over} missed'}; "
        f"ahead of least squares: {'met' if not behind else f'{behind} behind'}"
    )
    return 1 if over or behind else 0


def _percent(errors: Errors) -> str:
    return " / ".join(f"{100 * value:.1f}" for value in (errors.interior, errors.everywhere, errors.worst))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
