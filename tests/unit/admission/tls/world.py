"""Replicas that share one Secret and one registration, with all their faults, and a manual clock in seconds."""

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from cryptography import x509
from dynamo_admission.tls import pki
from dynamo_admission.tls.own_ca import OwnCertificates
from dynamo_admission.tls.rotation import SecretState, plan
from dynamo_admission.tls.secret import SecretStore, Stored
from dynamo_admission.tls.timing import Timing
from dynamo_shared.kube import Unavailable

from tests.building.clock import ManualClock
from tests.building.waiting import turns

from .certificates import NAMES, START, MemoryStore

TICK = 5.0
#: The API server uses its old state for this long.
HEARD_WITHIN = 20.0
# `settle` as Timing defines it: the longest way of a stale bundle into and out of the registration, plus the above.
TIMING = Timing(authority=3600, serving=900, poll=10, announce=10, settle=90, overlap=180)


class Network(SecretStore):
    """One replica's connection to the Secret."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.away = self.failing = self.unheard = False

    async def read(self) -> Stored | None:
        self._reach()
        return await self.store.read()

    async def write(self, state: SecretState, stored: Stored | None) -> None:
        self._reach()
        failing, self.failing = self.failing, False
        if failing:
            raise Unavailable(503, "ServiceUnavailable", "not now")
        await self.store.write(state, stored)
        unheard, self.unheard = self.unheard, False
        if unheard:
            raise Unavailable(0, "Unreachable", "it was done, and no one heard of it")

    def _reach(self) -> None:
        if self.away:
            raise Unavailable(0, "Unreachable", "no answer")


@dataclass
class Replica:
    """One process: its certificates, its current round, and when it checks next."""

    certificates: OwnCertificates
    network: Network
    checks_at: float
    round: asyncio.Task[None] | None = None
    #: What it is writing to the registration, and when that takes effect.
    writing: tuple[float, bytes, asyncio.Future[None]] | None = None
    delay: float = 0.0
    back_at: float = 0.0

    def end(self) -> None:
        if self.round is not None:
            self.round.cancel()


@dataclass
class World:
    """Time passes in ticks; after each tick all served certificates are verified."""

    clock: ManualClock = field(default_factory=lambda: ManualClock(START))
    store: MemoryStore = field(default_factory=MemoryStore)
    replicas: dict[int, Replica] = field(default_factory=dict)
    down: dict[int, float] = field(default_factory=dict)
    registered: list[tuple[float, bytes]] = field(default_factory=list)
    authorities: set[bytes] = field(default_factory=set)
    verified: set[tuple[bytes, bytes]] = field(default_factory=set)

    async def start(self, number: int) -> None:
        network = Network(self.store)
        certificates = OwnCertificates(network, NAMES, self.clock, TIMING)
        await certificates.refresh()
        self.replicas[number] = Replica(certificates, network, self.clock.now)

    def stop(self, number: int, seconds: float) -> None:
        self.replicas.pop(number).end()
        self.down[number] = self.clock.now + seconds

    def cut_off(self, number: int, seconds: float) -> None:
        replica = self.replicas[number]
        replica.network.away, replica.back_at = True, self.clock.now + seconds

    @property
    def whole(self) -> bool:
        """Whether all replicas run and can reach the Secret, and the Secret exists."""
        reach = not any(each.network.away for each in self.replicas.values())
        return not self.down and reach and self.store.content is not None

    @property
    def quiet(self) -> bool:
        """Whether all replicas know and have announced the contents of the Secret."""
        content = self.store.content
        return (
            content is not None
            and not self.store.forced
            and self.whole
            and bool(self.registered)
            and self.registered[-1][1] == content.bundle
            and all(each.round is None or each.round.done() for each in self.replicas.values())
            and all(each.certificates.bundle == content.bundle for each in self.replicas.values())
            and all(served(each) == content.serving[0] for each in self.replicas.values())
        )

    def idle_for(self, seconds: float) -> bool:
        """Whether nothing becomes due in that time: replicas that check every few seconds leave no work for later."""
        content = self.store.content
        if content is None or not self.quiet:
            return False
        return plan(content, self.clock.now + seconds, TIMING, NAMES, settled=True) == content

    async def tick(self, seconds: float = TICK) -> None:
        self.clock.now += seconds
        for number, until in list(self.down.items()):
            if self.clock.now >= until and self.store.content is not None:
                del self.down[number]
                await self.start(number)
        for replica in self.replicas.values():
            self._settle(replica)
        await turns()
        for replica in self.replicas.values():
            self._check(replica)
        await turns()
        self.verify()

    def verify(self) -> None:
        """Each served certificate is valid, and trusted by every state that the API server may use."""
        if self.store.content is not None:
            self.authorities |= {pki.pem_of(each) for each in self.store.content.authorities}
        for number, replica in self.replicas.items():
            leaf = served(replica)
            assert pki.ends(leaf) > self.clock.now, f"replica {number} serves what has ended"
            for bundle in self._heard():
                observed = (leaf.fingerprint(leaf.signature_hash_algorithm), bundle)  # type: ignore[arg-type]
                if observed not in self.verified:
                    assert pki.trusted([leaf], pki.certificates_of(bundle, "the registration")), (
                        f"replica {number} is refused at {self.clock.now:.0f}"
                    )
                    self.verified.add(observed)

    def check(self, number: int) -> None:
        """The replica checks the registration, and corrects webhooks that do not trust its CAs."""
        bundle = self.replicas[number].certificates.bundle
        if self.registered and not self.replicas[number].network.away:
            now = pki.certificates_of(self.registered[-1][1], "the registration")
            if not set(pki.certificates_of(bundle, "its own")) <= set(now):
                self.registered.append((self.clock.now, bundle))

    def _heard(self) -> Iterator[bytes]:
        for index, (_, bundle) in enumerate(self.registered):
            replaced = self.registered[index + 1][0] if index + 1 < len(self.registered) else None
            if replaced is None or replaced > self.clock.now - HEARD_WITHIN:
                yield bundle

    def _check(self, replica: Replica) -> None:
        now = self.clock.now
        if replica.network.away and now >= replica.back_at:
            replica.network.away = False
        if replica.round is not None:
            if not replica.round.done():
                return
            failed = replica.round.exception() is not None
            replica.round = None
            replica.checks_at = now if failed else now + TIMING.poll - TICK
        if now >= replica.checks_at:
            replica.round = asyncio.create_task(replica.certificates.round(lambda: self._announce(replica)))

    async def _announce(self, replica: Replica) -> None:
        done = asyncio.get_running_loop().create_future()
        replica.writing = (self.clock.now + replica.delay, replica.certificates.bundle, done)
        if replica.delay == 0:
            self._settle(replica)
        await done

    def _settle(self, replica: Replica) -> None:
        if replica.writing is None or self.clock.now < replica.writing[0]:
            return
        _, bundle, done = replica.writing
        replica.writing = None
        if done.cancelled():
            return
        if replica.network.away:
            done.set_exception(Unavailable(0, "Unreachable", "no answer"))
            return
        self.registered.append((self.clock.now, bundle))
        unheard, replica.network.unheard = replica.network.unheard, False
        if unheard:
            done.set_exception(Unavailable(0, "Unreachable", "it was done, and no one heard of it"))
        else:
            done.set_result(None)

    async def end(self) -> None:
        for replica in self.replicas.values():
            replica.end()
            if replica.round is not None:
                with contextlib.suppress(asyncio.CancelledError, Unavailable):
                    await replica.round


def served(replica: Replica) -> x509.Certificate:
    """The certificate that a replica serves."""
    return replica.certificates.serving
