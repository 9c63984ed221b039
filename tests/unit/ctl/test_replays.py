"""Replays of the REST API count the GPUs of a graph as the planner does."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_ctl.simulations.replays import curves_of, replay
from dynamo_ctl.simulations.worker import replayed
from dynamo_dynadmin.api.simulation import NotSimulated, ReplayCase
from dynamo_dynadmin.api.traffic import TrafficStep
from dynamo_planner.replay.job import Replays
from dynamo_profiler.profiling.simulation.wire import JobStatus
from dynamo_shared.api.contracts.planner_interpolation import AicInterpolation
from dynamo_shared.api.device_claims import KnownClaims
from dynamo_shared.api.resources import CONFIG_MAPS, DYNAMO_GRAPH_DEPLOYMENTS, RESOURCE_CLAIM_TEMPLATES
from dynamo_shared.runtime.settings.planner import Rapid

from tests.building.objects import object_of, stored_object

REQUEST = {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 4}}
TEMPLATE = object_of(RESOURCE_CLAIM_TEMPLATES, "four", spec={"spec": {"devices": {"requests": [REQUEST]}}})
POD = {"containers": [{"name": "main"}], "resourceClaims": [{"name": "gpus", "resourceClaimTemplateName": "four"}]}
WORKER = {"name": "worker", "type": "worker", "podTemplate": {"spec": POD}}
CONFIG = {"mode": "agg", "optimization_target": "sla", "ttft_ms": 300, "itl_ms": 20}
PREFILL = {"prefill_isl": [100, 1000, 8000], "prefill_ttft": [11, 20, 90]}
DECODE = {
    "x_kv_usage": [0.01, 0.1, 0.1, 0.5],
    "y_context_length": [100, 100, 1000, 1000],
    "z_itl": [5, 6, 7, 8],
    "max_kv_tokens": [100_000],
}


def no_claim(_: str) -> None:
    return None


async def gpus(claims: KnownClaims | None) -> dict[str, int]:
    """GPUs of an engine, as the worker process gets them."""
    jobs: list[Replays] = []

    async def computed(job: Replays, _: object) -> Any:
        jobs.append(job)
        return SimpleNamespace(outcome=JobStatus.FEASIBLE, points=({}, {}), message="")

    def config_map(name: str, **data: Any) -> dict[str, Any]:
        return object_of(CONFIG_MAPS, name, data={f"{key}.json": json.dumps(value) for key, value in data.items()})

    case = ReplayCase(
        graph=stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "g", spec={"components": [WORKER]}),
        config_map=config_map("config", planner_config=CONFIG),
        profile_map=config_map("profile", prefill_raw_data=PREFILL, decode_raw_data=DECODE),
        pods=(),
        claims=claims,
        changes={"itl_ms": 40},
        steps=[TrafficStep(rate=1.0, seconds=60.0, isl=1000, osl=100)],
        replicas={},
        startup=30.0,
    )
    await replay(SimpleNamespace(computed=computed), Rapid(), case)  # type: ignore[arg-type]
    return jobs[0].gpus


async def test_gpus_of_claims_count() -> None:
    assert await gpus(KnownClaims({"four": TEMPLATE}.get, no_claim)) == {"decode": 4}
    assert await gpus(None) == {}, "the caller may not read claims"


async def test_a_graph_whose_claims_cannot_be_counted_is_not_replayed() -> None:
    with pytest.raises(NotSimulated, match="four does not exist"):
        await gpus(KnownClaims(no_claim, no_claim))


def test_engines_without_a_profile_are_simulated_by_their_configuration() -> None:
    sizes = {"hf_id": "Qwen/Qwen3-32B", "system": "h200_sxm", "backend": "vllm", "isl": 4000, "osl": 500}
    grid = {"sweep_max_context_length": 9000, "prefill_interpolation_granularity": 10**6}
    engines = AicInterpolation.model_validate({**sizes, **grid, "decode_pick": {"tp": 2}})
    made = curves_of(engines, "Qwen/Qwen3-32B", "SILICON")
    assert (made.system, made.decode["tp"], made.prefill["tp"], made.prefill_points) == ("h200_sxm", 2, 1, 32)


def job(rate: float) -> dict[str, object]:
    config = {"mode": "agg", "optimization_target": "sla", "ttft_ms": 300, "itl_ms": 20}
    made = Replays(
        configs=(config, {**config, "itl_ms": 40}),
        steps=((rate, 60.0, 1000, 100),),
        max_kv_tokens=100_000,
        startup=30.0,
        replicas={"decode": 1},
        gpus={"decode": 1},
        prefill=((1000.0, 80.0), (4000.0, 300.0)),
        decode=((1000.0, 1e4, 8.0), (1000.0, 1e5, 20.0)),
    ).job()
    assert made.pop("job") == "replays"
    return made


def test_a_replay_has_a_row_for_each_configuration() -> None:
    answer = replayed(job(1.0), lambda *_: None)
    assert answer.outcome is JobStatus.FEASIBLE
    assert [row["requests"] > 0 for row in answer.points] == [True, True]


def test_a_replay_without_requests_is_infeasible() -> None:
    answer = replayed(job(0.0), lambda *_: None)
    assert (answer.outcome, answer.message) == (JobStatus.INFEASIBLE, "no request arrived in this time")
