"""The GPUs of budgets are kept as objects change, and are not added up for each decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from dynamo_scaler.budgets.accounts import BudgetAccounts
from dynamo_scaler.budgets.ledger import Account
from dynamo_scaler.budgets.pools import DesiredPool, PoolKey, pools_of
from dynamo_scaler.commands import cluster_view
from dynamo_scaler.commands.decision import decide
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.runtime.settings.scaler import Budget, Scaler
from hypothesis import given
from hypothesis import strategies as st

from tests.building.objects import stored_object
from tests.building.waiting import with_turns

from .harness import FREE, START, ScalerHarness
from .test_budget_transfers import ReadByKey, accounts

BUDGETS = (
    Budget(name="all", max_gpus=9),
    Budget(name="team", namespaces=("team",), max_gpus=9),
    Budget(name="a", deployments=("team/a", "b"), max_gpus=9),
)
GRAPHS = [ObjectKey(namespace, name) for namespace in ("team", "other") for name in ("a", "b")]
COMPONENTS, CLAIMS = ("Prefill", "Decode"), ("x", "y")
REPLICAS = st.integers(0, 3)


def figures(every: Iterable[Account], changes: dict[PoolKey, int]) -> list[Any]:
    return [
        (each.budget.name, dict(each.pools), each.before, each.after(changes), {*map(str, each.unknown(changes))})
        for each in every
    ]


KEYS = [PoolKey(*graph, component) for graph in GRAPHS for component in COMPONENTS]
POOL = st.builds(
    DesiredPool,
    st.sampled_from(KEYS),
    type=st.just("decode"),
    current=REPLICAS,
    gpus=st.integers(0, 4),
    shared=st.dictionaries(st.sampled_from([ObjectKey("team", each) for each in CLAIMS]), st.integers(1, 8)),
    unknown=st.sampled_from([(), ("it waits",)]),
)


@given(st.lists(st.one_of(POOL, st.sampled_from(KEYS))), st.dictionaries(st.sampled_from(KEYS), REPLICAS))
def test_an_account_of_changing_pools_equals_one_of_the_final_pools(
    steps: list[DesiredPool | PoolKey], changes: dict[PoolKey, int]
) -> None:
    account, pools = Account(BUDGETS[0]), dict[PoolKey, DesiredPool]()
    for step in steps:
        if isinstance(step, DesiredPool):
            account.put(step)
            pools[step.key] = step
        else:
            account.remove(step)
            pools.pop(step, None)
    assert figures([account], changes) == figures(accounts(BUDGETS[:1], pools.values()), changes)


GRAPH = st.fixed_dictionaries(
    {
        "deleting": st.booleans(),
        "components": st.dictionaries(
            st.sampled_from(COMPONENTS),
            st.tuples(REPLICAS, st.integers(0, 2), st.lists(st.sampled_from(CLAIMS), unique=True)),
        ),
    }
)
STEP = st.one_of(
    st.tuples(st.just(DYNAMO_GRAPH_DEPLOYMENTS), st.sampled_from(GRAPHS), st.none() | GRAPH),
    st.tuples(
        st.just(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS),
        st.sampled_from(GRAPHS),
        st.none() | st.tuples(st.sampled_from(COMPONENTS), REPLICAS),
    ),
    st.tuples(
        st.just(RESOURCE_CLAIMS),
        st.sampled_from([ObjectKey("team", each) for each in CLAIMS]),
        st.none() | st.sampled_from([1, 4, "all"]),
    ),
    st.tuples(st.just("count"), st.just(GRAPHS[0]), st.none()),
    st.tuples(st.just("forget"), st.sampled_from(GRAPHS), st.none()),
)


class Written:
    """Objects in the cache of a scaler, each write with a new version."""

    def __init__(self) -> None:
        self.harness = ScalerHarness(Scaler(limits=FREE, budgets=BUDGETS))
        self.cache, self.view = self.harness.cache, self.harness.view
        self.writes = 0

    def do(self, resource: Resource | str, key: ObjectKey, how: Any) -> None:
        if resource == "count":
            self.kept()
        elif resource == "forget":
            self.cache.forget(DYNAMO_GRAPH_DEPLOYMENTS, [key])
        elif isinstance(resource, Resource):
            self.write(resource, key, how)

    def write(self, resource: Resource, key: ObjectKey, how: Any) -> None:
        self.writes += 1
        known = self.cache.get(resource, key)
        if how is None:
            self.cache.remove(resource, key, objects.uid(known) if known else "")
            return
        obj = stored_object(resource, key.name, uid=objects.uid(known) if known else f"u{self.writes}")
        obj["metadata"] |= {"namespace": key.namespace, "resourceVersion": str(self.writes)}
        if resource == DYNAMO_GRAPH_DEPLOYMENTS:
            obj["spec"] = {"components": [self.component(name, *each) for name, each in how["components"].items()]}
            obj["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if how["deleting"] else {}
        elif resource == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS:
            component, replicas = how
            obj["spec"] = {"dgdRef": {"name": key.name, "componentName": component}, "replicas": replicas}
        else:
            amount = {"allocationMode": "All"} if how == "all" else {"count": how}
            request = {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", **amount}}
            obj["spec"] = {"devices": {"requests": [request]}}
        self.cache.put(resource, obj)

    @staticmethod
    def component(name: str, replicas: int, gpus: int, claims: list[str]) -> KubeObject:
        main = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
        named = [{"name": each, "resourceClaimName": each} for each in claims]
        template = {"spec": {"containers": [main], "resourceClaims": named}}
        return {"name": name, "replicas": replicas, "scalingAdapter": {}, "podTemplate": template}

    def kept(self) -> list[Account]:
        return self.view._accounts.of(GRAPHS)

    def added_up(self) -> list[Account]:
        graphs = [each for each in self.cache.list(DYNAMO_GRAPH_DEPLOYMENTS) if not objects.is_deleting(each)]
        view = self.view
        pools = (pool for each in graphs for pool in pools_of(each, view._adapters(key_of(each)), view._claims_of))
        return accounts(BUDGETS, pools)


@given(st.lists(STEP, max_size=30), st.dictionaries(st.sampled_from(KEYS), REPLICAS))
def test_kept_sums_equal_those_added_up_after_any_changes(steps: list[Any], changes: dict[PoolKey, int]) -> None:
    written = Written()
    for step in steps:
        written.do(*step)
    assert figures(written.kept(), changes) == figures(written.added_up(), changes)


async def test_a_decision_counts_only_graphs_that_have_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each decision added up the pools of all graphs: a fifth of a second with a hundred thousand pools."""
    harness = ScalerHarness(Scaler(limits=FREE, budgets=BUDGETS))
    for number in range(100):
        harness.graph(f"g{number}", adapters=False, Prefill=1, Decode=1)
    counted: list[str] = []

    def recorded(graph: KubeObject, *rest: Any) -> list[DesiredPool]:
        counted.append(graph["metadata"]["name"])
        return pools_of(graph, *rest)

    monkeypatch.setattr(cluster_view, "pools_of", recorded)
    await harness.view.update()
    assert len(counted) == 100
    counted.clear()
    harness.change("g7", lambda graph: graph["spec"]["components"][0].update(replicas=4))
    key = PoolKey("team", "g1", "Decode")
    for account in harness.view._accounts.of([key.graph_key]):
        account._pools = ReadByKey(account._pools.items())
    decision = decide({key: 3}, harness.view.inputs([key], START))
    assert counted == ["g7"]
    assert [(each.before, each.after) for each in decision.figures] == [(203, 205)] * 2


async def test_other_tasks_run_while_all_graphs_are_counted() -> None:
    graphs = [ObjectKey("team", f"g{number}") for number in range(100)]
    kept = BudgetAccounts(BUDGETS, lambda graph: [DesiredPool(PoolKey(*graph, "Decode"), "decode", 1, 1)])
    for each in graphs:
        kept.add(each)
    _, turns = await with_turns(kept.update())
    assert turns >= 10
    assert [each.before for each in kept.of(graphs)] == [100, 100]


def test_a_replica_that_decides_nothing_keeps_nothing_of_graphs_that_are_gone() -> None:
    """Only one replica decides; a tenant may name any number of graphs in adapters, and delete graphs."""
    written, some = Written(), {"deleting": False, "components": {"Decode": (1, 1, [])}}
    for number in range(20):
        key = ObjectKey("team", f"g{number}")
        written.write(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, key, ("Decode", 2))
        written.write(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("other", key.name), some)
        written.write(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey("other", key.name), None)
    kept = written.view._accounts
    assert (kept._changed, kept._counted) == ({}, {})
