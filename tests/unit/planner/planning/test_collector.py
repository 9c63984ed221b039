"""The objects of STATE that concern a graph."""

import threading
from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_planner.core.decision import Tick
from dynamo_planner.core.observation import Missing, Pool, Traffic
from dynamo_planner.inputs.forward_passes import TOPIC, subject
from dynamo_planner.inputs.outcome import InputUnavailable
from dynamo_planner.inputs.prometheus.options import PrometheusOptions
from dynamo_planner.inputs.startup import StartupTimes
from dynamo_planner.planning import collector
from dynamo_planner.planning.collector import MOST_GENERATIONS, InputCollector
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS
from dynamo_shared.bus.nats.listener import Handler
from dynamo_shared.bus.protocol import BusHealth
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.wire.discovered import WORKERS, ModelCard, WorkerData, as_object, worker_of

from tests.unit.planner.inputs.test_engine_messages import message

from .test_runner import plan


def worker(name: str, namespace: str, sequences: int, graph: str = "g", dynamo: str = "ns-g") -> KubeObject:
    data = WorkerData(
        name=name,
        namespace=namespace,
        dynamo_namespace=dynamo,
        component="backend",
        role="decode",
        graph_deployment=graph if namespace else "",
        graph_component="D" if namespace and graph else "",
        models=[ModelCard(name="m", max_num_seqs=sequences)],
    )
    return as_object(data, uid=name, resource_version="1", created="2026-01-01T00:00:00Z")


def pod(number: int, more: dict[str, str]) -> KubeObject:
    own = {labels.GRAPH_DEPLOYMENT_NAME: "g", labels.COMPONENT: "D", **more}
    metadata = {"name": f"p{number}", "namespace": "ns", "uid": f"u{number}", "resourceVersion": "1", "labels": own}
    return {**PODS.type_meta, "metadata": metadata}


def input_collector(cache: ObjectCache, traffic: Any = None) -> InputCollector:
    return InputCollector(plan(), cache, traffic=traffic, listener=None, clock=lambda: 0.0, stack=AsyncExitStack())


