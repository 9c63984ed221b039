"""An engine over several nodes is replaced as a whole when one of its pods ends, and no other engine is."""

import pytest
from dynamo_pod_builder.cohorts import cohort, engine_has_ended
from dynamo_pod_builder.reconcilers.pod import PodReconciler
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube.errors import Forbidden, NotFound
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache

from tests.unit.announced import Announced
from tests.unit.routed import tasks_of

from .indexed import indexed, routes_of


def pod(
    name: str,
    *,
    group: str = "set-0-worker",
    replica: int = 0,
    index: int = 0,
    phase: str = "Running",
    engine: bool = True,
) -> KubeObject:
    object_labels = {
        "grove.io/podcliquescalinggroup": group,
        "grove.io/podcliquescalinggroup-replica-index": str(replica),
        "grove.io/podclique-pod-index": str(index),
        **({"nvidia.com/dynamo-failover-engine-group-member": "true"} if engine else {}),
    }
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "resourceVersion": "1", "labels": object_labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase}}


OTHERS = (
    pod("shadow", index=1),
    pod("other-replica", replica=1),
    pod("other-component", group="set-0-decode"),
    pod("memory-server", engine=False),
)


class Kube:
    """Deletes existing pods, and records how."""

    def __init__(self, *gone: str, refused: str = "") -> None:
        self.gone = gone
        self.refused = refused
        self.deleted: list[tuple[str, str, int]] = []

    async def delete(self, _resource, key, *, uid, grace) -> None:
        if key.name in self.gone:
            raise NotFound(404, "NotFound", "gone")
        if key.name == self.refused:
            raise Forbidden(403, "Forbidden", "it is protected")
        self.deleted.append((key.name, uid, grace))


@pytest.mark.parametrize(
    ("observed", "ended"),
    [
        (pod("a", phase="Failed"), True),
        (pod("a", phase="Succeeded"), True),
        (pod("a"), False),
        (pod("a", phase="Failed", engine=False), False),
        ({"metadata": {"name": "a"}}, False),
    ],
)
def test_an_engine_has_ended_when_one_of_its_pods_has(observed, ended) -> None:
    assert engine_has_ended(observed) is ended


def test_the_pods_of_one_engine() -> None:
    ended, rank = pod("ldr", phase="Failed"), pod("wkr-1")
    assert [each["metadata"]["name"] for each in cohort(indexed(ended, rank, *OTHERS), ended)] == ["ldr", "wkr-1"]


def test_a_pod_without_a_replica_index_is_its_own_engine() -> None:
    ended = pod("ldr", phase="Failed")
    del ended["metadata"]["labels"]["grove.io/podcliquescalinggroup-replica-index"]
    assert cohort(indexed(ended, pod("wkr-1")), ended) == [ended]


def test_a_pod_that_ends_is_reconciled() -> None:
    before, after = pod("ldr"), pod("ldr", phase="Failed")
    key = ObjectKey("ns", "ldr")
    task, of = Task.of(PODS, key), routes_of(ObjectCache())
    assert task in tasks_of(of, PODS, key, before, after)
    assert task not in tasks_of(of, PODS, key, None, before)
    assert task not in tasks_of(of, PODS, key, after, None)


async def test_all_pods_of_the_engine_are_deleted_at_once_and_the_ended_one_last() -> None:
    cache, kube, announced = indexed(pod("ldr", phase="Failed"), pod("wkr-1"), *OTHERS), Kube(), Announced()
    reconciler = PodReconciler(cache, kube, announced)  # type: ignore[arg-type]
    await reconciler.reconcile(ObjectKey("ns", "ldr"))
    assert kube.deleted == [("wkr-1", "uid-wkr-1", 0), ("ldr", "uid-ldr", 0)]
    assert announced.lines == [
        "Warning FailoverCascade Failover: Pod ended (Failed); replacing its engine: deleting ldr, wkr-1"
    ]
    await reconciler.reconcile(ObjectKey("ns", "ldr"))
    assert len(kube.deleted) == 2, "what was deleted is not deleted again"
    assert len(announced.lines) == 1


async def test_pods_held_by_finalizers_are_deleted_once() -> None:
    """A tenant can label thousands of pods of a node that does not exist: each would repeat all deletions."""
    pods = [pod("a", phase="Failed"), pod("b", phase="Failed"), pod("c")]
    for each in pods:
        each["metadata"]["finalizers"] = ["example.com/never"]
    cache, kube, announced = indexed(*pods), Kube(), Announced()
    reconciler = PodReconciler(cache, kube, announced)  # type: ignore[arg-type]
    for name in "abab":
        await reconciler.reconcile(ObjectKey("ns", name))
    assert [name for name, _, _ in kube.deleted] == ["c", "a", "b"]
    assert len(announced.lines) == 1


async def test_a_pod_that_is_already_gone_blocks_nothing() -> None:
    cache, kube = indexed(pod("ldr", phase="Failed"), pod("wkr-1"), pod("wkr-2")), Kube("wkr-1")
    await PodReconciler(cache, kube, Announced()).reconcile(ObjectKey("ns", "ldr"))  # type: ignore[arg-type]
    assert [name for name, _, _ in kube.deleted] == ["wkr-2", "ldr"]


async def test_a_pod_that_may_not_be_deleted_blocks_no_other_and_the_ended_one_leads_to_it() -> None:
    cache, kube = indexed(pod("ldr", phase="Failed"), pod("wkr-1"), pod("wkr-2")), Kube(refused="wkr-1")
    reconciler = PodReconciler(cache, kube, Announced())  # type: ignore[arg-type]
    with pytest.raises(Forbidden):
        await reconciler.reconcile(ObjectKey("ns", "ldr"))
    assert [name for name, _, _ in kube.deleted] == ["wkr-2"]
    kube.refused = ""
    await reconciler.reconcile(ObjectKey("ns", "ldr"))
    assert [name for name, _, _ in kube.deleted] == ["wkr-2", "wkr-1", "ldr"]


async def test_a_running_pod_is_left_alone() -> None:
    kube = Kube()
    await PodReconciler(indexed(pod("ldr")), kube, Announced()).reconcile(  # type: ignore[arg-type]
        ObjectKey("ns", "ldr")
    )
    assert kube.deleted == []
