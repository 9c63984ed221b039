"""`make hostile`: runs each attack of the table, and checks after each what must hold for the platform."""

import argparse
import asyncio
import contextlib
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module

from dynamo_devcluster import NodeShape
from dynamo_shared.api.resources import POD_SNAPSHOTS, SNAPSHOT_JOBS

from tests.building.definitions import definition_of
from tests.stage.cluster import StageOptions, stage, until_ready
from tests.stage.prober import CONTROL, Prober
from tests.stage.service import Service

from .attack import TABLE, Attack
from .farm import farm
from .world import TOGETHER, Probed, World, world

TABLES = ("documents", "leases", "sizes", "shapes", "answers", "storms", "takeovers", "bus", "addresses", "captures")
BASELINE = 5
#: Time of a loop of ten million additions on the machine to which the bounds apply. Seconds.
REFERENCE = 0.6
HEALTH_WITHIN = 1.0
SETTLED_WITHIN = 30.0
#: The garbage collector cleans up after storms, and is limited to 20 requests a second by default.
BRISK = ("--kube-api-qps=500", "--kube-api-burst=1000")
#: GOMEMLIMIT. The API server keeps former versions of large objects, and with its usual limit of 2 GiB collects garbage
#: all the time.
MEMORY = "5GiB"
#: A longer clean-up is reported, because it makes a run long. Seconds.
LONG = 5.0


@dataclass(slots=True)
class Report:
    """The result of one attack."""

    attack: Attack
    problems: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    """problems of the first try, if this is the second"""
    worst: tuple[str, float] = ("", 0.0)
    grown: tuple[str, float] = ("", 0.0)
    probed: Probed | None = None
    seconds: float = 0.0
    answers: str = ""

    def line(self) -> str:
        """The result as one line."""
        probed = (
            f"{self.probed.children:.2f}/{self.probed.successful:.2f}/{self.probed.whole:.2f}s" if self.probed else "-"
        )
        verdict = "held" if not self.problems else "NOT HELD"
        return (
            f"{verdict:8} {self.attack.name:44} {self.seconds:5.1f}s health {self.worst[1]:.2f}s {self.worst[0]:17} "
            f"+{self.grown[1]:.0f}MiB probe {probed} answers {self.answers}"
        )


