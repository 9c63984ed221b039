"""`make chaos`: rounds of work while parts are broken; after each round, the objects must match the specs."""

import argparse
import asyncio
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import nats
import nats.errors
from dynamo_shared.aio import ended
from dynamo_shared.bus.streams import EVENTS
from dynamo_shared.leases.channel import EtcdOptions

from tests.building.tasks import in_background
from tests.stage.balancer import balanced
from tests.stage.cluster import CLUSTER, SERVICES, Stage, StageOptions, namespace, stage, until_ready

from . import audit, faults
from .claims import ClaimLog
from .work import NAMESPACE, Work, differences

#: Seconds of a round: work before a fault, and work after everything is back.
BEFORE, AFTER = 3.0, 4.0
CONVERGED_WITHIN = 120.0
#: Leases in this test expire before a stopped replica continues.
LEASE_TTL = "5s"


@dataclass(slots=True)
class Round:
    """The result of one round."""

    name: str
    problems: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    converged_after: float = 0.0
    seconds: float = 0.0
    done: int = 0


@dataclass(slots=True)
class Chaos:
    """What all rounds share."""

    up: Stage
    work: Work
    copies: faults.Copies
    claims: ClaimLog
    log: Path


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


async def one(number: int, chaos: Chaos) -> Round:
    """One round."""
    up, work, copies = chaos.up, chaos.work, chaos.copies
    kinds = list(faults.SERVERS)
    # With as many servers as services, each pass pairs them differently.
    turn = number // len(SERVICES)
    killed, stopped = SERVICES[number % len(SERVICES)], SERVICES[(number + 2 + turn) % len(SERVICES)]
    broken = kinds[(number + turn) % len(kinds)]
    round_ = Round(f"{killed} killed, {stopped} stopped, {broken}")
    began, done = time.monotonic(), work.done
    work.lived.clear()
    work.deleted.clear()
    written = _size(chaos.log)
    async with in_background(work.run()) as working:
        await asyncio.sleep(BEFORE)
        async with asyncio.TaskGroup() as breaking:
            breaking.create_task(faults.kill(up, killed, number % 2))
            breaking.create_task(faults.stop_for_a_while(up, stopped, (number + 1) % 2))
            breaking.create_task(_later(4.0, faults.SERVERS[broken](up, copies)))
        await asyncio.sleep(AFTER)
        work.stop()
        await working
    ended = time.monotonic()
    left = await _converged(up)
    round_.converged_after = time.monotonic() - ended
    round_.problems += left[:5]
    try:
        await until_ready(up.services, 60)
    except AssertionError as error:
        round_.problems.append(f"not ready: {str(error)[:500]}")
    for each in up.services:
        if each.process.pid is None:
            round_.problems.append(f"{each.id} ended: {each.process.log_tail(3)[-400:]}")
            await each.process.start()
    round_.problems += _audited(chaos.log, written, chaos.claims)[:5]
    if broken not in faults.LOSES_EVENTS:
        round_.lost = await _lost(up, work)
    round_.seconds, round_.done = time.monotonic() - began, work.done - done
    return round_


async def _later(after: float, act: Awaitable[None]) -> None:
    await asyncio.sleep(after)
    await act


async def _converged(up: Stage) -> list[str]:
    """What does not match the specs when time is up; empty as soon as everything matches."""
    deadline, left = time.monotonic() + CONVERGED_WITHIN, ["nothing was checked"]
    while time.monotonic() < deadline:
        left = await differences(up.admin)
        if not left:
            return []
        await asyncio.sleep(0.5)
    return left


def _audited(log: Path, offset: int, claims: ClaimLog) -> list[str]:
    with log.open() as file:
        file.seek(offset)
        result = audit.writes(file)
    held, known = claims.times()
    return [*audit.two_writers(result), *audit.late_writes(result, held, known)]


class _Event(msgspec.Struct):
    k8suid: str = ""


