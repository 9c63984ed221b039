"""The lease of a process, kept alive and replaced when lost: it binds all keys that the process holds in etcd.

The process does not wait for the server to learn that the lease has ended: each call of `alive()` compares the clock
with the process's own deadline (`term.py`), so it is right even if the server is unreachable, the loop was blocked, or
the process was paused.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from dynamo_shared.aio import Backoff
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.errors import EtcdError, LeaseNotFoundError
from dynamo_shared.leases.term import Term, lease_clock

#: Pause after a failed attempt, in seconds: the first, and the longest. Doubles, with jitter.
FIRST_PAUSE = 0.1
LAST_PAUSE = 2.0
#: How long an orderly end waits for the server to revoke the lease. Seconds.
REVOKE_WITHIN = 2.0

log = structlog.get_logger("dynamo.leases")


class Lease:
    """At most one living lease at a time. `run` must run; all methods belong to its event loop.

    `on_change` listeners are called, in order, when a lease was lost (before the server can have ended it, or when it
    reports that it has) and when a new one was granted.
    """

    def __init__(self, client: EtcdClient, ttl: int, *, clock: Callable[[], float] = lease_clock) -> None:
        self._client = client
        self._ttl = ttl
        self._clock = clock
        self._term: Term | None = None
        self._listeners: list[Callable[[], None]] = []
        self._trouble = ""
        self._refused: dict[str, str] = {}
        self._checks = asyncio.Event()
        self._desired = asyncio.Event()
        """cleared while this process must hold none"""
        self._desired.set()

    @property
    def id(self) -> int:
        """The lease while it is alive, otherwise 0."""
        term = self._term
        return term.lease if term is not None and term.alive(self._clock()) else 0

    def alive(self) -> bool:
        """Whether there is a lease that the server cannot have ended yet."""
        return self.id != 0

    @property
    def trouble(self) -> str:
        """Why the last request for it, or for the keys under a prefix, failed; "" while requests succeed."""
        return self._trouble or next(iter(self._refused.values()), "")

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call back when the lease was lost or granted, or when requests for it fail for another reason or no longer."""
        self._listeners.append(listener)

    def note(self, prefix: str, trouble: str) -> None:
        """Record why the keys under a prefix cannot be read or written, although the lease may be renewed: etcd has no
        space, or the user lacks the permission. "" if they can.
        """
        if trouble == self._refused.get(prefix, ""):
            return
        if trouble:
            if not self.trouble:
                log.warning("request to etcd failed", prefix=prefix, error=trouble)
            self._refused[prefix] = trouble
        else:
            del self._refused[prefix]
        self._notify()

    def check(self) -> None:
        """Ask the server now instead of at the next keepalive, because the lease may have ended."""
        self._checks.set()

    def suspend(self, why: str) -> None:
        """Let the lease expire, and acquire none until `resume`: other replicas can do what this process cannot."""
        if self._desired.is_set():
            self._desired.clear()
            self._trouble = why
            log.warning("lease abandoned", reason=why)
            self.check()

    def resume(self) -> None:
        """Acquire leases again after `suspend`."""
        self._desired.set()

    async def run(self) -> None:
        """Keep a lease until cancelled."""
        abandoned: set[int] = set()
        while True:
            term = await self._acquire()
            log.info("lease granted", lease=f"{term.lease:x}", ttl=term.ttl)
            self._notify()
            await self._revoke_abandoned(abandoned, term.keepalive_every)
            abandoned.add(term.lease)
            try:
                await self._keep(term.lease)
            except Exception:
                # `run` is restarted, with another lease: meanwhile no work may be done under this one.
                self._term = None
                self._notify()
                raise
            self._term = None
            log.warning("lease lost", lease=f"{term.lease:x}", reason=self._trouble or "etcd ended it")
            self._notify()

    async def close(self) -> None:
        """Revoke the lease and all keys that it holds; call this after `run` was cancelled."""
        term, self._term = self._term, None
        if term is None:
            return
        self._notify()
        try:
            async with asyncio.timeout(REVOKE_WITHIN):
                await self._client.revoke(term.lease)
        except (EtcdError, TimeoutError) as error:
            log.info("cannot revoke the lease; it will expire", error=str(error))

    async def _acquire(self) -> Term:
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        while True:
            await self._desired.wait()
            sent = self._clock()
            try:
                grant = await self._client.grant(self._ttl)
            except EtcdError as error:
                self._note(str(error))
                await asyncio.sleep(backoff.next())
                continue
            self._note("")
            term = Term.granted(grant.lease, grant.ttl, sent)
            if term.alive(self._clock()):
                self._term = term
                return term

    async def _keep(self, lease: int) -> None:
        """Renew until the lease is lost."""
        backoff = Backoff(FIRST_PAUSE, LAST_PAUSE)
        wait = self._term.keepalive_every if self._term is not None else 0.0
        while (term := self._term) is not None and (left := term.deadline - self._clock()) > 0:
            await self._pause(min(wait, left))
            if not self._desired.is_set():
                return
            sent = self._clock()
            if (left := term.deadline - sent) <= 0:
                return
            try:
                # The request's own time-out does not include a log-in before it.
                async with asyncio.timeout(left):
                    ttl = await self._client.keepalive(lease, timeout=min(term.keepalive_every, left))
            except TimeoutError:
                self._note("no response before the lease expired")
                return
            except LeaseNotFoundError:
                ttl = 0.0
            except EtcdError as error:
                self._note(str(error))
                backoff.last = term.keepalive_every / 2
                wait = backoff.next()
                continue
            self._note("")
            if ttl <= 0 or not term.alive(self._clock()):
                # An answer after the deadline does not revive the lease: meanwhile `alive()` was false, and work waits
                # for what the listeners do next.
                return
            self._term = term = term.renewed(ttl, sent)
            backoff.reset()
            wait = term.keepalive_every

    async def _pause(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._checks.wait()
        except TimeoutError:
            return
        self._checks.clear()

    async def _revoke_abandoned(self, abandoned: set[int], within: float) -> None:
        """End leases that this process no longer trusts but the server may still have: others wait for their keys."""
        try:
            async with asyncio.timeout(within):
                for lease in list(abandoned):
                    with suppress(LeaseNotFoundError):
                        await self._client.revoke(lease)
                    abandoned.discard(lease)
        except (EtcdError, TimeoutError) as error:
            log.info("cannot revoke an abandoned lease; it will expire", error=str(error))
            abandoned.clear()

    def _note(self, trouble: str) -> None:
        if not self._desired.is_set():
            # A request that was running does not explain why the lease was abandoned.
            return
        if trouble == self._trouble:
            return
        if not self._trouble:
            log.warning("request to etcd failed", error=trouble)
        self._trouble = trouble
        self._notify()

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