@dataclass(slots=True)
class Runner:
    """Runs attacks and checks the platform's requirements."""

    world: World
    prober: Prober
    idle: Probed
    speed: float

    async def run(self, attacks: Sequence[Attack]) -> list[Report]:
        """Run attacks concurrently, from execution to clean-up; if one fails, each runs again alone.

        An attack that fails alone is tried once more: other load on the machine is transient, a fault is not.
        """
        worlds = [self.world.within(name) for name in TOGETHER] if len(attacks) > 1 else [self.world]
        reports = await self._run(list(zip(attacks, worlds, strict=False)))
        if not any(report.problems for report in reports):
            return reports
        if len(attacks) > 1:
            return [report for attack in attacks for report in await self.run([attack])]
        (again,) = await self._run([(attacks[0], self.world)])
        again.first = reports[0].problems
        return [again]

    async def _run(self, acts: Sequence[tuple[Attack, World]]) -> list[Report]:
        """The first report has the results for the platform, which are common to all."""
        reports, up = [Report(attack) for attack, _ in acts], self.world
        whole, services = reports[0], up.stage.services
        before = {each.id: (each.process.pid, each.restarts(), each.resident_mib()) for each in services}
        for each in services:
            each.forget_peak()
        for _, its in acts:
            its.answers.clear()
            its.last_refusal = ""
            its.memory.clear()
        up.farm.reset()
        up.prometheus.reset()
        await self.prober.account()
        began = time.monotonic()
        await asyncio.gather(*(_do(report, its) for report, (_, its) in zip(reports, acts, strict=True)))
        try:
            whole.probed = await up.probe()
        except AssertionError as error:
            whole.problems.append(str(error)[:1500])
        await asyncio.gather(*(_check(report, its) for report, (_, its) in zip(reports, acts, strict=True)))
        self._healthy(whole, await self.prober.account())
        self._same(whole, services, before)
        cleaned = time.monotonic()
        try:
            left = await asyncio.gather(*(its.sweep() for _, its in acts))
            await self._settled(services)
            if time.monotonic() - cleaned > LONG:
                whole.answers += f" (cleaning up took {time.monotonic() - cleaned:.0f} s, at last of {left})"
        except AssertionError as error:
            whole.problems.append(f"cleaning up: {error}"[:1500])
        self._healthy(whole, await self.prober.account())
        await self._compared(whole)
        for report in reports:
            report.seconds = (time.monotonic() - began) / len(reports)
            report.worst, report.grown, report.probed = whole.worst, whole.grown, whole.probed
        return reports

    async def _compared(self, report: Report) -> None:
        """Compare the other namespace's times with idle ones; if they are long, with idle times measured now.

        Otherwise other work on the machine would count as the attack's.
        """
        if report.probed is None or not self._slower(report, self.idle):
            return
        try:
            idle = [await self.world.probe() for _ in range(3)]
        except AssertionError as error:
            report.problems.append(f"after cleaning up: {error}"[:500])
            return
        now = _of_each(max, idle)
        report.problems += self._slower(report, now)

    def _slower(self, report: Report, idle: Probed) -> list[str]:
        assert report.probed is not None
        results = []
        for what in ("children", "successful"):
            took, usual = getattr(report.probed, what), getattr(idle, what)
            most = 2 * usual + report.attack.slack * self.speed
            if took > most:
                results.append(
                    f"another namespace waited {took:.2f} s to {what}; idle {usual:.2f} s, at most {most:.2f} s"
                )
        return results

    def _healthy(self, report: Report, waits: dict[str, float]) -> None:
        # If a server that does nothing has the same wait, the machine is slow, not the platform.
        most = HEALTH_WITHIN * self.speed + waits.get(CONTROL, 0.0)
        for name, seconds in waits.items():
            if name == CONTROL:
                continue
            report.worst = max(report.worst, (name, seconds), key=lambda each: each[1])
            if seconds > most:
                report.problems.append(f"/healthz of {name} took {seconds:.1f} s; at most {most:.1f} s")

    def _same(
        self, report: Report, services: list[Service], before: dict[str, tuple[int | None, float, float]]
    ) -> None:
        for each in services:
            pid, restarts, resident = before[each.id]
            if each.process.pid != pid:
                report.problems.append(f"{each.id} ended: {each.process.log_tail(5)[-600:]}")
                continue
            if (now := each.restarts()) > restarts:
                report.problems.append(f"{each.id}: the service ended and began again {now - restarts:g} times")
            grown = each.peak_mib() - resident
            report.grown = max(report.grown, (each.id, grown), key=lambda entry: entry[1])
            if grown > report.attack.memory:
                report.problems.append(f"{each.id} grew by {grown:.0f} MiB; at most {report.attack.memory:.0f}")

    async def _settled(self, services: list[Service]) -> None:
        """Wait until all are ready.

        Restart services that are not, so that the next attack starts with a whole platform.
        """
        late = {each.id: said for each in services if (said := await self._not_ready(each))}
        for each in services:
            if each.id in late:
                await each.process.kill()
                await each.process.start()
        if late:
            await until_ready(services)
        assert not late, f"not ready {SETTLED_WITHIN:g} s later: {late}"

    async def _not_ready(self, service: Service) -> str:
        """The reason why a process is not ready; empty as soon as it is."""
        said, deadline = "it does not run", time.monotonic() + SETTLED_WITHIN
        while time.monotonic() < deadline:
            try:
                status, body = await service.http.request("GET", "/readyz")
            except OSError as error:
                said = repr(error)
            else:
                if status == 200:
                    return ""
                said = body.decode(errors="replace")[:500]
            if not service.process.running:
                return said
            await asyncio.sleep(0.2)
        return said


async def _do(report: Report, world: World) -> None:
    try:
        await report.attack.run(world)
        if world.answers.total() != world.refused():
            # A refused attack needs no time to take effect.
            await asyncio.sleep(report.attack.linger)
    except AssertionError as error:
        report.problems.append(str(error)[:1500])
    except Exception as error:
        report.problems.append(f"the attack itself failed: {error!r}"[:1500])


async def _check(report: Report, world: World) -> None:
    try:
        if report.attack.check is not None and not report.problems:
            await report.attack.check(world)
    except AssertionError as error:
        report.problems.append(str(error)[:1500])
    except Exception as error:
        report.problems.append(f"the check itself failed: {error!r}"[:1500])
    report.answers = ",".join(f"{status}x{count}" for status, count in sorted(world.answers.items()))
    report.answers += f" {world.last_refusal[:160]}" if not world.answers.get(201) and world.last_refusal else ""


