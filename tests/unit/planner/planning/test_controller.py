"""The graphs that have a runner: what ends one, and what is forgotten with a graph."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_planner.core.decision import Decision, Effects, Explanation, Tick
from dynamo_planner.core.observation import Pool
from dynamo_planner.metrics import PlanMetrics
from dynamo_planner.planning.controller import CONCERN, RETRY_AFTER, Plans, _Running
from dynamo_planner.planning.runner import TickResult
from dynamo_shared.api import namespace_scope
from dynamo_shared.api.conditions import PLANNING
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEASES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.bus.commands import CommandSender
from dynamo_shared.bus.errors import BusUnavailableError, StreamNotFoundError
from dynamo_shared.bus.streams import COMMANDS
from dynamo_shared.kube.errors import NotFound, Unavailable
from dynamo_shared.leases import AllKeys
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.routes import CacheChange
from dynamo_shared.runtime.settings import Settings
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.versions import version_of
from dynamo_shared.wire.specifications.scaling import ScaleData
from prometheus_client import CollectorRegistry

from tests.building.memory_bus import MemoryBus
from tests.building.objects import stored_object
from tests.unit.announced import Announced

from .test_runner import collected, effects, plan

KEY = ObjectKey("ns", "g")


class NoObjects:
    """An API server that has only what is written to it."""

    def __init__(self) -> None:
        self.statuses: list[KubeObject] = []

    def acting_as(self, _: str) -> NoObjects:
        return self

    def guarded(self, _: object) -> NoObjects:
        return self

    async def get(self, _: object, key: ObjectKey) -> KubeObject:
        raise NotFound(404, "NotFound", str(key))

    async def apply_status(self, _: object, obj: KubeObject) -> KubeObject:
        self.statuses.append(obj)
        return obj


class Shared(AllKeys):
    """Owns all keys until they are given away."""

    def __init__(self) -> None:
        super().__init__()
        self.mine = True

    def owns(self, key: ObjectKey) -> bool:
        return self.mine

    async def give_away(self) -> None:
        self.mine = False
        for drainer in self._drainers:
            await drainer(lambda key: not self.owns(key))


def plans(ownership: AllKeys | None = None) -> tuple[Plans, Announced]:
    announced = Announced()
    context = SimpleNamespace(
        settings=Settings.model_validate({"infrastructure": {"prometheusEndpoint": "http://prometheus.example"}}),
        kube=NoObjects(),
        bus=MemoryBus(),
        ownership=lambda _: ownership or AllKeys(),
        supervisor=lambda _: SimpleNamespace(isolated=lambda *_: nullcontext()),
        queue=lambda *_: SimpleNamespace(add=lambda *_: None),
        clock=lambda: 0.0,
        metrics=Metrics(),
    )
    controller = Plans(cast(Any, context), "planner", PlanMetrics(CollectorRegistry(), context.clock), None)
    controller._reporter._announcer = cast(Announcer, announced)
    # Nothing is read here: the cache has only what tests put into it.
    cast(Any, controller.reader).covers = lambda _: True
    controller.cache.on_change(controller._changed)
    return controller, announced


def graph(uid: str = "u", **annotations: str) -> KubeObject:
    annotations = annotations or {PLANNER_CONFIG: "plan"}
    return stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "g", uid=uid, annotations=annotations, spec={"components": []})


class Commands:
    """What is sent: to whom, and the data. While NATS is `away` nothing is; `meanwhile` happens while a command is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, ScaleData]] = []
        self.away = False
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def send(self, service: str, verb: str, namespace: str, data: ScaleData, *, request: str) -> str:
        if self.away:
            raise BusUnavailableError("no servers")
        if self.meanwhile is not None:
            await self.meanwhile()
        self.sent.append((f"{service} {verb} {namespace}", data))
        return request


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    made = Commands()
    monkeypatch.setattr(CommandSender, "send", made.send)
    return made


def _planned(controller: Plans, key: ObjectKey = KEY) -> None:
    """Mark a graph as being planned."""
    runner = asyncio.create_task(asyncio.Event().wait())
    controller._runners[key] = _Running(plan(), cast(Any, runner))


