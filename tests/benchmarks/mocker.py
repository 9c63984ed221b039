"""Compares the simulator with the real Dynamo mocker: same profile, same arrivals, one engine for prefill and decode.

Usage: python -m tests.benchmarks.mocker [--load 12x60...] [--seconds S] [--slower F]

Everything is slowed by a factor, so that this machine's own work is small compared with the simulated work. It compares
the mean time of whole requests and the output tokens a second, over five loads: with one output token, the former is
the time to first token; with more, it includes the time between tokens. The mocker runs prompts and tokens one after
another, so the simulator does, too (`Graph.one_after_another`).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import aiohttp
import numpy as np
from dynamo_planner.core.observation import Pool
from dynamo_planner.core.profile import Profile
from dynamo_planner.profile_files import read_profile
from dynamo_planner.replay import traces
from dynamo_planner.replay.graph import Graph
from dynamo_planner.replay.measured_engine import MeasuredEngine
from dynamo_planner.replay.outcome import ReplayOutcome
from dynamo_planner.replay.simulator import simulate
from dynamo_planner.replay.traces import TraceRequest

from tests.benchmarks.estimator import PROFILES
from tests.dynamo_runtime.environment import RuntimeUnavailableError, obtain
from tests.dynamo_runtime.models import tiny_model
from tests.dynamo_runtime.processes import Runtime, file_planes

NAME = "h200-tp1"
ISL = 1000
LOADS = [(12.0, 1), (4.0, 60), (8.0, 60), (12.0, 60), (6.0, 200)]
"""Requests a second, and output tokens."""
GOAL = 0.03
REQUEST_LIMIT = 300.0


def profile_file(file: Path, profile: Profile) -> Path:
    """The profile in the mocker's arrays. The mocker takes the next grid point above, so the grid is fine."""
    truth = MeasuredEngine(profile)
    tokens = np.linspace(16, 16_384, 1024)
    kv, contexts = np.linspace(256, 128_000, 500), np.linspace(200, 2200, 101)
    np.savez(
        file,
        prefill_isl=tokens,
        prefill_ttft_ms=np.array([1000 * truth.prefill(float(n)) for n in tokens]),
        decode_active_kv_tokens=kv,
        decode_context_length=contexts,
        decode_itl=np.array([[1000 * truth.decode(max(1.0, k / c), max(k, c)) for c in contexts] for k in kv]),
    )
    return file


def simulated(requests: Sequence[TraceRequest], profile: Profile) -> ReplayOutcome:
    """The simulator's outcome."""
    one = Graph(
        disaggregated=False,
        replicas={Pool.DECODE: 1},
        gpus={Pool.DECODE: 1},
        max_num_seqs=256,
        max_kv_tokens=profile.max_kv_tokens or 0,
        one_after_another=True,
    )
    return simulate(requests, one, profile, None, name="simulator")


@dataclass(frozen=True)
class Served:
    """Figures of one load, in simulated time."""

    request: float
    """mean milliseconds of a whole request; with one output token that is the time to first token"""
    throughput: float
    """output tokens a second, from the first request to the last token"""

    @classmethod
    def of(cls, requests: Sequence[TraceRequest], times: Sequence[float]) -> Served:
        """Of requests with their seconds."""
        ends = max(request.at + took for request, took in zip(requests, times, strict=True))
        tokens = sum(request.osl for request in requests)
        return cls(1000 * float(np.mean(times)), tokens / (ends - requests[0].at))


