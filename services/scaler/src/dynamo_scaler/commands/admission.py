"""Checks whether a command is accepted for a decision, and which part of it was done before."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.replica_limits import too_few
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.untrusted import times
from dynamo_shared.api.wording import many
from dynamo_shared.bus.commands import CommandRefusedError

from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.ledger import is_managed
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey
from dynamo_scaler.commands.cluster_view import ClusterView
from dynamo_scaler.commands.last_commands import LastCommand
from dynamo_scaler.commands.records import ScalingRecord
from dynamo_scaler.commands.request import INVALID, ScaleRequest
from dynamo_scaler.commands.targets import resolve
from dynamo_scaler.commands.writer import Writer

NOT_FOUND, NOT_MANAGED, STALE_GENERATION = "NotFound", "NotManaged", "StaleGeneration"
SUPERSEDED, AUTOSCALED = "Superseded", "HasAutoscaler"
#: If a sender's clock was further ahead than this, its times are ignored: otherwise, after a correction of the clock,
#: its commands would be refused for as long as it had been wrong. Seconds.
_SKEW = 300.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request, resolved against the current graph."""

    graph: KubeObject
    pools: Mapping[PoolKey, DesiredPool]
    #: Requested replicas by pool, without the part that is already done.
    desired: Mapping[PoolKey, int]
    #: The part that this command did before: it was delivered again.
    done: Mapping[PoolKey, ScalingRecord]


@dataclass(frozen=True, slots=True)
class CommandAdmission:
    """Reads commands. `now` is Unix time."""

    view: ClusterView
    writer: Writer
    now: Callable[[], float]

    async def admit(self, request: ScaleRequest) -> Admitted:
        """The request of a command. CommandRefusedError if this platform cannot do it."""
        graph = await self._graph(request)
        pools = {pool.key: pool for pool in self.view.pools(graph)}
        desired = resolve(request.targets, list(pools.values()))
        done: dict[PoolKey, ScalingRecord] = {}
        for key in desired:
            record = self.view.record(pools[key])
            if record is not None and record.includes(request.command):
                done[key] = record
                continue
            if problem := too_few(desired[key], pools[key].least):
                raise CommandRefusedError(INVALID, f"{key.component}: {problem}")
            self._refuse_older(request, key, record, intents.read(graph).get(key.component))
            scaler = self.view.autoscaler(pools[key])
            if scaler:
                raise CommandRefusedError(
                    AUTOSCALED,
                    f"{scaler} scales {key.component}, and would undo this: change its bounds, or remove it",
                )
        generation = graph["metadata"]["generation"]
        # A half-done command has changed the generation itself.
        if request.expected_generation not in {0, generation} and not done:
            raise CommandRefusedError(
                STALE_GENERATION,
                f"{request.graph} is at generation {generation}, not {request.expected_generation}: "
                "read the graph again, and send a new command",
            )
        self._remember(request, desired)
        return Admitted(graph, pools, {key: n for key, n in desired.items() if key not in done}, done)

    async def given_up(self, request: ScaleRequest) -> tuple[KubeObject, list[tuple[DesiredPool, intents.Intent]]]:
        """The graph, and the requester's earlier unfinished requests. CommandRefusedError like for other commands."""
        if not request.requester:
            raise CommandRefusedError(INVALID, "withdraw: needs requester, whose requests it withdraws")
        graph = await self._graph(request)
        pools = self.view.pools(graph)
        named = set(resolve(request.targets, pools)) if request.targets else {pool.key for pool in pools}
        self._remember(request, dict.fromkeys(named))
        known = intents.read(graph)
        earlier = [
            (pool, known[pool.key.component]) for pool in pools if pool.key.component in known and pool.key in named
        ]
        return graph, [
            (pool, intent)
            for pool, intent in earlier
            if intent.requester == request.requester and not _before(request.sent, intent.sent)
        ]

    async def _graph(self, request: ScaleRequest) -> KubeObject:
        key = request.graph
        if not is_managed(key, self.view.settings.managed):
            raise CommandRefusedError(
                NOT_MANAGED, f"platform.scaler.managed does not include {key}: commands cannot scale it"
            )
        if self.view.is_elsewhere(key.namespace):
            raise CommandRefusedError(NOT_MANAGED, f"namespace {key.namespace} is managed by another platform")
        graph = self.view.graph(key)
        if graph is None or not request.means(graph) or objects.generation(graph) < request.expected_generation:
            # The cache may not have it yet.
            await self.writer.read_again(DYNAMO_GRAPH_DEPLOYMENTS, key)
            graph = self.view.graph(key)
        if graph is None:
            raise CommandRefusedError(NOT_FOUND, f"there is no DynamoGraphDeployment {key}, or it is being deleted")
        if not request.means(graph):
            raise CommandRefusedError(NOT_FOUND, f"DynamoGraphDeployment {key} has since been deleted and recreated")
        return graph

    def _remember(self, request: ScaleRequest, desired: Mapping[PoolKey, int | None]) -> None:
        """Remember the latest commands. A restart forgets those without a record on the graph."""
        for key, replicas in desired.items() if request.requester and not request.dry_run else ():
            if not _is_after(self.view.last_commands.get(key, request.requester), request):
                command = LastCommand(request.requester, request.sent, self.now(), replicas)
                self.view.last_commands.note(key, command)

    def _refuse_older(self, request: ScaleRequest, key: PoolKey, *later: ScalingRecord | intents.Intent | None) -> None:
        """Retried commands may arrive after newer ones of the same sender, whose clock orders them."""
        for each in (self.view.last_commands.get(key, request.requester), *later):
            if each is not None and _is_after(each, request):
                asked = "withdrew" if each.replicas is None else f"requested {many(each.replicas, 'replica')}"
                raise CommandRefusedError(
                    SUPERSEDED, f"{key.component}: a newer command of {request.requester} {asked}"
                )


def _is_after(other: ScalingRecord | intents.Intent | LastCommand | None, request: ScaleRequest) -> bool:
    """Whether another command of the same requester is newer, by the requester's clock."""
    if other is None or not request.requester or other.requester != request.requester:
        return False
    sent = _moment(other.sent)
    # Well after the decision about it: the sender's clock was wrong.
    is_ahead = sent is not None and sent - times.from_unix(other.at) > timedelta(seconds=_SKEW)
    return _before(request.sent, other.sent) and not is_ahead


def _before(one: str, other: str) -> bool:
    """Whether a time is before another; False for invalid times."""
    first, second = _moment(one), _moment(other)
    return first is not None and second is not None and first < second


def _moment(text: str) -> datetime | None:
    """A time of the sender's clock, in UTC if it has no zone; None if it is not a time."""
    return times.moment(text) or times.moment(f"{text}Z")