def _plannable(controller: Plans, written: str = '{"mode": "agg"}', **worker: Any) -> None:
    """Add a graph with a worker, and the PlannerConfig that it names."""
    desired = graph()
    desired["spec"]["components"] = [{"name": "Worker", "type": "worker", **worker}]
    config = stored_object(CONFIG_MAPS, "plan", data={"planner_config.json": written})
    for resource, obj in ((DYNAMO_GRAPH_DEPLOYMENTS, desired), (CONFIG_MAPS, config)):
        controller.cache.take(resource, key_of(obj), obj, version_of(obj))


async def test_unknown_keys_of_a_planner_config_are_announced_when_planning_begins() -> None:
    controller, announced = plans()
    _plannable(controller, '{"mode": "agg", "max_gpu_budgt": 4}')
    for _ in range(2):
        await controller.reconcile(KEY)
    controller._stop(KEY)
    said = (
        "ConfigMap plan, planner_config.json: max_gpu_budgt: is not a known key, and has no effect; did you mean "
        "max_gpu_budget?"
    )
    assert announced.lines == [f"Warning PlannerConfigRemarks Plan: {said}"]


async def test_planning_ends_if_another_platform_serves_the_namespace() -> None:
    controller, _ = plans()
    for namespace in ("ns", "other"):
        _planned(controller, ObjectKey(namespace, "g"))
    lease = namespace_scope.lease("ns", "1.2.0", 30, datetime.now(UTC))
    lease["metadata"] |= {"uid": "l", "resourceVersion": "1"}
    controller.cache.put(LEASES, lease)
    assert list(controller._runners) == [ObjectKey("other", "g")]


async def test_planning_has_ended_before_graphs_are_given_to_another_replica() -> None:
    shared = Shared()
    controller, _ = plans(shared)
    ends: list[str] = []

    async def runs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ends.append("ended")

    controller._runners[KEY] = _Running(plan(), asyncio.create_task(runs()))
    await asyncio.sleep(0)
    await shared.give_away()
    assert (list(controller._runners), ends) == ([], ["ended"])


async def test_a_reconcile_starts_no_planning_of_a_graph_that_was_given_away_meanwhile() -> None:
    shared = Shared()
    controller, _ = plans(shared)
    _plannable(controller)
    reconciling = asyncio.create_task(controller.reconcile(KEY))
    await asyncio.sleep(0)
    await shared.give_away()
    await reconciling
    assert list(controller._runners) == []


async def test_a_paused_replica_sends_no_command_for_a_graph_that_another_one_owns_now() -> None:
    """Its command would be the newest, but its decision the oldest."""
    shared = Shared()
    controller, _ = plans(shared)
    sender = controller._scale_sender(plan())
    shared.mine = False
    acted = await sender(Decision(replicas={Pool.DECODE: 9}, reason="r"))
    assert (acted.answer, acted.answered) == ("another replica plans this graph now", False)
    assert not await sender.withdraw()
    with pytest.raises(StreamNotFoundError):
        # The first command makes it.
        await controller.context.bus.stream_state(COMMANDS)


async def test_no_planning_starts_for_a_graph_that_is_given_away_while_its_former_plan_is_withdrawn(
    commands: Commands,
) -> None:
    """No task would end it, and two replicas would plan the graph."""
    shared = Shared()
    controller, _ = plans(shared)
    _planned(controller)
    commands.meanwhile = shared.give_away
    _plannable(controller)
    await controller.reconcile(KEY)
    assert controller._runners == {}


