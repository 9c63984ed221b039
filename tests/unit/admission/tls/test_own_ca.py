"""The platform's own CA in real handshakes: a rotation without a failed handshake, lost races, an unavailable store."""

import asyncio
import ssl
import time
from typing import Any

import pytest
import structlog
from dynamo_admission.tls import own_ca, pki
from dynamo_admission.tls.own_ca import OwnCertificates
from dynamo_admission.tls.rotation import SecretState
from dynamo_admission.tls.timing import Timing
from dynamo_shared.kube import Unavailable
from structlog.testing import CapturingLogger

from tests.building.clock import ManualClock

from .certificates import NAMES, START, MemoryStore, nothing, served_to

HOUR = 3600.0
# With a shorter overlap, because each step of the rotation costs four handshakes.
TIMING = Timing(overlap=HOUR)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


async def opened(store: MemoryStore, clock: ManualClock) -> OwnCertificates:
    certificates = OwnCertificates(store, NAMES, clock, TIMING)
    await certificates.refresh()
    return certificates


async def test_handshakes_succeed_through_a_whole_rotation(store: MemoryStore, clock: ManualClock) -> None:
    # OpenSSL uses its own clock: the tests of the state machine check validity, this one checks signatures.
    clock.now = time.time()
    begun = clock.now
    replicas = [await opened(store, clock) for _ in range(2)]
    contexts = [replica.context for replica in replicas]
    registered, leaves, bundles = b"", set(), set()

    def register(replica: OwnCertificates) -> None:
        nonlocal registered
        registered = replica.bundle

    while clock.now < begun + TIMING.overlap + HOUR:
        for replica in replicas:

            async def changed(replica: OwnCertificates = replica) -> None:
                register(replica)

            await replica.round(changed)
            bundles.add(registered)
            for context, name in ((contexts[0], NAMES[0]), (contexts[1], NAMES[1])):
                leaves.add(served_to(context, registered, name))
        if clock.now == begun:
            store.forced = True
        clock.now += TIMING.settle / 2
    assert len(leaves) == 2
    assert len(bundles) == 3, "the old one, both, the new one"
    assert len(pki.certificates_of(registered, "the last")) == 1
    assert [replica.context for replica in replicas] == contexts, "the listening sockets need not be opened again"


async def test_a_client_that_does_not_trust_the_ca_refuses(store: MemoryStore, clock: ManualClock) -> None:
    clock.now = time.time()
    managed, others = await opened(store, clock), await opened(MemoryStore(), clock)
    with pytest.raises(ssl.SSLCertVerificationError):
        served_to(managed.context, others.bundle, NAMES[0])
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        served_to(managed.context, managed.bundle, "somewhere.else.svc")


async def test_replicas_that_start_together_agree_on_a_ca(store: MemoryStore, clock: ManualClock) -> None:
    class Slow(MemoryStore):
        async def read(self) -> object:  # type: ignore[override]
            observed = await store.read()
            await asyncio.sleep(0)
            return observed

        async def write(self, state: SecretState, observed: object) -> None:
            await store.write(state, observed)  # type: ignore[arg-type]

    replicas = await asyncio.gather(*(opened(Slow(), clock) for _ in range(5)))
    assert {replica.bundle for replica in replicas} == {replicas[0].bundle}
    assert store.writes == 1


@pytest.mark.parametrize("behind", [2 * HOUR, 100 * 24 * HOUR])
async def test_a_replica_whose_clock_is_behind_keeps_the_shared_certificate(
    store: MemoryStore, clock: ManualClock, behind: float
) -> None:
    first = await opened(store, clock)
    store.written = clock.now
    clock.now -= behind
    second = await opened(store, clock)
    assert second.serving == first.serving
    assert store.writes == 1


async def test_without_the_store_no_server_opens_and_open_ones_continue(store: MemoryStore, clock: ManualClock) -> None:
    store.away = True
    with pytest.raises(Unavailable):
        await opened(store, clock)
    store.away = False
    certificates = await opened(store, clock)
    bundle, leaf = certificates.bundle, certificates.serving
    store.away = True
    with pytest.raises(Unavailable):
        await certificates.round(nothing)
    assert (certificates.bundle, certificates.serving) == (bundle, leaf)


async def test_an_announced_ca_is_not_announced_again(store: MemoryStore, clock: ManualClock) -> None:
    certificates = await opened(store, clock)
    reported: list[bytes] = []

    async def changed() -> None:
        reported.append(certificates.bundle)
        if len(reported) == 1:
            raise Unavailable(503, "ServiceUnavailable", "not now")

    with pytest.raises(Unavailable):
        await certificates.round(changed)
    for _ in range(3):
        await certificates.round(changed)
    assert reported == [certificates.bundle] * 2, "what failed was tried again, and then no more"


async def test_the_loop_continues_after_any_error(clock: ManualClock, store: MemoryStore) -> None:
    certificates = OwnCertificates(store, NAMES, clock, Timing.of(60, 30))
    await certificates.refresh()
    attempts = 0
    done = asyncio.Event()

    async def changed() -> None:
        nonlocal attempts
        attempts += 1
        if attempts < 3:
            raise LookupError("the CRD is not installed")
        done.set()

    keeping = asyncio.create_task(certificates.keep(changed))
    await asyncio.wait_for(done.wait(), 60)
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping


def reported_to(logger: CapturingLogger) -> Any:
    """A log with all levels, whatever the log configuration of this process."""
    return structlog.wrap_logger(
        logger, processors=[lambda _logger, _name, event: event], wrapper_class=structlog.BoundLogger
    )


async def test_no_key_is_logged(store: MemoryStore, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    said = CapturingLogger()
    monkeypatch.setattr(own_ca, "log", reported_to(said))
    certificates = await opened(store, clock)
    store.forced = True
    await certificates.round(nothing)
    text = repr(said.calls)
    assert "authority trusted" in text
    assert "PRIVATE" not in text
    assert certificates._state.authority_key == b"", "nor kept in memory"
