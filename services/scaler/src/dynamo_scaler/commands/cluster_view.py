"""The inputs of a decision, read from the object cache: pools, budgets, intents, and reasons for or against scaling."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from dynamo_shared.aio import Turns
from dynamo_shared.api import device_claims, objects
from dynamo_shared.api.device_claims import KnownClaims
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import unschedulable
from dynamo_shared.api.registry.annotations import SCALING_INTENTS
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.runtime.settings.scaler import Scaler
from dynamo_shared.state import ObjectCache

from dynamo_scaler.adapters import pods
from dynamo_scaler.autoscaling import rivals
from dynamo_scaler.budgets import claims, intents
from dynamo_scaler.budgets.accounts import BudgetAccounts
from dynamo_scaler.budgets.intents import Intent, OpenIntent
from dynamo_scaler.budgets.ledger import is_managed
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey, pools_of
from dynamo_scaler.commands import records
from dynamo_scaler.commands.decision import DecisionInputs
from dynamo_scaler.commands.last_commands import LastCommands
from dynamo_scaler.reconcilers.adapters import BY_GRAPH
from dynamo_scaler.safety import holds
from dynamo_scaler.safety.history import RequestHistory
from dynamo_scaler.safety.holds import Shapes
from dynamo_scaler.safety.policy import InvalidPolicyError, limits_of
from dynamo_scaler.safety.verdict import Situation

#: Intents, and graphs with intents, after which no other graph is read for one decision, in which nothing is awaited.
MAX_PARTNERS, MOST_READ = 100, 200
#: Indexes of graphs with intents, all and those of which some is held.
_INTENTS, _HELD = "intents", "held"


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A read-only view of the cache. Create it before the cache is filled."""

    cache: ObjectCache
    settings: Scaler
    #: Whether another platform manages a namespace.
    is_elsewhere: Callable[[str], bool]
    shapes: Shapes = field(default_factory=Shapes)
    history: RequestHistory = field(default_factory=RequestHistory)
    last_commands: LastCommands = field(default_factory=LastCommands)
    #: Pools of graphs that have not changed, with unchanged adapters and claims: a budget may count a thousand.
    _pools: dict[ObjectKey, list[DesiredPool]] = field(default_factory=dict)
    _accounts: BudgetAccounts = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_accounts", BudgetAccounts(self.settings.budgets, self._counted_pools))
        claims.index(self.cache)
        self.cache.on_change(self._changed)
        self.cache.on_leave(self._left)
        self.cache.add_index(DYNAMO_GRAPH_DEPLOYMENTS, _INTENTS, _intents_of)

    def graph(self, key: ObjectKey) -> KubeObject | None:
        """A graph that is not being deleted."""
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        return graph if graph is not None and not objects.is_deleting(graph) else None

    def serves(self, graph: ObjectKey) -> bool:
        """Whether commands to this platform scale a graph. Other graphs still count in budgets."""
        return is_managed(graph, self.settings.managed) and not self.is_elsewhere(graph.namespace)

    async def update(self) -> None:
        """Count the pools of changed graphs in their budgets. A decision needs it, and awaits nothing itself."""
        await self._accounts.update()

    def has_intents(self) -> bool:
        """Whether a graph has intents."""
        return bool(self.cache.keys_by_index(DYNAMO_GRAPH_DEPLOYMENTS, _INTENTS, _INTENTS))

    def keys_with_intents(self, *, held: bool = False) -> list[ObjectKey]:
        """Keys of graphs with intents, or only with held intents. A budget may have refused thousands of them."""
        return list(self.cache.keys_by_index(DYNAMO_GRAPH_DEPLOYMENTS, _INTENTS, _HELD if held else _INTENTS))

    def pools(self, graph: KubeObject) -> list[DesiredPool]:
        """The pools of a cached graph."""
        key = key_of(graph)
        known = self._pools.get(key)
        if known is None:
            known = self._pools[key] = pools_of(graph, self._adapters(key), self._claims_of)
        return known

    def _counted_pools(self, key: ObjectKey) -> Sequence[DesiredPool]:
        """The pools of a graph that is not being deleted."""
        graph = self.graph(key)
        return self.pools(graph) if graph is not None else ()

    def _recount(self, graph: ObjectKey) -> None:
        self._pools.pop(graph, None)
        self._accounts.recount(graph)

    def _left(self, resource: Resource, obj: KubeObject) -> None:
        if resource == DYNAMO_GRAPH_DEPLOYMENTS:
            self._pools.pop(key_of(obj), None)
            self._accounts.remove(key_of(obj))

    def _claims_of(self, pool: PoolKey) -> KnownClaims:
        return KnownClaims(
            lambda name: self.cache.get(RESOURCE_CLAIM_TEMPLATES, ObjectKey(pool.namespace, name)),
            lambda name: self.cache.get(RESOURCE_CLAIMS, ObjectKey(pool.namespace, name)),
            lambda: pods.with_claims(self.cache, *pool),
        )

    def _changed(self, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None) -> None:
        if resource == DYNAMO_GRAPH_DEPLOYMENTS:
            self._pools.pop(key, None)
            if new is not None:
                self._accounts.add(key)
                self.shapes.note(new)
            elif old is not None:
                self.shapes.forget(old)
                self.history.forget(key)
                self.last_commands.forget(key)
        elif resource == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS:
            for each in (old, new):
                if each is not None:
                    self._recount(ObjectKey(key.namespace, each["spec"]["dgdRef"]["name"]))
        elif resource == PODS:
            # The allocation of a pod's claim may determine the GPUs of its component's replicas.
            if device_claims.created_for(old or {}) != device_claims.created_for(new or {}):
                for each in (old, new):
                    if each is not None:
                        self._recount(pods.graph_of(each))
        elif resource == RESOURCE_CLAIM_TEMPLATES or (
            resource == RESOURCE_CLAIMS and device_claims.of_claim(old) != device_claims.of_claim(new)
        ):
            for graph in claims.graphs_of(self.cache, resource, key):
                self._recount(graph)

    def inputs(self, keys: Iterable[PoolKey], now: float) -> DecisionInputs:
        """The inputs of a decision about some pools. InvalidPolicyError if a policy of their graphs is invalid."""
        desired = set(keys)
        graphs = {key.graph_key for key in desired}
        every = self._accounts.of(graphs)
        pools = {pool.key: pool for key in graphs for pool in self._counted_pools(key)}
        situations = {key: self.situation(pools[key], now) for key in desired}

        def concerns(graph: ObjectKey) -> bool:
            return graph in graphs or any(account.includes(graph) for account in every)

        def others() -> list[OpenIntent]:
            open_intents: list[OpenIntent] = []
            for each in self.open_intents(concerns, now):
                if self.autoscaler(each.pool):
                    continue
                try:
                    situations[each.key] = self.situation(each.pool, now)
                except InvalidPolicyError:
                    # The next command for this graph reports the error; until then no command is paired with it.
                    continue
                open_intents.append(each)
            return open_intents

        return DecisionInputs(pools, every, others, lambda pool: situations[pool.key], now)

    def open_intents(self, concerns: Callable[[ObjectKey], bool], now: float) -> list[OpenIntent]:
        """Fresh intents of some graphs that are still to be done; of thousands of graphs some of each namespace."""
        open_intents: list[OpenIntent] = []
        turns: Turns[ObjectKey] = Turns(lambda key: key.namespace)
        for key in self.keys_with_intents():
            if concerns(key) and self.serves(key):
                turns.add(key)
        for _ in range(min(len(turns), MOST_READ)):
            if len(open_intents) >= MAX_PARTNERS:
                break
            key, _ = turns.pop()
            graph = self.graph(key)
            if graph is None:
                continue
            pools = {pool.key.component: pool for pool in self.pools(graph)}
            for component, intent in intents.read(graph).items():
                pool = pools.get(component)
                if (
                    pool is not None
                    and intent.is_fresh(now, self.settings.intent_lifetime)
                    and self.is_open(intent, pool)
                ):
                    open_intents.append(OpenIntent(pool, intent))
        return open_intents

    def is_open(self, intent: Intent, pool: DesiredPool) -> bool:
        """Whether an intent of a pool is still open.

        Its own command may have scaled the pool last, and stopped before it updated the intent.
        """
        if intent.is_open(pool):
            return True
        record = self.record(pool)
        own = record is not None and record.command == intent.command and record.replicas == pool.current
        return own and pool.current != intent.replicas

    def record(self, pool: DesiredPool) -> records.ScalingRecord | None:
        """The last scaling of a pool by a command."""
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, pool.key.graph_key)
        return records.latest((graph, self.adapter(pool)), pool.key.component)

    def adapter(self, pool: DesiredPool) -> KubeObject | None:
        """The adapter that owns a pool's replicas."""
        if not pool.adapter:
            return None
        key = ObjectKey(pool.key.namespace, pool.adapter)
        return self.cache.get(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key)

    def autoscaler(self, pool: DesiredPool) -> str:
        """The autoscaler of a pool: `HorizontalPodAutoscaler web`; empty without one."""
        if not pool.adapter:
            return ""
        return next(iter(rivals.autoscalers_of(self.cache, ObjectKey(pool.key.namespace, pool.adapter))), "")

    def situation(self, pool: DesiredPool, now: float) -> Situation:
        """The reasons for or against scaling a pool. InvalidPolicyError if its graph's policy is invalid."""
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, pool.key.graph_key)
        assert graph is not None
        record = self.record(pool)
        return Situation(
            limits=limits_of(graph, pool.key.component, self.settings.limits),
            rollout=holds.rollout(graph, pool.key.component, observed=self.shapes.is_observed(graph)),
            growth=holds.failed(graph) or holds.capacity(self._waiting(pool, graph), self._why_waiting),
            scaled_at=record.at if record is not None else 0.0,
            asked=self.history.of(pool.key, pool.current, now),
        )

    def _waiting(self, pool: DesiredPool, graph: KubeObject) -> list[ObjectKey]:
        """Pods without a node that compete with a pool's new pods: its own, and if it has GPUs, all of the graph with
        GPUs.
        """
        rivals = [each for each in self.pools(graph) if each.key == pool.key or (pool.has_gpus and each.has_gpus)]
        return [pod for each in rivals for pod in pods.waiting(self.cache, *each.key)]

    def _why_waiting(self, pod: ObjectKey) -> str:
        return str((unschedulable(self.cache.get(PODS, pod) or {}) or {}).get("message", ""))

    def _adapters(self, graph: ObjectKey) -> list[KubeObject]:
        adapters = self.cache.by_index(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, BY_GRAPH, str(graph))
        kept = (each for each in adapters if not objects.is_deleting(each))
        return sorted(kept, key=lambda each: str(each["metadata"]["name"]))


def _intents_of(graph: KubeObject) -> list[str]:
    if SCALING_INTENTS not in objects.annotations(graph):
        return []
    return [_INTENTS, _HELD] if any(each.held for each in intents.read(graph).values()) else [_INTENTS]