@pytest.mark.parametrize(("observed", "written"), [(3, []), (2, [3])], ids=["current", "of an earlier spec"])
async def test_the_condition_is_about_the_current_graph(observed: int, written: list[int]) -> None:
    controller, _ = plans()
    said = {"type": PLANNING, "status": "True", "reason": "Holds", "message": "said", "observedGeneration": observed}
    planned = graph()
    planned["metadata"]["generation"] = 3
    planned["status"] = {"conditions": [{**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, planned)
    controller._written["u"] = 0.0
    await controller._report(plan(), TickResult(collected(), effects(), None))
    kube = cast(NoObjects, controller.kube)
    assert [each["status"]["conditions"][0]["observedGeneration"] for each in kube.statuses] == written


@pytest.mark.parametrize(
    ("said", "after", "written"),
    [
        ("said 1.5 of 3", 299.0, False),
        ("said 1.5 of 3", 300.0, True),
        ("says", 29.0, False),
        ("says", 30.0, True),
        ("said", 900.0, False),
    ],
)
async def test_changed_numbers_alone_are_rarely_written_to_the_condition(
    said: str, after: float, written: bool
) -> None:
    """They change with each sample: each graph's status was written twice a minute, even if nothing happened."""
    controller, _ = plans()
    planned = graph()
    before = {"type": PLANNING, "status": "True", "reason": "Holds", "message": f"said{said[4:] and ' 17 of 4'}"}
    conditions = [{**before, "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    planned["metadata"]["generation"] = 1
    planned["status"] = {"conditions": conditions}
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, planned)
    controller._written["u"] = -after
    explained = replace(effects(), explanation=Explanation(message=said))
    for _ in range(2):
        await controller._report(plan(), TickResult(collected(), explained, None))
    assert len(cast(NoObjects, controller.kube).statuses) == written


async def test_namespaces_take_turns_at_fits() -> None:
    """A tenant with many graphs that use Prophet or ARIMA held up the plans of all others."""
    controller, _ = plans()
    fits, order = Tick(at=0.0, fits_series=True), list[str]()
    go_on = threading.Event()

    def fit(namespace: str) -> Effects:
        go_on.wait()
        order.append(namespace)
        return effects()

    graphs = ["busy"] * 100 + ["other"]
    ticks = [asyncio.create_task(controller._compute(each, fits, partial(fit, each))) for each in graphs]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*ticks)
    assert (order[:2], len(order)) == (["busy", "other"], 101)


async def test_a_tick_without_fits_does_not_wait_for_those_of_any_namespace() -> None:
    controller, _ = plans()
    go_on, fits = threading.Event(), Tick(at=0.0, fits_series=True)

    def fit() -> Effects:
        go_on.wait()
        return effects()

    ticks = [asyncio.create_task(controller._compute(f"busy-{each}", fits, fit)) for each in range(64)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(60):
            await controller._compute("other", Tick(at=0.0), effects)
    finally:
        go_on.set()
    await asyncio.gather(*ticks)


async def test_failed_planning_is_reported() -> None:
    controller, announced = plans()
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph())
    controller._metrics.tick((KEY.namespace, KEY.name), {"ready.decode": 3.0}, {}, "Planned")
    for _ in range(2):
        await controller._report_failure(plan(), ZeroDivisionError("division by zero"))
    said = "planning fails, and replicas do not change: ZeroDivisionError: division by zero; the planner retries every 30 s"
    kube = cast(NoObjects, controller.kube)
    (written, _) = [each["status"]["conditions"][0] for each in kube.statuses]
    assert [written[each] for each in ("status", "reason", "message")] == ["False", "PlanningFailed", said]
    assert announced.lines == [f"Warning PlanningFailed Plan: {said}"]
    ready = controller._metrics._gauges["dynamo_planner_num_decode_replicas"]
    assert [sample for metric in ready.collect() for sample in metric.samples] == []


@pytest.mark.parametrize("annotations", [{PLANNER_CONFIG: "gone"}, {"a": "b"}], ids=["not plannable", "off"])
async def test_the_requests_of_an_ended_plan_are_withdrawn(annotations: dict[str, str], commands: Commands) -> None:
    """The scaler may hold them, and would carry them out minutes later."""
    controller, _ = plans()
    _planned(controller)
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph(**annotations))
    await controller.reconcile(KEY)
    withdrawn = ScaleData(
        graph_deployment="g", uid="u", targets=[], reason="no longer desired", requester="planner", withdraw=True
    )
    assert commands.sent == [("scaler scale ns", withdrawn)]
    assert controller._runners == {}


async def test_a_graph_whose_planning_was_disabled_while_nats_was_away_is_retried(commands: Commands) -> None:
    """Nothing else reconciles it, because it is no longer planned."""
    controller, _ = plans()
    _planned(controller)
    commands.away = True
    turned_off = graph(another="annotation")
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, turned_off)
    assert (await controller.reconcile(KEY)).requeue_after is not None
    assert list(controller._planned(turned_off)) == [KEY]
    commands.away = False
    assert (await controller.reconcile(KEY)).requeue_after is None
    assert list(controller._planned(turned_off)) == []


async def test_a_failed_withdrawal_of_an_ended_plan_is_retried(commands: Commands) -> None:
    controller, _ = plans()
    _planned(controller)
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph(**{PLANNER_CONFIG: "gone"}))
    for commands.away in (True, False, False):
        await controller.reconcile(KEY)
    assert len(commands.sent) == 1