def _batches(attacks: Sequence[Attack]) -> Iterator[list[Attack]]:
    """Attacks in order; neighbours that may run concurrently form a group."""
    group: list[Attack] = []
    for each in attacks:
        if group and (not each.together or len(group) == len(TOGETHER)):
            yield group
            group = []
        if each.together:
            group.append(each)
        else:
            yield [each]
    if group:
        yield group


async def main(options: argparse.Namespace) -> int:
    """Run the attacks; returns the exit code."""
    for table in TABLES:
        with contextlib.suppress(ModuleNotFoundError):
            import_module(f"tests.hostile.attacks.{table}")
    desired = options.only.split(",")
    chosen = [each for each in TABLE.values() if any(word in each.name or word in each.row for word in desired)]
    chosen.sort(key=lambda each: not each.together)
    names = [each.name for each in chosen]
    if options.begin:
        chosen = chosen[names.index(options.begin) :]
    if options.list:
        for each in chosen:
            print(f"{each.name:44} {each.row:24} {each.does}")
        print(f"{len(chosen)} attacks")
        return 0
    os.environ.setdefault("GOMEMLIMIT", MEMORY)
    speed = max(1.0, _additions() / REFERENCE)
    print(f"{len(chosen)} attacks; this machine counts as {speed:.1f} times slower than that of the bounds", flush=True)
    async with farm() as answers, farm() as prometheus:
        # The planner would query exporters here: the nodes lack GPU labels.
        os.environ["DCGM_METRICS_ENDPOINT_TEMPLATE"] = f"{answers.url}/dcgm/{{POD_IP}}/metrics"
        model_discovery = {"proxy": answers.url, "probeInterval": "2s", "requestTimeout": "5s", "longestRetry": "4s"}
        settings = {"modelDiscovery": model_discovery, "planner": {"prometheus": {"endpoint": prometheus.url}}}
        options_ = StageOptions(
            platform=settings,
            sections={"checkpoint": {"enabled": True}},
            definitions=[definition_of(each) for each in (SNAPSHOT_JOBS, POD_SNAPSHOTS)],
            plane={"node_shape": NodeShape(gpus=0), "controller_manager_arguments": BRISK},
        )
        async with (
            stage(options_) as up,
            world(up, answers, prometheus) as around,
            Prober({each.id: each.health_port for each in up.services}) as prober,
        ):
            try:
                return await _attack(chosen, around, prober, speed)
            finally:
                if options.keep_logs:
                    shutil.copytree(up.folder / "services", options.keep_logs, dirs_exist_ok=True)


async def _attack(chosen: list[Attack], around: World, prober: Prober, speed: float) -> int:
    # The first graphs of a process are slower than all others.
    probes = [await around.probe() for _ in range(BASELINE + 2)][2:]
    idle = _of_each(statistics.median, probes)
    print(
        f"idle: {idle.children:.2f} s to children, {idle.successful:.2f} s the platform's part until successful, "
        f"{idle.whole:.2f} s in all; storms of {around.graphs} graphs "
        "instead of 5,000 (DYNAMO_HOSTILE_GRAPHS)",
        flush=True,
    )
    runner = Runner(around, prober, idle, speed)
    reports: list[Report] = []
    for group in _batches(chosen):
        for report in await runner.run(group):
            reports.append(report)
            print(report.line(), flush=True)
            for problem in (*(f"first try: {each}" for each in report.first), *report.problems):
                print(f"         {problem}", flush=True)
    failed = [report for report in reports if report.problems]
    for report in failed:
        print(f"not held: {report.attack.name} ({report.attack.row}): {report.problems[0][:300]}")
    if twice := sum(bool(report.first) and not report.problems for report in reports):
        print(f"{twice} held at the second try")
    print(f"hostile {len(reports) - len(failed)}/{len(reports)} held")
    return 1 if failed else 0


def _of_each(figure: Callable[[Iterable[float]], float], probes: Sequence[Probed]) -> Probed:
    return Probed(
        figure([each.children for each in probes]),
        figure([each.successful for each in probes]),
        figure([each.whole for each in probes]),
    )


def _additions() -> float:
    """CPU seconds, which exclude other work on the machine: the prober's control accounts for that."""
    began, total = time.process_time(), 0
    for number in range(10_000_000):
        total += number
    return time.process_time() - began


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument(
        "--only", default="", help="attacks whose name or row contains one of these words, separated by commas"
    )
    parser.add_argument("--begin", help="the first attack, to continue an ended run")
    parser.add_argument("--list", action="store_true", help="print the table and exit")
    parser.add_argument("--keep-logs", help="folder for the logs of the services")
    sys.exit(asyncio.run(main(parser.parse_args())))
