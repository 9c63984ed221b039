"""Profiles of ten models on four GPUs by AI Configurator: held-out data for the estimator, which was tuned on none of them.

Usage: python -m tests.benchmarks.generated_profiles; the estimator's benchmark creates missing profiles itself. AI
Configurator brings the tables, so no GPU is needed. Points are few and uneven, as a profiler's are; they are created
once a version.
"""

import json
import os
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from dynamo_planner.core.profile import Profile, ProfileError
from dynamo_planner.core.profile_arrays import from_json

BACKEND = "vllm"
GPUS = ("h100_sxm", "h200_sxm", "a100_sxm", "b200_sxm")
MODELS = {
    "Qwen/Qwen3-0.6B": 1,
    "Qwen/Qwen3-1.7B": 1,
    "Qwen/Qwen3-8B": 1,
    "meta-llama/Meta-Llama-3.1-8B": 1,
    "openai/gpt-oss-20b": 1,
    "Qwen/Qwen3-30B-A3B": 2,
    "Qwen/Qwen3-32B": 2,
    "mistralai/Mixtral-8x7B-v0.1": 4,
    "meta-llama/Meta-Llama-3.1-70B": 4,
    "XiaomiMiMo/MiMo-7B-Base": 1,
}
"""GPUs of one engine, by model: the fewest that hold the model and some KV cache on every GPU type."""
PREFILL_POINTS, DECODE_POINTS, MAX_CONTEXT = 12, 6, 16_384


def folder() -> Path:
    """The folder of the profiles, by AI Configurator's version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "dynamo-platform" / "generated-profiles" / version("aiconfigurator-core")


def profiles() -> Iterator[tuple[str, str, Profile | str]]:
    """Model, GPU and profile of each, or the reason why a profile is missing. Creates missing ones."""
    for model, gpus in MODELS.items():
        for gpu in GPUS:
            yield model, gpu, _profile(model, gpu, gpus)


def _profile(model: str, gpu: str, gpus: int) -> Profile | str:
    file = folder() / f"{model.replace('/', '--')}-{gpu}-tp{gpus}.json"
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".part").write_text(json.dumps(_measure(model, gpu, gpus)), encoding="utf-8")
        file.with_suffix(".part").rename(file)
    arrays = json.loads(file.read_text(encoding="utf-8"))
    if "missing" in arrays:
        return str(arrays["missing"])
    profile = Profile()
    for name, each in arrays.items():
        try:
            profile = profile.joined(from_json(json.dumps(each), name))
        except ProfileError as error:
            return str(error)
    return profile


def _measure(model: str, gpu: str, gpus: int) -> dict[str, object]:
    # AI Configurator takes seconds to import, so only if something is missing.
    from dynamo_profiler.profiling.simulation.curves import measure
    from dynamo_profiler.profiling.simulation.wire import Curves

    engine = {"tp": gpus, "pp": 1, "dp": 1, "moe_tp": gpus, "moe_ep": 1}
    answer = measure(
        Curves(
            model=model,
            system=gpu,
            backend=BACKEND,
            osl=300,
            max_context=MAX_CONTEXT,
            prefill=engine,
            decode=engine,
            prefill_points=PREFILL_POINTS,
            decode_points=DECODE_POINTS,
        ),
        lambda _role, _sentence: None,
    )
    return dict(answer.curves) if answer.curves else {"missing": answer.message}


if __name__ == "__main__":
    for name, on, made in profiles():
        print(
            f"{name} on {on}: {made if isinstance(made, str) else f'{len(made.prefill)} and {len(made.decode)} points'}"
        )
    sys.exit(0)
