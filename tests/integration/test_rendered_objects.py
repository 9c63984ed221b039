"""A real API server takes what is rendered, and makes of it what it made of the reference's objects.

Dry runs: the server validates and fills in defaults, and stores nothing, so no pod is ever made.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_component, parse_graph
from dynamo_shared.kube import KubeClient, coverage

from tests.conformance import differences

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance"
FILES = sorted((CONFORMANCE / "cases" / "deployments").glob("*-v1beta1-*.json"))
MUST_RUN = sorted((CONFORMANCE / "must-run").glob("*-v1beta1-*.json"))
CONFIG = render.RenderConfig(
    nats_address="nats://dynamo-platform-nats.dynamo-system.svc.cluster.local:4222",
    etcd_address="dynamo-platform-etcd.dynamo-system.svc.cluster.local:2379",
    prometheus_endpoint="http://prometheus-kube-prometheus-prometheus.monitoring.svc.cluster.local:9090",
    planner_cluster_role="dynamo-planner",
    epp_cluster_role="dynamo-epp",
    operator_version="1.2.0",
    inference_pools=True,
)

pytestmark = pytest.mark.skipif(
    not FILES, reason="the recorded cases are not part of this repository; with them in ../shared/conformance this runs"
)


def rendered(graph: KubeObject, namespace: str) -> list[KubeObject]:
    """All children and grandchildren of a graph; uids are invented, which a server does not check."""
    metadata = {**graph["metadata"], "namespace": namespace, "uid": "00000000-0000-0000-0000-000000000001"}
    children = render.graph_children(parse_graph({**graph, "metadata": metadata}), CONFIG)
    for child in list(children):
        if child["kind"] == resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            uid = "00000000-0000-0000-0000-000000000002"
            stored = {**child, "metadata": {**child["metadata"], "uid": uid}}
            children += render.component_children(parse_component(stored), CONFIG)
    return children


def key_of(obj: KubeObject) -> str:
    resource = resources.of(obj)
    return f"{resource.group or 'core'}/{resource.version}/{resource.plural}/{obj['metadata']['name']}"


def load(path: Path) -> KubeObject:
    case: KubeObject = json.loads(path.read_text())
    return case


def needs_more_than_one_node_or_dra(case: KubeObject) -> list[str]:
    """Components that are spread over nodes or share GPUs through the memory service."""
    return [
        component["name"]
        for doc in case["input"]
        if doc["kind"] == "DynamoGraphDeployment"
        for component in doc["spec"]["components"]
        if "multinode" in component or "experimental" in component
    ]


async def dry_run(case: KubeObject, kube: KubeClient, namespace: str) -> list[KubeObject]:
    """What the server would store of all that the graphs of a case become."""
    graphs = [doc for doc in case["input"] if doc["kind"] == "DynamoGraphDeployment"]
    children = (child for graph in graphs for child in rendered(graph, namespace))
    # The cluster of these tests has no gateway's kinds; tests/conformance has, and compares these, too.
    desired = [child for child in children if child["kind"] != resources.INFERENCE_POOLS.kind]
    stored = await asyncio.gather(*(kube.apply(resources.of(child), child, dry_run=True) for child in desired))
    for child, obj in zip(desired, stored, strict=True):
        # What is applied must be readable again, or it would be applied without end.
        assert coverage.missing(child, obj) == "", key_of(child)
    return stored


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_is_stored_as_recorded(
    path: Path, kube: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CONFORMANCE))
    rules, comparer = importlib.import_module("canonical"), importlib.import_module("compare")
    for name in ("canonical", "compare"):
        monkeypatch.delitem(sys.modules, name)
    case = load(path)
    if beyond := needs_more_than_one_node_or_dra(case):
        # The right answer until these parts of the reference are built: refused, with the component and the reason.
        with pytest.raises(render.NotDeployable, match=f"component ({'|'.join(beyond)}): "):
            await dry_run(case, kube, namespace)
        return
    stored = await dry_run(case, kube, namespace)
    got = rules.canonical({key_of(obj): obj for obj in stored}, namespace, rules.given(case))
    kinds = {rules.resource_of(key) for key in got}
    expected = {key: obj for key, obj in case["expected"].items() if rules.resource_of(key) in kinds}
    assert got.keys() == expected.keys()
    listed = differences.load()
    differs = [(key, *each) for key in expected for each in comparer.paths(expected[key], got[key])]
    assert [each for each in differs if not differences.listed_in(listed, path.stem, each[0], each[1])] == []


@pytest.mark.parametrize("path", MUST_RUN, ids=lambda path: path.stem)
async def test_is_taken_where_the_references_is_refused(path: Path, kube: KubeClient, namespace: str) -> None:
    stored = await dry_run(load(path), kube, namespace)
    assert [obj for obj in stored if obj["kind"] == "Deployment"]