async def test_a_rejection_is_reported_again_when_planning_is_requested_again() -> None:
    controller, announced = plans()
    for asks in (graph(), graph(), graph(unrelated="x"), graph()):
        controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, _newer(controller, asks))
        await controller.reconcile(KEY)
    assert [line.split()[1] for line in announced.lines] == ["NoPlannerConfig"] * 2


async def test_deleted_graphs_are_forgotten() -> None:
    controller, _ = plans()
    for uid in ("a", "b"):
        controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph(uid))
        await controller.reconcile(KEY)
        controller.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, KEY, uid)
    assert not controller._reporter._last


async def test_planning_that_ends_unexpectedly_begins_again_after_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, announced = plans()
    _plannable(controller)
    again: list[object] = []
    monkeypatch.setattr(controller, "enqueue", lambda *task: again.append(task))

    async def fail(_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(controller, "_run_plan", fail)
    await controller.reconcile(KEY)
    runner = controller._runners[KEY].task
    await asyncio.wait([runner])
    await asyncio.sleep(0)
    assert again == [(Task(CONCERN, KEY), RETRY_AFTER)]
    assert [line.split()[1] for line in announced.lines] == ["PlanningFailed"]
    await controller.reconcile(KEY)
    assert controller._runners[KEY].task is not runner


async def test_planning_ends_with_its_graph() -> None:
    controller, _ = plans()
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph())
    _planned(controller)
    runner = controller._runners[KEY].task
    controller.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, KEY, "u")
    assert runner.cancelling()
    assert not controller._runners


