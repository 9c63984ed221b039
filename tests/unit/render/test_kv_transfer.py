"""A policy for KV caches: workers read their domain from a file that the kubelet writes from a label of their pod."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, component_deployments, graph, graph_children, of_kind, variables, workloads
from .test_priority import LEADER_WORKER_SETS, TENSORS

POLICY = {"labelKey": "topology.kubernetes.io/zone", "domain": "zone"}
MOUNT = {"name": "topology-labels", "mountPath": "/etc/dynamo/topology", "readOnly": True}
FIELD = {"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}
VOLUME = {"name": "topology-labels", "downwardAPI": {"items": [{"path": "zone", "fieldRef": FIELD}]}}
GIVEN = {
    "DYN_TOPOLOGY_ENABLED": "true",
    "DYN_TOPOLOGY_MOUNT_PATH": "/etc/dynamo/topology",
    "DYN_KV_TRANSFER_DOMAIN": "zone",
    "DYN_KV_TRANSFER_ENFORCEMENT": "required",
}
ANNOTATION = "nvidia.com/topology-label-key"


def sample(policy: dict[str, Any] = POLICY) -> KubeObject:
    return graph(
        component("Frontend", "frontend"),
        component("Prefill", "prefill"),
        component("Decode", "decode", main=TENSORS, multinode={"nodeCount": 2}),
        experimental={"kvTransferPolicy": policy},
    )


def topology_of(pod: KubeObject) -> tuple[dict[str, Any], list[KubeObject], list[KubeObject]]:
    """Variables, mounts and volumes of a policy in a pod."""
    main = pod["containers"][0]
    given = {name: value for name, value in variables(main).items() if name.startswith(("DYN_TOPO", "DYN_KV_TRANSFER"))}
    mounts = [each for each in main.get("volumeMounts", ()) if each["name"] == VOLUME["name"]]
    return given, mounts, [each for each in pod.get("volumes", ()) if each["name"] == VOLUME["name"]]


def test_pods_of_workers_have_all_parts_and_frontends_have_none() -> None:
    made = workloads(sample(), LEADER_WORKER_SETS)
    (frontend,), (prefill,) = of_kind(made["Frontend"], "Deployment"), of_kind(made["Prefill"], "Deployment")
    (decode,) = of_kind(made["Decode"], "LeaderWorkerSet")
    templates = [decode["spec"]["leaderWorkerTemplate"][name] for name in ("leaderTemplate", "workerTemplate")]
    for template in (prefill["spec"]["template"], *templates):
        assert topology_of(template["spec"]) == (GIVEN, [MOUNT], [VOLUME])
        assert template["metadata"]["annotations"][ANNOTATION] == POLICY["labelKey"]
    assert topology_of(frontend["spec"]["template"]["spec"]) == ({}, [], [])
    assert ANNOTATION not in frontend["spec"]["template"]["metadata"].get("annotations", {})


def test_cliques_of_workers_have_the_same_parts() -> None:
    (result,) = of_kind(graph_children(sample(), replace(CONFIG, grove=True)), "PodCliqueSet")
    cliques = {each["name"]: each for each in result["spec"]["template"]["cliques"]}
    for name in ("prefill", "decode-ldr", "decode-wkr"):
        assert topology_of(cliques[name]["spec"]["podSpec"]) == (GIVEN, [MOUNT], [VOLUME])
        assert cliques[name]["annotations"][ANNOTATION] == POLICY["labelKey"]
    assert ANNOTATION not in cliques["frontend"]["annotations"]
    assert topology_of(cliques["frontend"]["spec"]["podSpec"]) == ({}, [], [])


@pytest.mark.parametrize(("weight", "text"), [(0.85, "0.85"), (1, "1"), (0, "0"), (0.0000001, "0.0000001")])
def test_a_preference_has_a_weight(weight: float, text: str) -> None:
    policy = {**POLICY, "enforcement": "preferred", "preferredWeight": weight}
    spec = component_deployments(sample(policy), LEADER_WORKER_SETS)["Prefill"]["spec"]["podTemplate"]["spec"]
    expected = {**GIVEN, "DYN_KV_TRANSFER_ENFORCEMENT": "preferred", "DYN_KV_TRANSFER_PREFERRED_WEIGHT": text}
    assert topology_of(spec)[0] == expected


def test_user_fields_with_these_names_are_replaced() -> None:
    env = [{"name": "DYN_KV_TRANSFER_PREFERRED_WEIGHT", "value": "1"}, {"name": "DYN_TOPOLOGY_ENABLED", "value": "no"}]
    volume_mounts = [{"name": "topology-labels", "mountPath": "/a"}, {"name": "b", "mountPath": "/etc/dynamo/topology"}]
    main = {"env": env, "volumeMounts": volume_mounts}
    volumes = [{"name": "topology-labels", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    obj = graph(component(main=main, pod={"volumes": volumes}), experimental={"kvTransferPolicy": POLICY})
    spec = component_deployments(obj)["Worker"]["spec"]["podTemplate"]["spec"]
    assert topology_of(spec) == (GIVEN, [MOUNT], [VOLUME])
    assert [each["name"] for each in spec["containers"][0]["volumeMounts"]] == ["topology-labels"]
    assert [each["name"] for each in spec["volumes"]] == ["b", "topology-labels"]


def test_a_policy_without_a_node_label_is_rejected() -> None:
    with pytest.raises(
        render.RenderError, match="labelKey: is required: the platform reads the rack of a node from this label"
    ):
        graph_children(sample({"clusterTopologyName": "t", "domain": "rack"}), LEADER_WORKER_SETS)
