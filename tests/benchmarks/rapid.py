"""Rapid profiling with AI Configurator and its figures: `make bench-rapid`.

The profiler runs next to a health endpoint, as in the service; a separate process polls that while two requests are
profiled at once. `--long` adds DeepSeek-V3 on 32 GPUs, which takes a minute or two.
"""

import argparse
import asyncio
import json
import sys
from time import perf_counter
from typing import Any

from dynamo_profiler.profiling.rapid import RapidProfiler
from dynamo_profiler.profiling.results import ProfilingRequest, ProfilingResult
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec, ProfilingPhase
from dynamo_shared.runtime.endpoints import health_app, serving
from dynamo_shared.runtime.health import Health
from dynamo_shared.runtime.settings.planner import Planner

_MIB = 1024 * 1024
#: By name: the request, tokens a second of a GPU in the tables of AI Configurator's own command line, seconds allowed.
CASES: dict[str, tuple[dict[str, Any], float, float]] = {
    "Qwen3-32B vllm": (
        {
            "model": "Qwen/Qwen3-32B",
            "backend": "vllm",
            "hardware": {"gpuSku": "h200_sxm", "totalGpus": 16, "numGpusPerNode": 8},
            "sla": {"ttft": 600, "itl": 16.67},
        },
        697.8,
        40.0,
    ),
    "Llama-3.1-70B vllm": (
        {
            "model": "meta-llama/Llama-3.1-70B-Instruct",
            "backend": "vllm",
            "hardware": {"gpuSku": "h100_sxm", "totalGpus": 16, "numGpusPerNode": 8},
            "workload": {"isl": 4000, "osl": 500},
            "sla": {"ttft": 2000, "itl": 40},
        },
        225.9,
        40.0,
    ),
    "Qwen3-32B auto": (
        {
            "model": "Qwen/Qwen3-32B",
            "hardware": {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8},
            "workload": {"isl": 3000, "osl": 150},
            "sla": {"ttft": 500, "itl": 50},
        },
        332.3,
        60.0,
    ),
}
LONG: dict[str, tuple[dict[str, Any], float, float]] = {
    "DeepSeek-V3 sglang": (
        {
            "model": "deepseek-ai/DeepSeek-V3",
            "backend": "sglang",
            "hardware": {"gpuSku": "h200_sxm", "totalGpus": 32, "numGpusPerNode": 8},
            "sla": {"ttft": 2000, "itl": 50},
        },
        631.3,
        180.0,
    )
}
_PROBE = """
import sys, time, urllib.request
times = []
try:
    while True:
        started = time.perf_counter()
        urllib.request.urlopen(sys.argv[1], timeout=10).read()
        times.append((time.perf_counter() - started) * 1000)
        print(times[-1], flush=True)
        time.sleep(0.02)
except (KeyboardInterrupt, BrokenPipeError):
    pass
"""


async def main() -> int:
    """Prints one line a figure; returns 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="DeepSeek-V3 on 32 GPUs, too")
    cases = {**CASES, **(LONG if parser.parse_args().long else {})}
    settings = Planner()
    missed = 0
    for name, (spec, table, allowed) in cases.items():
        async with RapidProfiler(settings, "1.2.0") as profiler:
            first, seconds = await _profiled(profiler, spec)
            _, again = await _profiled(profiler, spec)
            peak = profiler.simulations.pool.peak / _MIB
        chosen = first.selected.figures
        rate = (chosen.tokens_per_second or 0.0) / spec["hardware"]["totalGpus"]
        off = rate / table - 1
        good = seconds <= allowed and abs(off) <= 0.02 and again <= 2 and peak <= settings.rapid.memory_mib
        missed += not good
        print(
            f"{name}: {seconds:.1f} s (goal {allowed:g}), again {again * 1000:.0f} ms (goal 2000), "
            f"{chosen.backend} {chosen.serving} {rate:.1f} tokens/s of a GPU ({off:+.1%} of the table), "
            f"worker at most {peak:.0f} MiB of {settings.rapid.memory_mib}{'' if good else '  MISSED'}",
            flush=True,
        )
    p50, p99, count = await _health(settings)
    missed += p99 >= 100
    print(f"/healthz while two are profiled: p50 {p50:.1f} ms, p99 {p99:.1f} ms of {count} (goal 100)")
    return 1 if missed else 0


async def _profiled(profiler: RapidProfiler, spec: dict[str, Any]) -> tuple[ProfilingResult, float]:
    started = perf_counter()
    request = ProfilingRequest(
        name="bench", namespace="default", spec=DynamoGraphDeploymentRequestSpec.model_validate(spec)
    )
    result = await profiler.run(request, _quiet)
    return result, perf_counter() - started


def _quiet(_phase: ProfilingPhase, _sentence: str) -> None:
    pass


async def _health(settings: Planner) -> tuple[float, float, int]:
    """Latency of /healthz in milliseconds, measured from outside while two requests are profiled."""
    async with RapidProfiler(settings, "1.2.0") as profiler, serving(health_app(Health()), "127.0.0.1", 0) as port:
        probe = await asyncio.create_subprocess_exec(
            sys.executable, "-c", _PROBE, f"http://127.0.0.1:{port}/healthz", stdout=asyncio.subprocess.PIPE
        )
        specs = [json.loads(json.dumps(CASES[name][0])) for name in ("Qwen3-32B vllm", "Qwen3-32B auto")]
        for number, spec in enumerate(specs):
            spec["sla"]["itl"] += number + 1
        await asyncio.gather(*(_profiled(profiler, spec) for spec in specs))
        probe.terminate()
        out, _ = await probe.communicate()
    times = sorted(float(line) for line in out.split())
    return times[len(times) // 2], times[int(len(times) * 0.99)], len(times)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
