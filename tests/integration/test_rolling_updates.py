"""Exchanging workers while every change of their pods is watched: never fewer that serve than the margins allow."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_WORKER_METADATAS,
    PODS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.building.tasks import in_background

from .platform import IMAGE, eventually, frontend, graph, until_state, worker

STRATEGY = "nvidia.com/deployment-strategy"
SURGE = "nvidia.com/deployment-rolling-update-max-surge"
UNAVAILABLE = "nvidia.com/deployment-rolling-update-max-unavailable"
NEXT = f"{IMAGE}-next"


@dataclass
class Watch:
    """Pods of each component as they were at every moment: how many served, how many generations there were."""

    pods: dict[ObjectKey, KubeObject] = field(default_factory=dict)
    fewest: dict[str, int] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    #: Of all generations, workers that have a counterpart in each other component: they find only their own generation.
    fewest_together: int | None = None
    #: Workers of any component and generation.
    fewest_workers: int | None = None

    def forget(self) -> None:
        """From now on."""
        self.fewest.clear()
        self.most.clear()
        self.generations.clear()
        self.fewest_together = self.fewest_workers = None
        self._note()

    def see(self, change: ObjectChange) -> None:
        if change.kind == "DELETED":
            self.pods.pop(change.key, None)
        else:
            self.pods[change.key] = change.obj
        self._note()

    def _note(self) -> None:
        of: dict[str, list[KubeObject]] = {}
        for pod in self.pods.values():
            of.setdefault(pod["metadata"]["labels"][labels.COMPONENT], []).append(pod)
        for component, pods in of.items():
            serving = sum(map(serves, pods))
            self.fewest[component] = min(self.fewest.get(component, serving), serving)
            self.most[component] = max(self.most.get(component, 0), sum(not ends(pod) for pod in pods))
            hashes = {pod["metadata"]["labels"].get(labels.WORKER_HASH) for pod in pods}
            self.generations[component] = max(self.generations.get(component, 0), len(hashes))
        labelled = [pod["metadata"]["labels"] for pod in self.pods.values() if serves(pod)]
        workers = [each for each in labelled if labels.WORKER_HASH in each]
        together = self._together(workers)
        self.fewest_together = together if self.fewest_together is None else min(self.fewest_together, together)
        self.fewest_workers = len(workers) if self.fewest_workers is None else min(self.fewest_workers, len(workers))

    def _together(self, workers: list[dict[str, str]]) -> int:
        serving = Counter((each[labels.WORKER_HASH], each[labels.COMPONENT]) for each in workers)
        components = {component for _, component in serving}
        return sum(min(serving[hash_, each] for each in components) for hash_ in {hash_ for hash_, _ in serving})


def serves(pod: KubeObject) -> bool:
    conditions = {each["type"]: each["status"] for each in pod.get("status", {}).get("conditions", ())}
    return conditions.get("Ready") == "True" and not ends(pod)


def ends(pod: KubeObject) -> bool:
    return "deletionTimestamp" in pod["metadata"]


@asynccontextmanager
async def watched(kube: KubeClient, namespace: str) -> AsyncIterator[Watch]:
    watch = Watch()

    async def follow() -> None:
        async with aclosing(Reflector(kube, PODS, namespace=namespace).changes()) as changes:
            async for change in changes:
                if isinstance(change, ObjectChange):
                    watch.see(change)

    async with in_background(follow()):
        yield watch


def workers(
    image: str = IMAGE, *, replicas: int = 4, names: tuple[str, ...] = ("A",), strategy: str = "RollingUpdate"
) -> list[KubeObject]:
    metadata = {"annotations": {SURGE: "1", UNAVAILABLE: "1", STRATEGY: strategy}}
    return [worker(name, replicas=replicas, image=image, metadata=metadata) for name in names]


async def deploy(kube: KubeClient, namespace: str, components: list[KubeObject]) -> None:
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, components=[frontend(), *components]))
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")


async def change(kube: KubeClient, namespace: str, components: list[KubeObject]) -> None:
    patch = {"spec": {"components": [frontend(), *components]}}
    await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"), patch)


async def hashes(kube: KubeClient, namespace: str) -> set[str]:
    """Worker generations that there are."""
    items = await kube.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
    return {mark for dcd in items if (mark := dcd["metadata"]["labels"].get(labels.WORKER_HASH))}


async def settled(kube: KubeClient, namespace: str) -> None:
    """One generation, and all of it serves."""
    await until_state(kube, ObjectKey(namespace, "disagg"), "successful")
    await eventually(
        lambda: hashes(kube, namespace), "one generation of workers", where=lambda answer: len(answer) == 1
    )


async def register(kube: KubeClient, pod: KubeObject) -> None:
    """Write what a worker writes that frontends find in Kubernetes."""
    metadata = pod["metadata"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    record = {"name": metadata["name"], "namespace": metadata["namespace"], "ownerReferences": [owner]}
    body = {**DYNAMO_WORKER_METADATAS.type_meta, "metadata": record, "spec": {"data": {}}}
    await kube.create(DYNAMO_WORKER_METADATAS, body)


@pytest.mark.usefixtures("running_platform")
async def test_workers_that_have_registered_stay_until_new_ones_have(kube: KubeClient, namespace: str) -> None:
    await deploy(kube, namespace, [worker("A")])
    (old,) = await kube.list(PODS, namespace, label_selector=f"{labels.COMPONENT}=A")
    await register(kube, old)
    await change(kube, namespace, [worker("A", image=NEXT)])

    async def waited_for() -> str:
        dgd = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
        message = str(dgd["status"]["conditions"][0]["message"])
        return message.partition("; A: ")[2].partition(" ready, but not registered with Dynamo")[0]

    new = await eventually(waited_for, "the new pod is waited for", where=bool)
    pods = {
        pod["metadata"]["name"]: pod for pod in await kube.list(PODS, namespace, label_selector=f"{labels.COMPONENT}=A")
    }
    assert pods.keys() == {old["metadata"]["name"], new}
    assert all(map(serves, pods.values()))
    await register(kube, pods[new])
    await settled(kube, namespace)


@pytest.mark.usefixtures("running_platform")
async def test_several_components_roll_at_once_and_none_falls_below_its_margin(
    kube: KubeClient, namespace: str
) -> None:
    await deploy(kube, namespace, workers(names=("A", "B")))
    async with watched(kube, namespace) as watch:
        await eventually(lambda: _true(len(watch.pods) == 9), "all pods observed")
        watch.forget()
        await change(kube, namespace, workers(NEXT, names=("A", "B")))
        await settled(kube, namespace)
        assert {pod["spec"]["containers"][0]["image"] for pod in watch.pods.values() if not ends(pod)} == {IMAGE, NEXT}
    for component in ("A", "B"):
        assert watch.fewest[component] >= 3, "of four replicas, one may be missing"
        assert watch.generations[component] == 2
    assert watch.fewest_together is not None
    assert watch.fewest_together >= 3, "old ones stay until new ones have their counterparts"


@pytest.mark.usefixtures("running_platform")
async def test_workers_of_another_name_serve_before_the_former_ones_go(kube: KubeClient, namespace: str) -> None:
    await deploy(kube, namespace, workers(names=("A",)))
    async with watched(kube, namespace) as watch:
        await eventually(lambda: _true(len(watch.pods) == 5), "all pods observed")
        watch.forget()
        # They do not start, and are corrected then.
        stuck = workers(NEXT, names=("B",))
        stuck[0]["podTemplate"]["spec"]["nodeSelector"] = {"no": "such-node"}
        await change(kube, namespace, stuck)
        await eventually(lambda: _true(watch.most.get("B") == 4), "new pods wait for a node")
        await change(kube, namespace, workers(NEXT, names=("B",)))
        await settled(kube, namespace)
    assert watch.fewest_workers == 4


@pytest.mark.usefixtures("running_platform")
async def test_recreate_lets_the_old_workers_go_first(kube: KubeClient, namespace: str) -> None:
    await deploy(kube, namespace, workers(replicas=2, strategy="Recreate"))
    async with watched(kube, namespace) as watch:
        await eventually(lambda: _true(len(watch.pods) == 3), "all pods observed")
        watch.forget()
        await change(kube, namespace, workers(NEXT, replicas=2, strategy="Recreate"))
        await settled(kube, namespace)
    assert watch.fewest["A"] == 0
    assert watch.most["A"] == 2


async def _true(value: bool) -> bool:
    return value