async def measured(loads: Sequence[Sequence[TraceRequest]], profile: Profile, slower: float) -> list[Served]:
    """The mocker's outcome for loads, one after another."""
    environment = await obtain()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        model = await tiny_model(environment, folder / "model")
        runtime = Runtime(environment, model, file_planes(folder / "kv"), folder / "logs")
        data = profile_file(folder / "profile.npz", profile)
        worker = runtime.mocker(
            "mocker", "agg", "--planner-profile-data", str(data), "--speedup-ratio", str(1 / slower),
            "--num-gpu-blocks-override", str((profile.max_kv_tokens or 0) // 16), "--max-num-seqs", "256",
        )  # fmt: skip
        frontend = runtime.frontend()
        (folder / "logs").mkdir(exist_ok=True)
        try:
            await worker.start()
            await frontend.process.start()
            async with asyncio.timeout(REQUEST_LIMIT):
                while "tiny" not in await frontend.models():
                    await asyncio.sleep(0.2)
            base = f"http://127.0.0.1:{frontend.http.port}"
            async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=REQUEST_LIMIT)) as session:
                await _ask(session, base, "warm up " * 20, 4)
                random = Random(5)
                return [Served.of(load, await _send(session, base, load, slower, random)) for load in loads]
        finally:
            await frontend.process.stop()
            await worker.stop()


async def _send(
    session: aiohttp.ClientSession, base: str, requests: Sequence[TraceRequest], slower: float, random: Random
) -> list[float]:
    loop = asyncio.get_running_loop()
    start, asked = loop.time(), []
    async with asyncio.TaskGroup() as group:
        for request in requests:
            # A letter is a token of the tiny model; random ones are never cached.
            text = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=request.isl))
            await asyncio.sleep(max(0.0, start + request.at * slower - loop.time()))
            asked.append(group.create_task(_ask(session, base, text, request.osl)))
    return [task.result() / slower for task in asked]


async def _ask(session: aiohttp.ClientSession, base: str, text: str, tokens: int) -> float:
    """Seconds of a whole request."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    body = {"model": "tiny", "prompt": text, "max_tokens": tokens, "stream": True, "ignore_eos": True}
    async with session.post(f"{base}/v1/completions", json=body) as answer:
        if answer.status != 200:
            raise RuntimeError(f"the frontend answers {answer.status}: {await answer.text()}")
        async for _ in answer.content:
            pass
    return loop.time() - began


def main(arguments: Sequence[str]) -> int:
    """Print both and their difference, a line for each load; returns 1 if a difference is above the goal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", type=_load, nargs="*", default=LOADS, help="requests/s x output tokens, as 12x60")
    parser.add_argument("--seconds", type=float, default=12.0, help="of simulated time, each load")
    parser.add_argument("--slower", type=float, default=5.0)
    chosen = parser.parse_args(arguments)
    profile = read_profile([PROFILES / f"{NAME}-prefill.npz", PROFILES / f"{NAME}-decode.npz"])
    loads = [traces.constant(rate=rate, seconds=chosen.seconds, isl=ISL, osl=osl, seed=3) for rate, osl in chosen.load]
    try:
        result = asyncio.run(measured(loads, profile, chosen.slower))
    except RuntimeUnavailableError as error:
        print(error)
        return 2
    worst = 0.0
    for (rate, osl), requests, real in zip(chosen.load, loads, result, strict=True):
        jobs = simulated(requests, profile).jobs
        own = Served.of(requests, [(job.finished or 0.0) - job.request.at for job in jobs])
        request, throughput = own.request / real.request - 1, own.throughput / real.throughput - 1
        worst = max(worst, abs(request), abs(throughput))
        print(
            f"{rate:g} requests/s, ISL {ISL}, OSL {osl}, {len(requests)} requests, mocker / simulator: "
            f"{'time to first token' if osl == 1 else 'a request'} {real.request:.1f} / {own.request:.1f} ms "
            f"({100 * request:+.1f} %), {real.throughput:.0f} / {own.throughput:.0f} tokens/s ({100 * throughput:+.1f} %)",
            flush=True,
        )
    print(f"furthest apart {100 * worst:.1f} %; goal 3 %: {'met' if worst <= GOAL else 'missed'}")
    return 0 if worst <= GOAL else 1


def _load(text: str) -> tuple[float, int]:
    rate, _, osl = text.partition("x")
    return float(rate), int(osl)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
