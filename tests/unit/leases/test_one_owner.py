"""A partition has at most one owner, whatever time, the network, the server and the replicas do.

A model of etcd and of replicas on a network that delays, loses and reorders requests and answers, also beyond the
caller's time-out. The decisions (`Claims`, `Term`) are the real ones.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import pytest
from dynamo_shared.leases.claims import Claim, Claims, Drain
from dynamo_shared.leases.term import Term
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import TIMES, examples

COUNT = 3
TTL = 10
NAMES = ("a", "b")
#: Seconds that may pass in one step.
STEPS = (0.1, 0.5, 1.0, 3.0, 7.0)


@dataclass
class Server:
    """etcd: leases expire, their keys are deleted with them, and each write has one revision."""

    now: float = 0.0
    revision: int = 1
    next_lease: int = 1
    leases: dict[int, float] = field(default_factory=dict)
    members: dict[str, int] = field(default_factory=dict)
    claims: dict[int, Claim] = field(default_factory=dict)
    marked: bool = True
    settling: int = 0

    def expire(self) -> None:
        for lease in [lease for lease, end in self.leases.items() if end <= self.now]:
            self.revoke(lease)

    def revoke(self, lease: int) -> None:
        self.leases.pop(lease, None)
        self.members = {name: held for name, held in self.members.items() if held != lease}
        self.claims = {n: claim for n, claim in self.claims.items() if claim.lease != lease}

    def grant(self) -> int:
        self.next_lease += 1
        self.leases[self.next_lease] = self.now + TTL
        return self.next_lease

    def keepalive(self, lease: int) -> float:
        if lease not in self.leases:
            return 0.0
        self.leases[lease] = self.now + TTL
        return float(TTL)

    def claim(self, partition: int, lease: int) -> None:
        if not self.marked:
            self.marked, self.settling = True, self.grant()
        elif self.settling not in self.leases and lease in self.leases and partition not in self.claims:
            self.revision += 1
            self.claims[partition] = Claim(lease, self.revision)

    def release(self, partition: int, claim: Claim) -> None:
        if self.claims.get(partition) == claim:
            del self.claims[partition]


@dataclass
class Replica:
    """The knowledge of a process, and its work in progress."""

    name: str
    claims: Claims
    term: Term | None = None
    working: set[int] = field(default_factory=set)
    drains: list[Drain] = field(default_factory=list)
    checks: int = 0

    def lease(self, now: float) -> int:
        return self.term.lease if self.term is not None and self.term.alive(now) else 0


class World:
    """One method for each possible step. Numbers select the object of the step."""

    def __init__(self) -> None:
        self.server = Server()
        self.replicas = {name: Replica(name, Claims(name, COUNT)) for name in NAMES}
        self.requests: list[Callable[[], Callable[[], None] | None]] = []
        self.answers: list[Callable[[], None]] = []

    # --- time and network

    def time_passes(self, number: int) -> None:
        self.server.now += STEPS[number % len(STEPS)]
        self.server.expire()
        for replica in self.replicas.values():
            if replica.term is not None and not replica.lease(self.server.now):
                self._lose(replica)

    def a_request_arrives(self, number: int) -> None:
        if self.requests:
            answer = self.requests.pop(number % len(self.requests))()
            if answer is not None:
                self.answers.append(answer)

    def an_answer_arrives(self, number: int) -> None:
        if self.answers:
            self.answers.pop(number % len(self.answers))()

    def something_is_lost(self, number: int) -> None:
        lost = self.requests or self.answers
        if lost:
            lost.pop(number % len(lost))

    def the_server_loses_its_data(self, _: int) -> None:
        self.server.leases, self.server.members, self.server.claims = {}, {}, {}
        self.server.marked, self.server.settling = False, 0
        self.server.revision = 1  # Revisions start again. Leases do not, because their ids are random.

    # --- replicas

    def asks_for_a_lease(self, number: int) -> None:
        replica, sent = self._replica(number), self.server.now
        if replica.term is not None:
            return

        def request() -> Callable[[], None]:
            lease = self.server.grant()

            def answer() -> None:
                term = Term.granted(lease, TTL, sent)
                if replica.term is None and term.alive(self.server.now):
                    replica.term = term

            return answer

        self.requests.append(request)

    def keeps_its_lease(self, number: int) -> None:
        replica, sent = self._replica(number), self.server.now
        term = replica.term
        if term is None:
            return

        def request() -> Callable[[], None]:
            ttl = self.server.keepalive(term.lease)

            def answer() -> None:
                if replica.term is None or replica.term.lease != term.lease:
                    return
                if ttl:
                    replica.term = replica.term.renewed(ttl, sent)
                else:
                    self._lose(replica)

            return answer

        self.requests.append(request)

    def registers(self, number: int) -> None:
        replica = self._replica(number)
        lease = replica.lease(self.server.now)
        if lease:
            self.requests.append(partial(self._register, replica.name, lease))

    def checks(self, number: int) -> None:
        """One check at a time, as in `Partitions`: an earlier one without an answer is given up."""
        replica = self._replica(number)
        replica.checks += 1
        number = replica.checks

        def request() -> Callable[[], None]:
            members, claims = set(self.server.members), dict(self.server.claims)

            def answer() -> None:
                if replica.checks == number:
                    self._decide(replica, members, claims)

            return answer

        self.requests.append(request)

    def is_undisturbed(self, number: int) -> None:
        """Its requests are answered at once; other requests in progress are not.

        Without this, random steps rarely reach a claim.
        """
        for _ in range(1 + number % 3):
            for step in (self.asks_for_a_lease, self.keeps_its_lease, self.registers, self.checks):
                waiting, self.requests = self.requests, []
                step(number)
                mine, self.requests = self.requests, waiting
                for request in mine:
                    self._promptly(request)
            self.notices_that_work_has_ended(number)

    def begins_work(self, number: int) -> None:
        """On all its partitions."""
        replica = self._replica(number)
        replica.working |= replica.claims.held(replica.lease(self.server.now))

    def ends_work(self, number: int) -> None:
        self._replica(number).working.clear()

    def notices_that_work_has_ended(self, number: int) -> None:
        replica = self._replica(number)
        for drain in list(replica.drains):
            if drain.partition not in replica.working:
                replica.drains.remove(drain)
                replica.claims.drained(drain)

    def is_started_again(self, number: int) -> None:
        name = NAMES[number % len(NAMES)]
        self.replicas[name].checks += 1
        self.replicas[name] = Replica(name, Claims(name, COUNT))

    def every_partition_has_at_most_one_owner(self) -> None:
        for partition in range(COUNT):
            owners = [replica.name for replica in self.replicas.values() if self._owns(replica, partition)]
            assert len(owners) <= 1, f"{partition}: {owners}"

    def _replica(self, number: int) -> Replica:
        return self.replicas[NAMES[number % len(NAMES)]]

    def _owns(self, replica: Replica, partition: int) -> bool:
        lease = replica.lease(self.server.now)
        return replica.claims.holds(partition, lease) or (bool(lease) and partition in replica.working)

    def _register(self, name: str, lease: int) -> None:
        if lease in self.server.leases:
            self.server.members[name] = lease

    def _decide(self, replica: Replica, members: set[str], claims: dict[int, Claim]) -> None:
        lease = replica.lease(self.server.now)
        decision = replica.claims.observe(lease, members, claims)
        replica.drains += decision.drain
        replica.working -= decision.cut_off
        self.requests += [partial(self.server.claim, partition, lease) for partition in decision.claim]
        self.requests += [partial(self.server.release, partition, claim) for partition, claim in decision.release]

    def _promptly(self, request: Callable[[], Callable[[], None] | None]) -> None:
        waiting, self.requests = self.requests, []
        answer = request()
        if answer is not None:
            answer()
        mine, self.requests = self.requests, waiting
        for following in mine:
            self._promptly(following)

    def _lose(self, replica: Replica) -> None:
        replica.term = None
        replica.working -= replica.claims.drop()
        replica.drains.clear()


#: The relative frequency of each step: disasters are rare, otherwise there is nothing that they could destroy.
HAPPENS: dict[Callable[[World, int], None], int] = {
    World.is_undisturbed: 8,
    World.time_passes: 2,
    World.a_request_arrives: 4,
    World.an_answer_arrives: 4,
    World.something_is_lost: 1,
    World.asks_for_a_lease: 1,
    World.keeps_its_lease: 3,
    World.registers: 1,
    World.checks: 4,
    World.begins_work: 4,
    World.ends_work: 1,
    World.notices_that_work_has_ended: 2,
    World.is_started_again: 1,
    World.the_server_loses_its_data: 1,
}
WEIGHTED = [event for event, weight in HAPPENS.items() for _ in range(weight)]
NUMBERS = 12

events = st.tuples(st.sampled_from(WEIGHTED), st.integers(0, NUMBERS - 1))
History = list[tuple[Callable[[World, int], None], int]]


def _play(history: History) -> None:
    world = World()
    for event, number in history:
        event(world, number)
        world.every_partition_has_at_most_one_owner()


@examples(30)
@given(st.lists(events, min_size=20, max_size=80))
def test_every_partition_has_at_most_one_owner(history: History) -> None:
    _play(history)


@pytest.mark.exhaustive
def test_every_partition_has_at_most_one_owner_in_longer_random_histories() -> None:
    """Random choice gets further than hypothesis in the same time."""
    for seed in range(500 * TIMES):
        chance = random.Random(seed)
        _play([(chance.choice(WEIGHTED), chance.randrange(NUMBERS)) for _ in range(chance.randint(20, 100))])
