"""The lease of a process: trusted until its own deadline, lost early, and obtained again. The clock is manual."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from dynamo_shared.aio import ended
from dynamo_shared.leases.client import Grant, Snapshot
from dynamo_shared.leases.errors import EtcdUnavailableError, LeaseNotFoundError
from dynamo_shared.leases.lease import Lease
from dynamo_shared.leases.term import Term, lease_clock, margin
from dynamo_shared.leases.view import PrefixView
from hypothesis import given
from hypothesis import strategies as st

from tests.building.tasks import in_background
from tests.building.waiting import turns, until


class FakeEtcd:
    """Grants and renews leases unless a test makes it refuse."""

    def __init__(self) -> None:
        self.now = 100.0
        self.granted = 0
        self.ttl = 10.0
        self.renewals: list[int] = []
        self.revoked: list[int] = []
        self.away = ""
        """why it refuses requests"""
        self.forgets = False
        self.frozen = asyncio.Event()
        self.frozen.set()

    async def grant(self, ttl: int, *, timeout: float | None = None) -> Grant:
        await self._answer()
        self.granted += 1
        return Grant(self.granted, self.ttl)

    async def keepalive(self, lease: int, *, timeout: float | None = None) -> float:
        self.renewals.append(lease)
        await self._answer()
        return 0.0 if self.forgets else self.ttl

    async def revoke(self, lease: int) -> None:
        await self._answer()
        self.revoked.append(lease)
        raise LeaseNotFoundError("gone")

    async def _answer(self) -> None:
        await self.frozen.wait()
        if self.away:
            raise EtcdUnavailableError(self.away)


@pytest.fixture
async def etcd() -> FakeEtcd:
    return FakeEtcd()


@pytest.fixture
async def lease(etcd: FakeEtcd) -> AsyncIterator[Lease]:
    client: Any = etcd
    lease = Lease(client, 10, clock=lambda: etcd.now)
    task = asyncio.create_task(lease.run())
    yield lease
    assert not task.done()
    await ended(task)


class Keys:
    """An etcd that no one changes."""

    async def read(self, _: str) -> Snapshot:
        return Snapshot(1, {})

    @asynccontextmanager
    async def watch(self, _prefix: str, _start: int) -> AsyncIterator[AsyncIterator[int]]:
        await asyncio.Event().wait()
        yield None  # type: ignore[misc]


async def troubles_of(lease: Lease) -> list[str]:
    """The trouble in each notification of listeners, from the grant on."""
    heard: list[str] = []
    await until(lease.alive)
    lease.on_change(lambda: heard.append(lease.trouble))
    return heard


async def changes_of(lease: Lease) -> list[int]:
    """The ids in each notification of listeners, from the grant on."""
    heard: list[int] = []
    await until(lease.alive)
    lease.on_change(lambda: heard.append(lease.id))
    return heard


async def test_it_is_trusted_until_its_deadline_whatever_the_server_does(etcd: FakeEtcd, lease: Lease) -> None:
    await until(lease.alive)
    assert lease.id == 1
    etcd.frozen.clear()
    etcd.now += 7.9
    assert lease.alive()
    etcd.now += 0.1
    assert not lease.alive(), "without an event, an answer, or a turn of the loop"
    assert lease.id == 0


async def test_a_keepalive_counts_from_the_time_when_it_was_sent(etcd: FakeEtcd, lease: Lease) -> None:
    await until(lease.alive)
    etcd.frozen.clear()
    etcd.now += 4
    lease.check()
    await until(lambda: etcd.renewals)
    etcd.now += 3
    etcd.frozen.set()
    await until(lambda: lease._term is not None and lease._term.deadline == 112.0)
    assert lease.id == 1


async def test_listeners_are_notified_of_the_loss_and_of_a_new_lease(etcd: FakeEtcd, lease: Lease) -> None:
    heard = await changes_of(lease)
    etcd.forgets = True
    lease.check()
    await until(lambda: 2 in heard)
    assert heard[:2] == [0, 2]


async def test_a_lease_that_was_given_up_is_revoked_before_it_blocks_others(etcd: FakeEtcd, lease: Lease) -> None:
    await until(lease.alive)
    etcd.now += 60
    lease.check()
    await until(lambda: lease.id == 2)
    await until(lambda: etcd.revoked == [1])


async def test_an_answer_after_the_deadline_does_not_revive_the_lease(etcd: FakeEtcd, lease: Lease) -> None:
    """Callers have treated it as lost meanwhile, and rejected work: listeners must be notified."""
    heard = await changes_of(lease)
    etcd.frozen.clear()
    etcd.now += 4
    lease.check()
    await until(lambda: etcd.renewals)
    etcd.now += 4
    assert not lease.alive()
    etcd.frozen.set()
    await until(lease.alive)
    assert lease.id == 2
    assert heard[:2] == [0, 2]


async def test_the_loss_is_reported_in_time_although_a_keepalive_has_no_answer(etcd: FakeEtcd, lease: Lease) -> None:
    """If a login before it hung, listeners were notified seconds later, and work went on meanwhile."""
    heard = await changes_of(lease)
    etcd.frozen.clear()
    etcd.now += 7.9
    lease.check()
    await until(lambda: 0 in heard)
    assert (etcd.renewals, lease.trouble) == ([1], "no response before the lease expired")


async def test_errors_are_reported_and_do_not_end_the_lease_early(etcd: FakeEtcd, lease: Lease) -> None:
    heard: list[tuple[bool, str]] = []
    await until(lease.alive)
    lease.on_change(lambda: heard.append((lease.alive(), lease.trouble)))
    etcd.away = "refused"
    lease.check()
    await until(lambda: heard)
    assert heard == [(True, "refused")]
    etcd.away = ""
    await until(lambda: len(heard) == 2)
    assert heard[1] == (True, "")
    assert lease.id == 1


async def test_keys_that_etcd_refuses_are_reported_although_it_renews_the_lease(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without space, or without the permission, a replica would hold nothing and appear healthy."""
    monkeypatch.setattr("dynamo_shared.leases.view.RETRY_PAUSE", 0.01)
    heard = await troubles_of(lease)
    view, refused = PrefixView(Keys(), "/p"), ["no answer"]  # type: ignore[arg-type]

    async def sync(_: asyncio.TaskGroup) -> float:
        for reason in refused:
            raise EtcdUnavailableError(reason)
        return 10.0

    async with in_background(view.keep_synced(lease, sync)):
        for reason in ("no answer", "no space"):
            refused[:] = [reason]
            await until(lambda: heard[-1:] == refused)
        refused.clear()
        await until(lambda: heard[-1:] == [""])
    assert (heard, lease.id) == (["no answer", "no space", ""], 1)