async def _lost(up: Stage, work: Work) -> list[str]:
    """Graphs of this round whose life cycle the stream lacks: existing ones were ready, deleted ones are gone.

    No watcher observed a graph that was created and deleted while both were away: its deletion is expected only if its
    creation was reported.
    """
    deadline = time.monotonic() + 20
    while True:
        reported = await _events(up)
        expected = {(uid, "ready"): name for uid, name in work.lived.items() if uid not in work.deleted}
        expected |= {(uid, "deleted"): name for uid, name in work.deleted.items() if (uid, "created") in reported}
        lost = [f"{event} of {name}" for (uid, event), name in expected.items() if (uid, event) not in reported]
        if not lost or time.monotonic() > deadline:
            return lost
        await asyncio.sleep(1)


async def _events(up: Stage) -> set[tuple[str, str]]:
    client = await nats.connect(up.nats.url, **up.credentials["integrator"])
    results: set[tuple[str, str]] = set()
    try:
        subscription = await client.jetstream().subscribe(
            f"dynamo.evt.v1.{CLUSTER}.{NAMESPACE}.dynamographdeployment.>", stream=EVENTS.name, ordered_consumer=True
        )
        with contextlib.suppress(nats.errors.TimeoutError):
            while True:
                message = await subscription.next_msg(timeout=1)
                event = msgspec.json.decode(message.data, type=_Event)
                results.add((event.k8suid, message.subject.rpartition(".")[2]))
    finally:
        await client.close()
    return results


async def main(rounds: int, seed: int, keep_logs: str) -> int:
    """Run all rounds; returns the exit code."""
    with tempfile.TemporaryDirectory(prefix="dynamo-chaos-") as folder:
        policy, log = Path(folder) / "policy.yaml", Path(folder) / "audit.log"
        policy.write_text(audit.POLICY)
        arguments = (
            f"--audit-policy-file={policy}",
            f"--audit-log-path={log}",
            "--audit-log-mode=blocking",
            "--audit-log-maxsize=1000",
        )
        async with balanced() as balancer:
            options = StageOptions(
                replicas=2,
                lease_ttl=LEASE_TTL,
                etcd_password=False,
                plane={"api_server_arguments": arguments},
                platform={"admission": {"url": balancer.url}},
                starting=balancer.take,
            )
            async with stage(options) as up:
                try:
                    return await _rounds(rounds, seed, up, Path(folder), log)
                finally:
                    if keep_logs:
                        for logs in (up.folder / "services", up.plane.directory / "logs"):
                            shutil.copytree(logs, keep_logs, dirs_exist_ok=True)


async def _rounds(rounds: int, seed: int, up: Stage, folder: Path, log: Path) -> int:
    await up.admin.create(namespace(NAMESPACE))
    claims = ClaimLog(EtcdOptions(endpoints=(up.etcd.url,)))
    reading = asyncio.create_task(claims.run())
    chaos = Chaos(up, Work(up.admin, random.Random(seed)), faults.Copies(folder), claims, log)
    results = []
    try:
        for number in range(rounds):
            results.append(round_ := await one(number, chaos))
            good = "converged" if not round_.problems else "NOT CONVERGED"
            print(
                f"round {number + 1}: {good} {round_.converged_after:.1f} s after the end of {round_.done} pieces of work, "
                f"lost {len(round_.lost)}: {round_.name} ({round_.seconds:.0f} s)",
                flush=True,
            )
            for problem in (*round_.problems, *(f"lost: {each}" for each in round_.lost[:5])):
                print(f"    {problem}", flush=True)
    finally:
        await ended(reading)
    converged = sum(not each.problems for each in results)
    lost = sum(len(each.lost) for each in results)
    print(f"chaos {converged}/{len(results)} converged, lost {lost}")
    return 0 if converged == len(results) and not lost else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=12, help="of the work")
    parser.add_argument("--keep-logs", default="", help="folder for the logs of the services and of the control plane")
    chosen = parser.parse_args()
    sys.exit(asyncio.run(main(chosen.rounds, chosen.seed, chosen.keep_logs)))
