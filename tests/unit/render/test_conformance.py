"""Rendered objects equal those that the reference operator was recorded to create from the same input."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api import resources
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.defaults import default
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import PROBES, asks
from dynamo_shared.api.v1beta1 import parse_component, parse_graph

from .recorded import CASES, MUST, canonical_module, differences, load, normalized

NAMESPACE = "recorded-namespace"
BETA = "nvidia.com/v1beta1"
PROFILES = ("deployments", "grove")
#: Like `operator-config.yaml` next to the cases.
CONFIG = render.RenderConfig(
    discovery_backend="kubernetes",
    infrastructure=(
        ("NATS_SERVER", "nats://dynamo-platform-nats.dynamo-system.svc.cluster.local:4222"),
        ("ETCD_ENDPOINTS", "dynamo-platform-etcd.dynamo-system.svc.cluster.local:2379"),
        ("PROMETHEUS_ENDPOINT", "http://prometheus-kube-prometheus-prometheus.monitoring.svc.cluster.local:9090"),
    ),
    planner_cluster_role="dynamo-planner",
    epp_cluster_role="dynamo-epp",
    operator_version="1.2.0",
    inference_pools=True,
    leader_worker_sets=True,
    ssh_secret="mpi-run-ssh-secret",
    device_claims=True,
)
#: The resources that this part of the platform creates. Other tests compare the rest of a case.
KINDS = {
    "dynamocomponentdeployments",
    "deployments",
    "leaderworkersets",
    "inferencepools",
    "podcliquesets",
    "configmaps",
    "services",
    "serviceaccounts",
    "roles",
    "rolebindings",
    "resourceclaimtemplates",
}
#: Errors of the reference that this platform does not have, by case: `../shared/conformance/cases` records them.
BETTER = {
    # A probe that only tunes the default is merged with it. The reference passes it on without a handler.
    "grove-examples-deployments-gke-vllm-disagg",
    "grove-examples-deployments-gke-vllm-v1beta1-disagg",
    # The mounts of a service are added to those of its mainContainer. Version 1.2 lost them.
    "deployments-examples-backends-trtllm-deploy-disagg-multinode",
    "grove-examples-backends-trtllm-deploy-disagg-multinode",
}

FILES = [path for folder in PROFILES for path in sorted((CASES / folder).glob("*.json"))]

pytestmark = pytest.mark.skipif(
    not FILES, reason="the recorded cases are not part of this repository; with them in ../shared/conformance this runs"
)


def graphs(case: KubeObject) -> list[KubeObject]:
    """The case's graphs as v1beta1, with the defaults of admission."""
    documents = [doc for doc in case["input"] if doc["kind"] == "DynamoGraphDeployment"]
    return [convert(default(doc, platform_version=CONFIG.operator_version), BETA) for doc in documents]


def is_refused(path: Path) -> bool:
    """Whether the case's graphs need what the cluster of their folder cannot do; the reference rejected them, too."""
    graph = "DynamoGraphDeployment"
    return any(entry["kind"] == graph and not entry["accepted"] for entry in load(path)["admission"])


def rendered(graph: KubeObject, *, grove: bool = False) -> dict[str, KubeObject]:
    """All children and grandchildren of a graph, with the keys of the recording."""
    config = replace(CONFIG, grove=grove)
    graph = {**graph, "metadata": {**graph["metadata"], "namespace": NAMESPACE, "uid": "graph-uid", "generation": 1}}
    children = render.graph_children(parse_graph(graph), config)
    for child in list(children):
        if child["kind"] == resources.DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            stored = {**child, "metadata": {**child["metadata"], "uid": f"uid-of-{child['metadata']['name']}"}}
            children += render.component_children(parse_component(stored), config)
    return {key_of(child): normalized(child) for child in children}


def key_of(obj: KubeObject) -> str:
    resource = resources.of(obj)
    return f"{resource.group or 'core'}/{resource.version}/{resource.plural}/{obj['metadata']['name']}"


MUST_RUN = sorted(MUST.glob("*.json")) if MUST.is_dir() else []
CASES_RENDERED = [path for path in FILES if not is_refused(path)]
CASES_REFUSED = [path for path in FILES if is_refused(path)]


def slug(path: Path) -> str:
    return f"{path.parent.name}-{path.stem}"


#: Differences from the reference: tests/conformance/differences.toml gives the reasons.
MEANT = ("labels.nvidia.com/dynamo-base-model: expected None", "selector.nvidia.com/dynamo-component-type: expected ''")


@pytest.mark.parametrize("path", CASES_RENDERED, ids=slug)
def test_equals_the_recording(path: Path) -> None:
    case, canonical = load(path), canonical_module()
    objects: dict[str, KubeObject] = {}
    for graph in graphs(case):
        objects |= rendered(graph, grove=path.parent.name == "grove")
    got = canonical.canonical(objects, NAMESPACE, canonical.given(case))
    want = {key: obj for key, obj in case["expected"].items() if canonical.resource_of(key) in KINDS}
    for key in want.keys() & got.keys():
        if key.endswith("-wait-leader-script"):
            # The script that waits is our own.
            assert want[key].pop("data").keys() == got[key].pop("data").keys()
    assert got.keys() == want.keys()
    lines = [f"{key}{line}" for key in want for line in differences(want[key], got[key])]
    results = [line for line in lines if not any(meant in line for meant in MEANT)]
    assert bool(results) == (slug(path) in BETTER), "\n".join(results)


@pytest.mark.parametrize("path", CASES_REFUSED, ids=slug)
def test_graphs_that_cannot_run_are_rejected(path: Path) -> None:
    for graph in graphs(load(path)):
        with pytest.raises(render.RenderError, match=r"component agg: .* share GPU memory only where Grove runs them"):
            rendered(graph)


@pytest.mark.parametrize("path", [path for path in MUST_RUN if graphs(load(path))], ids=slug)
def test_graphs_run_that_the_reference_cannot_run(path: Path) -> None:
    """A probe that only tunes the default, which the reference passes on without a handler."""
    results = [obj for graph in graphs(load(path)) for obj in rendered(graph).values() if obj["kind"] == "Deployment"]
    assert results
    for obj in results:
        main = obj["spec"]["template"]["spec"]["containers"][0]
        for name in PROBES:
            assert name not in main or asks(main[name])


@pytest.mark.parametrize("path", CASES_RENDERED, ids=slug)
def test_rendering_returns_plain_data_and_does_not_change_its_input(path: Path) -> None:
    case = load(path)
    for graph in graphs(case):
        once = rendered(graph, grove=path.parent.name == "grove")
        assert rendered(graph, grove=path.parent.name == "grove") == once
        assert all(only_json(obj) for obj in once.values())
    assert case == load(path)


def only_json(value: Any) -> bool:
    """Whether a value has only JSON's own types, no subclasses of them."""
    if type(value) is dict:
        return all(type(key) is str and only_json(item) for key, item in value.items())
    return all(only_json(item) for item in value) if type(value) is list else type(value) in (str, int, float, bool)


def test_all_recorded_graphs_are_covered() -> None:
    assert len(CASES_RENDERED) >= 183
    assert len(CASES_REFUSED) == 2
