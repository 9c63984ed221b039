"""Worker processes of dynadmin run the planner's replays in addition to the profiler's jobs."""

from dynamo_ctl.simulations.worker import replayed
from dynamo_planner.replay.job import Replays
from dynamo_profiler.profiling.simulation.wire import JobStatus


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