async def test_a_condition_that_was_not_written_is_written_with_the_next_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, _ = plans()
    planned = graph()
    before = {"type": PLANNING, "status": "True", "reason": "Holds", "message": "said", "observedGeneration": 1}
    planned["metadata"]["generation"] = 1
    planned["status"] = {"conditions": [{**before, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, planned)
    tried: list[object] = []

    async def refuse(_: object, status: KubeObject) -> None:
        tried.append(status)
        raise Unavailable(503, "ServiceUnavailable", "later")

    monkeypatch.setattr(controller.kube, "apply_status", refuse)
    explained = replace(effects(), explanation=Explanation(message="says"))
    for _ in range(2):
        await controller._report(plan(), TickResult(collected(), explained, None))
    assert len(tried) == 2


async def test_nothing_is_kept_of_a_graph_that_is_deleted_while_its_plan_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The ConfigMap of a graph ends with its namespace, before the graph or after it."""
    controller, announced = plans()
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph())

    async def deleted_meanwhile(*_: object) -> None:
        controller.cache.remove(DYNAMO_GRAPH_DEPLOYMENTS, KEY, "u")

    monkeypatch.setattr(controller, "_config_map", deleted_meanwhile)
    await controller.reconcile(KEY)
    assert (controller._reporter._last, announced.lines) == ({}, [])


def _pod(name: str, graph_name: str, made: str) -> KubeObject:
    pod_labels = {labels.GRAPH_DEPLOYMENT_NAME: graph_name, labels.COMPONENT: "Worker"}
    claims = [{"name": "gpus", "resourceClaimName": made}]
    return stored_object(PODS, name, uid=name, labels=pod_labels, status={"resourceClaimStatuses": claims})


def _claim(name: str, version: int = 1, *, pod: str = "", allocated: int = 0) -> KubeObject:
    owners = [{"kind": "Pod", "name": pod, "uid": pod, "controller": True}] if pod else []
    request = {"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}}
    results = [{"request": "r", "driver": "d", "pool": "p", "device": f"gpu-{index}"} for index in range(allocated)]
    fields = {"ownerReferences": owners, "spec": {"devices": {"requests": [request]}}}
    status = {"allocation": {"devices": {"results": results}}} if allocated else {}
    return stored_object(RESOURCE_CLAIMS, name, uid=name, resourceVersion=str(version), status=status, **fields)


async def test_planning_starts_when_the_gpus_of_an_engine_are_known() -> None:
    controller, announced = plans()
    claims = [{"name": "gpus", "resourceClaimTemplateName": "all"}]
    _plannable(controller, podTemplate={"spec": {"resourceClaims": claims}})
    template = _claim("all")
    controller.cache.put(RESOURCE_CLAIM_TEMPLATES, {**template, "spec": {"spec": template["spec"]}})
    assert await controller.reconcile(KEY) == Result(RETRY_AFTER)
    assert [line.split()[1] for line in announced.lines] == ["GpusUnknown"]

    controller.cache.put(PODS, _pod("p", "g", "p-gpus"))
    controller.cache.put(RESOURCE_CLAIMS, _claim("p-gpus", pod="p", allocated=4))
    assert await controller.reconcile(KEY) == Result()
    assert controller._runners[KEY].plan.gpus == {Pool.DECODE: 4}
    controller._stop(KEY)


async def test_a_claim_reconciles_graphs_that_name_it_or_own_its_pod(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, _ = plans()
    sharing = graph(uid="s")
    sharing["metadata"]["name"] = "sharing"
    claims = [{"name": "gpus", "resourceClaimName": "four"}]
    sharing["spec"]["components"] = [{"name": "Worker", "podTemplate": {"spec": {"resourceClaims": claims}}}]
    unplanned = {**sharing, "metadata": {**sharing["metadata"], "name": "unplanned", "uid": "n", "annotations": {}}}
    for each in (graph(), sharing, unplanned):
        controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, each)
    controller.cache.put(PODS, _pod("p", "g", "p-gpus"))

    def concerned(old: KubeObject | None, new: KubeObject | None) -> list[str]:
        changed = new or old or {}
        change = CacheChange(RESOURCE_CLAIMS, ObjectKey("ns", changed["metadata"]["name"]), old, new)
        (route,) = controller._routes[RESOURCE_CLAIMS]
        return [task.key.name for task, _ in route.tasks(change)]

    waiting, allocated = _claim("p-gpus", pod="p"), _claim("p-gpus", 2, pod="p", allocated=4)
    assert concerned(waiting, allocated) == ["g"]
    assert concerned(allocated, allocated) == []
    # Each pod has a claim, a tenant may create claims at will, and the many graphs of a namespace are kept packed.
    read = _reads(controller, monkeypatch)
    assert concerned(None, _claim("four")) == ["sharing"]
    assert concerned(_claim("four"), None) == ["sharing"]
    assert concerned(None, _claim("other")) == concerned(None, _claim("other", pod="away")) == []
    assert not read
    assert concerned(waiting, allocated) == ["g"]
    assert read == {"g"}


def _reads(controller: Plans, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of graphs that are unpacked from now on."""
    read: set[str] = set()
    get, by_index = controller.cache.get, controller.cache.by_index

    def reading(resource: Resource, key: ObjectKey) -> KubeObject | None:
        obj = get(resource, key)
        read.update({key.name} if obj and resource == DYNAMO_GRAPH_DEPLOYMENTS else ())
        return obj

    def listing(resource: Resource, name: str, value: str) -> list[KubeObject]:
        listed = by_index(resource, name, value)
        read.update(each["metadata"]["name"] for each in listed if resource == DYNAMO_GRAPH_DEPLOYMENTS)
        return listed

    monkeypatch.setattr(controller.cache, "get", reading)
    monkeypatch.setattr(controller.cache, "by_index", listing)
    return read


def test_a_config_map_reconciles_graphs_that_name_it_without_reading_them(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, _ = plans()
    for number in range(3):
        other = graph(f"o{number}", **({} if number else {"unrelated": "x"}))
        other["metadata"]["name"] = f"other-{number}"
        if number:
            other["metadata"]["annotations"] = {PLANNER_CONFIG: f"plan-{number}"}
        controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, other)
    controller.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, graph())
    # Thousands of graphs may name one ConfigMap, and they are kept packed.
    read = _reads(controller, monkeypatch)

    def concerned(name: str, namespace: str = "ns") -> list[str]:
        change = CacheChange(CONFIG_MAPS, ObjectKey(namespace, name), None, {"metadata": {}})
        (route,) = controller._routes[CONFIG_MAPS]
        return [task.key.name for task, _ in route.tasks(change)]

    assert concerned("plan") == concerned("planner-profile-data-plan") == ["g"]
    assert concerned("plan-1") == ["other-1"]
    assert concerned("unrelated") == concerned("plan", "elsewhere") == []
    assert not read


def _newer(controller: Plans, obj: KubeObject) -> KubeObject:
    """The object as a later write of the stored one."""
    known = controller.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, KEY)
    obj["metadata"]["resourceVersion"] = str(int(known["metadata"]["resourceVersion"]) + 1 if known else 1)
    return obj
