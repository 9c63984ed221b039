"""Whether a command may be decided about at all, and what of it has been done before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.untrusted import times
from dynamo_shared.bus.commands import CommandRefusedError

from dynamo_scaler.budgets import intents
from dynamo_scaler.budgets.ledger import is_managed
from dynamo_scaler.budgets.pools import Pool, PoolKey
from dynamo_scaler.commands.asking import Ask
from dynamo_scaler.commands.picture import Picture
from dynamo_scaler.commands.records import Record
from dynamo_scaler.commands.targets import resolve
from dynamo_scaler.commands.writing import Writer

NOT_FOUND, NOT_MANAGED, STALE_GENERATION = "NotFound", "NotManaged", "StaleGeneration"
SUPERSEDED, AUTOSCALED = "Superseded", "HasAutoscaler"
#: A sender's clock that was further ahead than this says nothing of what came after: put right, it would be refused for as long
#: as it had been wrong. Seconds.
_SKEW = 300.0


@dataclass(frozen=True, slots=True)
class Admitted:
    """A request, read against the graph as it is."""

    graph: KubeObject
    pools: Mapping[PoolKey, Pool]
    #: Replicas asked for, by pool, of what has not been done yet.
    wanted: Mapping[PoolKey, int]
    #: What this very command did before: it was delivered again.
    done: Mapping[PoolKey, Record]


@dataclass(frozen=True, slots=True)
class Admission:
    """Reads commands."""

    picture: Picture
    writer: Writer

    async def admit(self, ask: Ask) -> Admitted:
        """What a command asks for. CommandRefusedError where that can never be done, or not by us."""
        graph = await self._graph(ask)
        pools = {pool.key: pool for pool in self.picture.pools(graph)}
        wanted = resolve(ask.targets, list(pools.values()))
        done: dict[PoolKey, Record] = {}
        for key in wanted:
            record = self.picture.record(pools[key])
            if record is not None and record.did(ask.command):
                done[key] = record
                continue
            self._refuse_older(ask, key, record, intents.read(graph).get(key.component))
            scaler = self.picture.autoscaler(pools[key])
            if scaler:
                raise CommandRefusedError(
                    AUTOSCALED,
                    f"{key.component} is scaled by {scaler}, which would undo this: change its bounds, or remove it",
                )
        generation = graph["metadata"]["generation"]
        # A command that was half done has changed the generation by itself.
        if ask.expected_generation not in {0, generation} and not done:
            raise CommandRefusedError(
                STALE_GENERATION,
                f"{ask.graph} is at generation {generation}, not {ask.expected_generation}: "
                "look at it again, and decide anew",
            )
        return Admitted(graph, pools, {key: n for key, n in wanted.items() if key not in done}, done)

    async def _graph(self, ask: Ask) -> KubeObject:
        key = ask.graph
        if not is_managed(key, self.picture.settings.managed):
            raise CommandRefusedError(
                NOT_MANAGED, f"{key} is not among platform.scaler.managed: it is not scaled by commands"
            )
        if self.picture.is_elsewhere(key.namespace):
            raise CommandRefusedError(NOT_MANAGED, f"namespace {key.namespace} is looked after by another platform")
        graph = self.picture.graph(key)
        if graph is None or graph["metadata"]["generation"] < ask.expected_generation:
            # The news of it may still be on its way to us.
            await self.writer.read_again(DYNAMO_GRAPH_DEPLOYMENTS, key)
            graph = self.picture.graph(key)
        if graph is None:
            raise CommandRefusedError(NOT_FOUND, f"there is no DynamoGraphDeployment {key}, or it is being deleted")
        return graph

    def _refuse_older(self, ask: Ask, key: PoolKey, *later: Record | intents.Intent | None) -> None:
        """Commands that are retried may arrive behind newer ones of the same sender, whose one clock tells them apart."""
        for each in later:
            if each is None or not ask.requester or each.requester != ask.requester:
                continue
            if _before(ask.sent, each.sent) and not _is_ahead(each.sent, each.at):
                raise CommandRefusedError(
                    SUPERSEDED,
                    f"{key.component}: a newer command of {ask.requester} asked for {each.replicas} replicas",
                )


def _before(one: str, other: str) -> bool:
    """Whether a time is before another; times that cannot be read are not."""
    try:
        return _moment(one) < _moment(other)
    except ValueError:
        return False


def _is_ahead(sent: str, decided: float) -> bool:
    """Whether a command was sent, by its sender's clock, well after it was decided about, Unix time by ours."""
    return _moment(sent) - times.from_unix(decided) > timedelta(seconds=_SKEW)


def _moment(text: str) -> datetime:
    """A time by its sender's clock, in UTC where it has no zone. ValueError where it is not a time."""
    moment = times.moment(text) or times.moment(f"{text}Z")
    if moment is None:
        raise ValueError("not a time")
    return moment
