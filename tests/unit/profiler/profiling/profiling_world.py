"""Requests, points and settings that tests of profiling begin with."""

import sys
from pathlib import Path
from typing import Any

from dynamo_profiler.profiling.objective import ServingObjective, objective_of
from dynamo_profiler.profiling.points import Layout, Point
from dynamo_profiler.profiling.results import ProfilingRequest
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec
from dynamo_shared.runtime.settings.planner import Planner, Rapid

FAKE = (sys.executable, str(Path(__file__).with_name("fake_simulator.py")))
"""A worker process whose answers depend on the model's name, without AI Configurator."""


def request(name: str = "qwen", **spec: Any) -> ProfilingRequest:
    """A request for Qwen3-32B on 16 H200s with vLLM, and what is changed of it."""
    given: dict[str, Any] = {
        "model": "Qwen/Qwen3-32B",
        "backend": "vllm",
        "image": "registry.example/ai-dynamo/dynamo-frontend:1.1.1",
        "hardware": {"gpuSku": "h200_sxm", "totalGpus": 16, "numGpusPerNode": 8},
    }
    return ProfilingRequest(
        name=name, namespace="default", spec=DynamoGraphDeploymentRequestSpec.model_validate({**given, **spec})
    )


def objective(**spec: Any) -> ServingObjective:
    return objective_of(request(**spec))


def settings(**rapid: Any) -> Planner:
    return Planner(rapid=Rapid(**{"processes": 2, "niceness": 0, **rapid}))


def agg(
    *, gpus: int = 1, ttft: float = 500, itl: float = 20, rate: float = 1.0, concurrency: float = 20, **more: Any
) -> Point:
    """One aggregated engine."""
    engine = EngineLayout(tp=gpus, batch_size=int(concurrency), gpus=gpus, requests_per_second=rate)
    return Point(
        backend=more.get("backend", "vllm"),
        serving="agg",
        engines={"agg": engine},
        replicas={"agg": 1},
        ttft_ms=ttft,
        itl_ms=itl,
        latency_ms=ttft + itl * 999,
        concurrency=concurrency,
        requests_per_second=rate,
        tokens_per_second_per_gpu=rate * 1000 / gpus,
        tokens_per_second_per_user=1000 / itl,
    )


def disagg(
    prefill: tuple[int, int, float], decode: tuple[int, int, float], *, ttft: float = 500, itl: float = 20
) -> Point:
    """Pools of engines: replicas, GPUs of one, requests a second of one."""
    rate = min(prefill[0] * prefill[2] * 0.9, decode[0] * decode[2] * 0.92)
    gpus = prefill[0] * prefill[1] + decode[0] * decode[1]
    return Point(
        backend="vllm",
        serving="disagg",
        engines={
            "prefill": EngineLayout(tp=prefill[1], batch_size=1, gpus=prefill[1], requests_per_second=prefill[2]),
            "decode": EngineLayout(tp=decode[1], batch_size=64, gpus=decode[1], requests_per_second=decode[2]),
        },
        replicas={"prefill": prefill[0], "decode": decode[0]},
        ttft_ms=ttft,
        itl_ms=itl,
        latency_ms=ttft + itl * 999,
        concurrency=64.0 * decode[0],
        requests_per_second=rate,
        tokens_per_second_per_gpu=rate * 1000 / gpus,
        tokens_per_second_per_user=1000 / itl,
    )


def layout(backend: str = "vllm", /, **engines: EngineLayout) -> Layout:
    """Engines by role, one replica each."""
    return Layout(
        backend=backend,
        serving="agg" if "agg" in engines else "disagg",
        engines=engines,
        replicas=dict.fromkeys(engines, 1),
    )