async def test_each_reason_for_which_a_renewal_fails_is_reported(etcd: FakeEtcd, lease: Lease) -> None:
    """`/readyz` kept the first one: a refused password looked like a lost connection."""
    heard, reasons = await troubles_of(lease), ["refused", "authentication failed", ""]
    for reason in reasons:
        etcd.away = reason
        lease.check()
        await until(lambda: heard[-1:] == [etcd.away])
    assert heard == reasons


async def test_a_reason_that_changes_each_time_does_not_hurry_the_next_attempt(
    lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listeners read the keys again when they hear of a trouble: with two unavailable members, without any pause."""
    monkeypatch.setattr("dynamo_shared.leases.view.RETRY_PAUSE", 3600.0)
    heard, attempts = await troubles_of(lease), 0
    view = PrefixView(Keys(), "/p")  # type: ignore[arg-type]
    lease.on_change(view.wake)

    async def sync(_: asyncio.TaskGroup) -> float:
        nonlocal attempts
        attempts += 1
        raise EtcdUnavailableError(f"member {attempts % 2} refused")

    async with in_background(view.keep_synced(lease, sync)):
        await until(lambda: heard)
        await turns()
    assert (heard, attempts) == (["member 1 refused"], 1)


async def test_a_grant_that_took_too_long_is_not_used(etcd: FakeEtcd) -> None:
    client: Any = etcd
    lease = Lease(client, 10, clock=lambda: etcd.now)
    etcd.frozen.clear()
    task = asyncio.create_task(lease.run())
    await asyncio.sleep(0)
    etcd.now += 9
    etcd.frozen.set()
    await until(lease.alive)
    assert lease.id == 2
    await ended(task)


async def test_the_lease_is_revoked_at_the_end(etcd: FakeEtcd) -> None:
    client: Any = etcd
    lease = Lease(client, 10, clock=lambda: etcd.now)
    await lease.close()
    task = asyncio.create_task(lease.run())
    await until(lease.alive)
    await ended(task)
    reported: list[int] = []
    lease.on_change(lambda: reported.append(lease.id))
    await lease.close()
    assert etcd.revoked == [1]
    assert reported == [0], "before the server knows"


async def test_a_lease_that_others_need_is_given_up_and_obtained_again(etcd: FakeEtcd, lease: Lease) -> None:
    """It expires on the server, because its last users may still be working."""
    heard = await changes_of(lease)
    lease.suspend("another replica can")
    await until(lambda: heard == [0])
    assert (lease.trouble, etcd.renewals, etcd.revoked) == ("another replica can", [], [])
    lease.suspend("once more")
    await turns(20)
    assert etcd.granted == 1
    lease.resume()
    await until(lambda: lease.id == 2)
    assert (lease.trouble, heard[-1]) == ("", 2)


async def test_a_later_answer_does_not_hide_the_reason_for_giving_it_up(etcd: FakeEtcd, lease: Lease) -> None:
    await until(lease.alive)
    etcd.frozen.clear()
    lease.check()
    await until(lambda: etcd.renewals == [1])
    lease.suspend("another replica can")
    etcd.frozen.set()
    await until(lambda: not lease.alive())
    assert lease.trouble == "another replica can"
    lease.resume()
    await until(lambda: lease.id == 2)
    assert lease.trouble == ""


TIMES = st.floats(0, 1e6)
TTLS = st.integers(2, 600)


def test_trusted_until_the_margin() -> None:
    term = Term.granted(7, 10, sent=100.0)
    assert term.alive(107.9)
    assert not term.alive(108.0)
    assert term.renewed(10, sent=103.0).alive(110.9)


def test_short_leases_keep_a_second() -> None:
    assert margin(2) == 1.0
    assert margin(0.5) == 0.5
    assert not Term.granted(7, 0.5, sent=0.0).alive(0.0)


def test_a_late_answer_does_not_shorten_the_term() -> None:
    term = Term.granted(7, 10, sent=0.0).renewed(10, sent=5.0)
    assert term.renewed(10, sent=3.0).deadline == term.deadline


def test_two_keepalives_may_fail() -> None:
    term = Term.granted(7, 10, sent=0.0)
    assert term.alive(2 * term.keepalive_every)


@given(TTLS, TIMES, st.floats(0, 30), st.floats(0, 30))
def test_the_term_ends_before_the_server_ends_the_lease(
    ttl: int, sent: float, way_there: float, way_back: float
) -> None:
    term = Term.granted(1, ttl, sent)
    server_ends = sent + way_there + ttl
    assert not term.alive(server_ends - 1.0)
    assert not term.alive(sent + way_there + way_back + ttl)


def test_time_continues_to_count() -> None:
    first = lease_clock()
    assert lease_clock() >= first
