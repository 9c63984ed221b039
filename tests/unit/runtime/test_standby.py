"""A Kubernetes Lease has one holder, whatever the API server and the clocks do."""

import asyncio
from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import PLATFORM, labels
from dynamo_shared.api.resources import LEASES, ObjectKey, Resource, key_of
from dynamo_shared.kube.errors import Conflict, NotFound, Unavailable
from dynamo_shared.runtime.leasing.claim import KubeClaim

from tests.building.memory_kube import MemoryKube
from tests.building.tasks import in_background
from tests.building.waiting import until

TTL = 30.0
#: 6 seconds of 30 are the margin.
DEADLINE = 24.0


class Clock:
    """The clock of the event loop plus what a test adds."""

    def __init__(self) -> None:
        self.added = -asyncio.get_running_loop().time()

    def __call__(self) -> float:
        return asyncio.get_running_loop().time() + self.added


def without_waits(monkeypatch: pytest.MonkeyPatch, *, clock: Clock | None = None) -> None:
    """Replicas wait for a moment instead of their pause; on this clock the whole pause passes."""
    wait = KubeClaim._wait

    async def at_once(self: KubeClaim, pause: float) -> None:
        if clock is not None:
            clock.added += pause
        await wait(self, 0.001)

    monkeypatch.setattr(KubeClaim, "_wait", at_once)


class FakeKube:
    """Creates the Lease, rejects its first renewal, and never answers again."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.renewals = 0

    async def get(self, _resource: object, _key: ObjectKey) -> dict[str, Any]:
        if self.renewals:
            await asyncio.Event().wait()
        raise NotFound(404, "NotFound", "no such Lease", {"name": "l"})

    async def create(self, _resource: object, lease: dict[str, Any]) -> dict[str, Any]:
        return lease

    async def replace(self, _resource: object, _lease: dict[str, Any]) -> dict[str, Any]:
        self.renewals += 1
        self.clock.added += DEADLINE - 0.5 - self.clock()
        raise Unavailable(503, "Unavailable", "again later")


class HeldElsewhere(FakeKube):
    """Another replica has the Lease, and renews it soon."""

    reads = 0

    async def get(self, _resource: object, _key: ObjectKey) -> dict[str, Any]:
        self.reads += 1
        spec = {"holderIdentity": "b", "leaseDurationSeconds": int(TTL), "renewTime": "2026-01-01T00:00:00Z"}
        return {"metadata": {"name": "l", "namespace": "ns", "resourceVersion": "1"}, "spec": spec}


async def test_a_hanging_request_does_not_outlast_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    kube: Any = FakeKube(clock)
    claim = KubeClaim(kube, ObjectKey("ns", "l"), "a", TTL, clock=clock)
    # As if each wait had taken longer than planned.
    without_waits(monkeypatch, clock=clock)
    gained: list[object] = []
    claim.on_gain(gained.append)
    lost = asyncio.Event()
    claim.on_loss(lost.set)
    async with in_background(claim.run()):
        async with asyncio.timeout(60):
            await lost.wait()
        assert (len(gained), kube.renewals) == (1, 1)
        # A standby replica would wait for a third of TTL; a busy machine gets less time.
        assert DEADLINE <= clock() < DEADLINE + TTL / 3 - 1


async def test_a_corrected_wall_clock_does_not_end_the_lease_of_another_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A machine that starts with a wrong time corrects it after its pods have started."""
    clock = Clock()
    held = HeldElsewhere(clock)
    kube: Any = held
    claim = KubeClaim(kube, ObjectKey("ns", "l"), "a", TTL, clock=clock)
    without_waits(monkeypatch)
    async with in_background(claim.run()):
        await until(lambda: held.reads >= 3)
        clock.added += 10 * TTL
        await until(lambda: held.reads >= 6)
        assert held.renewals == 0


class NoSuchNamespace:
    """Has no Lease, and not the namespace in which to create it."""

    missing = "ns"

    async def get(self, _resource: object, key: ObjectKey) -> dict[str, Any]:
        raise NotFound(404, "NotFound", "no such Lease", {"name": key.name})

    async def create(self, _resource: object, _lease: dict[str, Any]) -> dict[str, Any]:
        raise NotFound(404, "NotFound", f"no namespace {self.missing}", {"name": self.missing})


