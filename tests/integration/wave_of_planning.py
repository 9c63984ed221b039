"""`make e2e-planning`: a graph with default planning under two periods of sine traffic, and an outage of Prometheus.

Takes ten minutes. `make test` runs a shorter test instead (test_planning.py). Prints a line every ten seconds.
"""

import time
from itertools import pairwise
from typing import Any

import pytest

from .platform import eventually
from .wave import riding, sine

pytestmark = pytest.mark.timeout(1200)

PERIOD = 240.0
LEAST, MOST = 1.0, 24.0
INTERVAL = 60
#: After the traffic stops, the minimum is reached within two intervals plus the scaler's pause between two steps down.
IDLE = 2 * INTERVAL + 60.0
#: In the second period, while the traffic rises.
OUTAGE = (PERIOD + 60.0, PERIOD + 100.0)


async def test_replicas_follow_a_sine_and_hold_in_an_outage(  # noqa: PLR0917 - fixtures
    control_plane, nats_server, kube, namespace, prometheus_program, tmp_path, capsys
):
    desired: dict[str, Any] = {"throughput_adjustment_interval_seconds": INTERVAL}
    async with riding(control_plane, nats_server, kube, namespace, prometheus_program, tmp_path, **desired) as ride:
        wave, frontend = ride
        await eventually(
            wave.planning, "planning has all its inputs", 60, where=lambda answer: answer.get("status") == "True"
        )
        rises = sine(LEAST, MOST, PERIOD)

        def rate(at: float) -> float:
            return rises(max(0.0, at)) if at < 2 * PERIOD else 0.0

        began = time.monotonic()
        offset = began - frontend._began
        frontend.rate = lambda at: rate(at - offset)
        observed: list[tuple[float, dict[str, int]]] = []
        is_away = False
        while (at := time.monotonic() - began) < 2 * PERIOD + IDLE:
            if not is_away and OUTAGE[0] <= at < OUTAGE[1]:
                await wave.prometheus.stop()
                is_away = True
            elif is_away and at >= OUTAGE[1]:
                await wave.prometheus.start()
                is_away = False
            (now,) = (await wave.watched(0.4))[-1:]
            observed.append((at, now))
            if len(observed) % 18 == 0:
                with capsys.disabled():
                    word = "Prometheus is away" if is_away else ""
                    print(
                        f"{at:5.0f} s  {rate(at):5.1f} requests/s  prefill {now['Prefill']}  decode {now['Decode']}  {word}"
                    )
        at_peak = [now for at, now in observed if abs(at - PERIOD / 2) < 30]
        assert max(each["Prefill"] for each in at_peak) >= 3
        assert max(each["Decode"] for each in at_peak) >= 4
        away = [now for at, now in observed if OUTAGE[0] + 15 < at < OUTAGE[1]]
        assert all(each == away[0] for each in away)
        assert observed[-1][1] == {"Prefill": 1, "Decode": 1}
        changes = sum(before != after for (_, before), (_, after) in pairwise(observed))
        with capsys.disabled():
            print(
                f"planning: sine {LEAST:g}-{MOST:g} requests/s, period {PERIOD:g} s: {changes} scaling events in two periods"
            )
