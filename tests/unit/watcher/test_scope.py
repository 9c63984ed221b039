"""The Lease by which a platform announces its only namespace is released at the end, even during a renewal."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from dynamo_shared.aio import ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube import Conflict
from dynamo_shared.kube.errors import Forbidden
from dynamo_watcher import scope
from dynamo_watcher.scope import ScopeLease

from tests.building.waiting import until


class Refusing:
    """An API server that rejects renewals of the Lease."""

    def __init__(self) -> None:
        self.version = 0

    async def apply(self, *_: Any) -> KubeObject:
        self.version += 1
        raise Forbidden(403, "Forbidden", "no")


class Kube:
    """An API server with one Lease. It stores the second write, but delays the answer until the test permits it."""

    def __init__(self) -> None:
        self.version = 0
        self.there = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def apply(self, _: Any, lease: KubeObject) -> KubeObject:
        self.version += 1
        self.there, written = True, {"metadata": {"uid": "u", "resourceVersion": str(self.version)}}
        await self.may_answer.wait()
        return written

    async def delete(self, *_: Any, resource_version: str, **__: Any) -> None:
        if resource_version != str(self.version):
            raise Conflict(409, "Conflict", "the lease was renewed")
        self.there = False


def lease(
    kube: Kube | Refusing,
    namespace: str,
    trouble: Callable[[str, str], None] = lambda _subject, _problem: None,
    *,
    duration: float = 60.0,
    interval: float = 0.0,
) -> ScopeLease:
    return ScopeLease(
        kube=cast("Any", kube),
        namespace=namespace,
        version="1",
        duration=duration,
        interval=interval,
        now=lambda: datetime(2026, 1, 1, tzinfo=UTC),
        trouble=trouble,
    )


def held(kube: Kube) -> asyncio.Task[None]:
    return asyncio.create_task(lease(kube, "ns").hold())


async def silent_in_a_renewal(kube: Kube) -> asyncio.Task[None]:
    """A Lease whose second renewal the API server has stored but not answered."""
    holding = held(kube)
    await until(lambda: kube.version)
    kube.may_answer.clear()
    before = kube.version
    await until(lambda: kube.version > before)
    return holding


async def test_the_lease_is_released_if_a_renewal_is_cancelled() -> None:
    kube = Kube()
    holding = await silent_in_a_renewal(kube)
    asyncio.get_running_loop().call_soon(kube.may_answer.set)
    await ended(holding)
    assert holding.cancelled()
    assert not kube.there


async def test_a_renewed_lease_does_not_hide_another_that_cannot_be_renewed() -> None:
    problems: dict[str, str] = {}

    async def renewed(kube: Kube | Refusing, namespace: str) -> None:
        reports: list[str] = []

        def trouble(subject: str, problem: str) -> None:
            problems[subject] = problem
            reports.append(problem)

        holding = asyncio.create_task(lease(kube, namespace, trouble).hold())
        await until(lambda: reports)
        await ended(holding)

    await renewed(Refusing(), "one")
    await renewed(Kube(), "other")
    assert [problem for problem in problems.values() if problem] == ["403 Forbidden: no"]


async def test_a_renewal_without_an_answer_is_repeated_before_the_lease_expires(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time limit of a request is as long as the Lease: the cluster-wide platform took over the namespace."""
    monkeypatch.setattr(scope, "RELEASE_WITHIN", 0.0)
    kube = Kube()
    problems: list[str] = []
    one = lease(kube, "ns", lambda _, problem: problems.append(problem), duration=0.03)
    kube.may_answer.clear()
    holding = asyncio.create_task(one.hold())
    await until(lambda: kube.version > 1)
    kube.may_answer.set()
    await until(lambda: "" in problems)
    assert "the API server did not respond in time" in problems
    await ended(holding)


async def test_a_failed_renewal_is_repeated_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "FIRST_RETRY", 0.0)
    kube = Refusing()
    holding = asyncio.create_task(lease(kube, "ns", interval=3600.0).hold())
    await until(lambda: kube.version > 1)
    await ended(holding)


async def test_a_lease_whose_renewal_gets_no_answer_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scope, "RELEASE_WITHIN", 0.0)
    kube = Kube()
    await ended(await silent_in_a_renewal(kube))
    assert kube.there
