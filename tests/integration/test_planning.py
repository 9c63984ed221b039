"""Planning end to end: Prometheus, planner, scaler, adapters, pods, on a real API server with controllers and nodes."""

import pytest
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey

from .platform import eventually
from .wave import GRAPH, riding

pytestmark = pytest.mark.timeout(600)


QUICK = {"policy": "reference", "load_predictor": "constant", "throughput_adjustment_interval_seconds": 5}


async def test_replicas_follow_a_wave_and_stay_while_traffic_is_unknown(  # noqa: PLR0917 - fixtures
    control_plane, nats_server, kube, namespace, prometheus_program, tmp_path
):
    async with riding(control_plane, nats_server, kube, namespace, prometheus_program, tmp_path, **QUICK) as ride:
        wave, frontend = ride
        await eventually(
            wave.planning, "planning has all its inputs", 120, where=lambda answer: answer.get("status") == "True"
        )
        frontend.rate = lambda _: 22.0

        async def grown() -> bool:
            now = await wave.replicas()
            return now["Prefill"] >= 3 and now["Decode"] >= 4

        await eventually(grown, "replicas follow the traffic", 120)
        await wave.prometheus.stop()

        async def reported() -> bool:
            entry = await wave.planning()
            return (entry["status"], entry["reason"]) == ("False", "InputMissing") and "traffic" in entry["message"]

        await eventually(reported, "the condition says what is missing")
        # On a busy machine traffic may arrive in waves: then the scaler delays a step down.
        await eventually(wave.settled, "earlier scaling requests are done", 120)
        before = await wave.replicas()
        observed = await wave.watched(12)
        assert all(each["Prefill"] == before["Prefill"] and each["Decode"] == before["Decode"] for each in observed)
        await wave.prometheus.start()
        frontend.rate = lambda _: 1.0

        async def shrunk() -> bool:
            now = await wave.replicas()
            return now["Prefill"] == now["Decode"] == 1

        # The scaler waits for a minute between two steps down, and the first may be small.
        await eventually(shrunk, "replicas follow the traffic down again", 200)
        await kube.merge_patch(
            DYNAMO_GRAPH_DEPLOYMENTS,
            ObjectKey(namespace, GRAPH),
            {"metadata": {"annotations": {"nvidia.com/planner-config": None}}},
        )
        await eventually(wave.planning, "the planning condition is removed", where=lambda answer: answer == {})