def test_workers_of_other_graphs_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each sample of each graph read the workers of all graphs of its namespace, and all without a known pod."""
    cache = ObjectCache()
    collector.index(cache)
    for each in (
        worker("own", "ns", 64),
        worker("discovered", "", 32),
        worker("of no known pod", "ns", 48, graph=""),
        *(worker(f"o{n}", "other", 1) for n in range(9)),
        *(worker(f"g{n}", "ns", 1, graph=f"g{n}") for n in range(9)),
        *(worker(f"u{n}", namespace, 1, graph="", dynamo=f"other-g{n}") for n, namespace in enumerate(("", "ns"))),
    ):
        cache.put(WORKERS, each)
    read: list[str] = []

    def counted(obj: KubeObject) -> WorkerData:
        read.append(obj["metadata"]["name"])
        return worker_of(obj)

    monkeypatch.setattr(collector, "worker_of", counted)
    able = input_collector(cache)._capabilities(Pool.DECODE, ("ns-g",))
    assert (able.max_num_seqs, sorted(read)) == (32, ["discovered", "of no known pod", "own"])


@pytest.mark.parametrize(("mode", "twice"), [("disagg", True), ("prefill", True), ("decode", True), ("agg", False)])
async def test_a_graph_with_a_single_pool_counts_requests_of_routers_twice_if_it_is_disaggregated(
    mode: str, twice: bool
) -> None:
    planned = plan(mode=mode)
    async with collector.input_collector(
        planned, ObjectCache(), PrometheusOptions(url="http://p"), None, lambda: 0.0
    ) as made:
        assert made._traffic._disaggregated is twice


def test_engine_messages_are_read_from_the_generations_with_most_pods() -> None:
    def pods(generation: str, count: int) -> list[KubeObject]:
        return [{"metadata": {"labels": {labels.WORKER_HASH: generation} if generation else {}}}] * count

    members = [*pods("", 3), *pods("old", 2), *pods("new", 3), *(pod for n in range(100) for pod in pods(f"x{n}", 1))]
    heard = input_collector(ObjectCache())._namespaces({Pool.DECODE: members})
    assert {"ns-g", "ns-g-old", "ns-g-new"} < {*heard}
    assert len(heard) == 1 + MOST_GENERATIONS


@pytest.mark.parametrize(("count", "in_thread"), [(3, False), (300, True)])
async def test_pods_of_large_graphs_are_counted_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, count: int, in_thread: bool
) -> None:
    """Ten thousand pods held up all other graphs for a third of a second at each sample."""
    cache = ObjectCache()
    collector.index(cache)
    for number in range(count):
        cache.put(PODS, pod(number, {}))
    threads: list[bool] = []
    learn = StartupTimes.learn

    def recorded(times: StartupTimes, pods: Iterable[KubeObject]) -> None:
        threads.append(threading.current_thread() is not threading.main_thread())
        learn(times, pods)

    monkeypatch.setattr(StartupTimes, "learn", recorded)
    collected = await input_collector(cache).observe(Tick(at=0.0), 0.0)
    assert (set(threads), [*collected.troubles]) == ({in_thread}, ["workers"])


class Listener:
    """Delivers what engines publish to those who listen at that time."""

    def __init__(self) -> None:
        self.health, self.handlers = BusHealth.CONNECTED, dict[str, Handler]()

    async def listen(self, subject: str, handler: Handler) -> Any:
        self.handlers[subject] = handler
        return SimpleNamespace(close=partial(self.drop, subject))

    async def drop(self, subject: str) -> None:
        del self.handlers[subject]

    def publish(self, namespace: str) -> None:
        if (handler := self.handlers.get(subject(namespace))) is not None:
            handler(f"namespace.{namespace}.component.backend.endpoint.generate.{TOPIC}", message("w"))


async def test_engines_are_heard_before_the_first_tick_and_while_generations_change() -> None:
    """Each start of planning, and each roll-out, reported once that no engine reports."""
    cache, listener = ObjectCache(), Listener()
    collector.index(cache)
    async with collector.input_collector(
        plan(mode="decode"), cache, PrometheusOptions(url="http://p"), cast(Any, listener), lambda: 0.0
    ) as made:
        for number, generation in enumerate(("", "new")):
            listener.publish("ns-g")
            cache.put(PODS, pod(number, {labels.WORKER_HASH: generation}))
            observed = await made.observe(Tick(at=0.0, need_forward_passes=True), 0.0)
            assert [each.worker_id for each in observed.observation.forward_passes] == ["w"]
        assert {*listener.handlers} == {subject("ns-g"), subject("ns-g-new")}


async def test_a_missing_input_is_reported_until_a_tick_requests_it_again() -> None:
    """The condition of a graph with both kinds of scaling was true between two predictive ticks without Prometheus."""
    answers: list[Traffic | InputUnavailable] = [
        InputUnavailable(why=Missing.UNREACHABLE, message="no Prometheus"),
        Traffic(duration=60, requests=1, isl=1, osl=1),
    ]

    async def read(window: float) -> Traffic | InputUnavailable:
        return answers.pop(0)

    cache = ObjectCache()
    collector.index(cache)
    made = input_collector(cache, traffic=SimpleNamespace(read=read))
    windows = (None, 60.0, None, 60.0, None)
    observed = [await made.observe(Tick(at=0.0, traffic_window=window), 0.0) for window in windows]
    assert [each.troubles.get("traffic") for each in observed] == [None, "no Prometheus", "no Prometheus", None, None]
    assert [each.observation.missing.get("traffic") for each in observed][1:3] == [Missing.UNREACHABLE] * 2
    assert [each.observation.traffic is not None for each in observed] == [False, False, False, True, False]
