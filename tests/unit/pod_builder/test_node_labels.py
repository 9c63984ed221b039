"""Pods of graphs with a node label policy get the label of their node, and no other pods do."""

import copy
from typing import Any

import pytest
from dynamo_pod_builder.node_labels import lacking, waiting
from dynamo_pod_builder.reconcilers.pod import RECHECK_AFTER, PodReconciler
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NODES, PODS, ObjectKey, key_of
from dynamo_shared.kube.errors import Conflict, Forbidden, Invalid, KubeError, NotFound
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.tasks import Task
from dynamo_shared.state.cache import ObjectCache
from dynamo_shared.state.versions import version_of
from dynamo_watcher.trimming import trimmed

from tests.building.objects import object_of, stored_object
from tests.unit.announced import Announced
from tests.unit.routed import tasks_of

from .indexed import indexed, routes_of

ZONE = "topology.kubernetes.io/zone"
KEY = ObjectKey("ns", "worker")
OF_GRAPH = {"nvidia.com/dynamo-component": "Decode", "nvidia.com/dynamo-graph-deployment-name": "graph"}


def graph(label: str | None = ZONE) -> KubeObject:
    policy = {} if label is None else {"experimental": {"kvTransferPolicy": {"labelKey": label, "domain": "zone"}}}
    return stored_object(DYNAMO_GRAPH_DEPLOYMENTS, "graph", uid="g", spec={"components": [], **policy})


def pod(**changes: Any) -> KubeObject:
    annotations = {"nvidia.com/topology-label-key": ZONE, "secret.example.com/token": "x"}
    usual = {"resourceVersion": "5", "labels": OF_GRAPH, "annotations": annotations, "spec": {"nodeName": "a"}}
    return object_of(PODS, "worker", uid="1", **{**usual, "status": {}, **changes})


@pytest.mark.parametrize(
    ("observed", "label"),
    [
        (pod(), ZONE),
        (pod(labels={**OF_GRAPH, ZONE: "b"}), ""),
        (pod(labels={"nvidia.com/dynamo-component": "Decode"}), ""),
        (pod(annotations={}), ""),
        (pod(spec={}), ""),
        (pod(status={"phase": "Failed"}), ""),
        (pod(deletionTimestamp="2026-01-01T00:00:00Z"), ""),
    ],
    ids=["scheduled", "labelled", "of no graph", "of no policy", "not scheduled", "ended", "leaves"],
)
def test_pods_that_lack_a_label(observed: KubeObject, label: str) -> None:
    assert lacking(observed) == lacking(trimmed(observed)) == label


def test_a_pod_is_labelled_when_it_has_a_node_and_after_a_restart_of_the_platform() -> None:
    task, of = Task.of(PODS, KEY), routes_of(ObjectCache())
    assert task in tasks_of(of, PODS, KEY, pod(spec={}), pod())
    assert task not in tasks_of(of, PODS, KEY, None, pod(spec={}))
    assert waiting(indexed(pod())) == [KEY]
    assert waiting(indexed(pod(spec={}))) == []


class Kube:
    """One node, and a record of patches; the API server answers them with the error `refusing`."""

    def __init__(
        self, labels: dict[str, str] | None, *, refusing: KubeError | None = None, hidden: bool = False
    ) -> None:
        self.labels, self.refusing, self.hidden = labels, refusing, hidden
        self.patches: list[KubeObject] = []

    async def get(self, resource: Any, key: ObjectKey) -> KubeObject:
        assert (resource, key) == (NODES, ObjectKey("", "a"))
        if self.hidden:
            raise Forbidden(403, "Forbidden", "nodes is forbidden")
        if self.labels is None:
            raise NotFound(404, "NotFound", "gone")
        return {"metadata": {"name": "a", "labels": self.labels}}

    async def merge_patch(self, resource: Any, key: ObjectKey, patch: KubeObject) -> KubeObject:
        assert (resource, key) == (PODS, KEY)
        self.patches.append(patch)
        if self.refusing is not None:
            raise self.refusing
        changed = copy.deepcopy(pod())
        changed["metadata"]["labels"] |= patch["metadata"]["labels"]
        changed["metadata"]["resourceVersion"] = "7"
        return changed


async def reconciled(kube: Kube, cache: ObjectCache) -> tuple[Result, list[str]]:
    announced: Any = Announced()
    of_kube: Any = kube
    reconciler = PodReconciler(cache, of_kube, announced)
    result = await reconciler.reconcile(KEY)
    return result, [fact.message for fact in announced.facts]


async def test_the_label_of_the_node_is_copied() -> None:
    kube = Kube({ZONE: "b", "other": "c"})
    assert await reconciled(kube, indexed(graph(), trimmed(pod()))) == (Result(), [])
    assert kube.patches == [{"metadata": {"uid": "1", "labels": {ZONE: "b"}}}]


async def test_a_status_written_just_before_the_label_is_not_lost() -> None:
    cache = ObjectCache()
    for each in (graph(), trimmed(pod())):
        cache.take(resources.of(each), key_of(each), each, version_of(each))
    await reconciled(Kube({ZONE: "b"}), cache)
    # The kubelet wrote a status just before, and the cache receives both now.
    for version, label_set in (("6", OF_GRAPH), ("7", {**OF_GRAPH, ZONE: "b"})):
        said = pod(labels=label_set, resourceVersion=version, status={"phase": "Pending"})
        if not cache.confirm(PODS, KEY, version_of(said)):
            cache.take(PODS, KEY, trimmed(said), version_of(said))
    there = cache.get(PODS, KEY)
    assert there is not None
    assert (there["metadata"]["labels"][ZONE], there["status"]) == ("b", {"phase": "Pending"})


@pytest.mark.parametrize(
    "graphs", [[], [graph(None)], [graph("other")]], ids=["no graph", "no policy", "another label"]
)
async def test_the_policy_of_the_graph_counts_and_not_the_annotation_of_the_pod(graphs: list[KubeObject]) -> None:
    kube = Kube({ZONE: "b"}, hidden=True)
    assert await reconciled(kube, indexed(*graphs, pod())) == (Result(requeue_after=RECHECK_AFTER), [])
    assert kube.patches == []


MISSING = f"Cannot copy label {ZONE} of node a"


@pytest.mark.parametrize(
    ("kube", "message"),
    [
        (Kube({}), f"{MISSING}, which the node does not have: label the node, or name another label in the policy"),
        (Kube(None), f"{MISSING}, which the node does not have: label the node, or name another label in the policy"),
        (Kube({}, hidden=True), f"{MISSING}: 403 Forbidden: nodes is forbidden"),
        (Kube({ZONE: "b"}, refusing=Forbidden(403, "Forbidden", "a policy")), f"{MISSING}: 403 Forbidden: a policy"),
        (Kube({ZONE: "b"}, refusing=Invalid(422, "Invalid", "a quota")), f"{MISSING}: 422 Invalid: a quota"),
    ],
    ids=["no label", "no node", "nodes cannot be read", "pods cannot be written", "refused"],
)
async def test_errors_are_reported_and_retried(kube: Kube, message: str) -> None:
    result, messages = await reconciled(kube, indexed(graph(), pod()))
    assert (result, messages) == (Result(requeue_after=RECHECK_AFTER), [message])


@pytest.mark.parametrize("error", [NotFound(404, "NotFound", "gone"), Conflict(409, "Conflict", "another uid")])
async def test_a_pod_that_was_deleted_meanwhile_is_left_alone(error: KubeError) -> None:
    assert await reconciled(Kube({ZONE: "b"}, refusing=error), indexed(graph(), pod())) == (Result(), [])