async def test_a_missing_namespace_is_reported_and_so_is_each_other_reason() -> None:
    """`/readyz` kept the first reason."""
    kube: Any = NoSuchNamespace()
    claim, heard = KubeClaim(kube, ObjectKey("ns", "l"), "a", TTL), list[str]()
    claim.on_change(lambda: heard.append(claim.trouble))
    async with in_background(claim.run()):
        await until(lambda: heard)
        kube.missing = "other"
        await until(lambda: len(heard) > 1)
    assert heard[:2] == ["404 NotFound: no namespace ns", "404 NotFound: no namespace other"]


class Broken(FakeKube):
    """Raises an unexpected error while the Lease is held."""

    async def replace(self, _resource: object, _lease: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("a bug")


async def test_a_lease_is_released_if_its_task_fails_unexpectedly(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task restarts after a pause, which may outlast the Lease, and nothing would stop the work under it."""
    without_waits(monkeypatch)
    kube: Any = Broken(Clock())
    claim = KubeClaim(kube, ObjectKey("ns", "l"), "a", TTL)
    lost: list[bool] = []
    claim.on_loss(lambda: lost.append(claim.may_write()))

    async def until_lost() -> None:
        await claim.wait_elected()
        await claim.wait_lost()

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        tasks.create_task(until_lost())
        with pytest.raises(RuntimeError):
            await claim.run()
    assert lost == [False]


class CutOff(MemoryKube):
    """Renews a Lease, but is cut off before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.renewed = asyncio.Event()
        self.renewals = 0

    async def replace(self, resource: Resource, obj: KubeObject) -> KubeObject:
        observed = await self.get(resource, key_of(obj))
        if obj["metadata"]["resourceVersion"] != observed["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "the object has been modified")
        self.put(obj)
        self.renewals += 1
        if self.renewals == 1:
            self.renewed.set()
            await asyncio.Event().wait()
        return await self.get(resource, key_of(obj))


@pytest.mark.parametrize("left", [(), ({**LEASES.type_meta, "spec": {"holderIdentity": ""}},)], ids=["new", "left"])
async def test_a_lease_whose_renewal_was_cut_off_is_released(
    left: tuple[KubeObject, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a Lease of an uninstalled platform. An administrator who removes everything selects both by their label."""
    clock, key = Clock(), ObjectKey("ns", "l")
    stored = CutOff()
    for lease in left:
        stored.put({**lease, "metadata": {"name": "l", "namespace": "ns"}})
    kube: Any = stored
    claim = KubeClaim(kube, key, "a", TTL, clock=clock)
    without_waits(monkeypatch)
    async with in_background(claim.run()), asyncio.timeout(60):
        await stored.renewed.wait()
    await claim.close()
    # The next replica would wait for the duration of the Lease.
    lease = await stored.get(LEASES, key)
    assert lease["spec"]["holderIdentity"] == ""
    assert lease["metadata"]["labels"] == {labels.APP_PART_OF: PLATFORM}


def test_a_renewal_without_an_answer_is_repeated_while_the_lease_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise one lost connection would cost the Lease."""

    async def passes() -> None:
        loop, passed = asyncio.get_running_loop(), 0.0
        time = loop.time
        monkeypatch.setattr(loop, "time", lambda: time() + passed)
        clock, stored = Clock(), CutOff()
        kube: Any = stored
        # Long compared with what the test takes.
        claim = KubeClaim(kube, ObjectKey("ns", "l"), "a", 100 * TTL, clock=clock)
        without_waits(monkeypatch, clock=clock)
        lost: list[bool] = []
        claim.on_loss(lambda: lost.append(True))
        async with in_background(claim.run()):
            await stored.renewed.wait()
            passed = 100 * TTL / 3
            await until(lambda: stored.renewals > 1)
            assert not lost

    # Timers of uvloop do not ask for the time.
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(passes())
