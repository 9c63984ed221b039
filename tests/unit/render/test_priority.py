"""The PriorityClass of a graph: for its pods, or for the gangs that Grove schedules."""

from dataclasses import replace
from typing import Any

from .building import CONFIG, component, component_deployments, graph, graph_children, of_kind, workloads

LEADER_WORKER_SETS = replace(CONFIG, leader_worker_sets=True)
TENSORS = {
    "command": ["python3", "-m", "dynamo.vllm"],
    "args": ["--tensor-parallel-size", "2"],
    "resources": {"limits": {"nvidia.com/gpu": "1"}},
}


def sample(**fields: Any) -> dict[str, Any]:
    return graph(
        component("Frontend", "frontend"),
        component("Own", pod={"priorityClassName": "own"}),
        component("Spread", main=TENSORS, multinode={"nodeCount": 2}),
        **fields,
    )


def test_pods_of_all_components_have_it_and_a_template_keeps_its_own() -> None:
    made = workloads(sample(priorityClassName="high"), LEADER_WORKER_SETS)
    (frontend,) = of_kind(made["Frontend"], "Deployment")
    (own,) = of_kind(made["Own"], "Deployment")
    (spread,) = of_kind(made["Spread"], "LeaderWorkerSet")
    pods = [each["spec"]["template"]["spec"] for each in (frontend, own)]
    pods += [spread["spec"]["leaderWorkerTemplate"][name]["spec"] for name in ("leaderTemplate", "workerTemplate")]
    assert [each["priorityClassName"] for each in pods] == ["high", "own", "high", "high"]


def test_a_component_without_a_pod_template_has_it() -> None:
    specs = component_deployments(graph({"name": "Worker", "type": "worker"}, priorityClassName="high"))
    assert specs["Worker"]["spec"]["podTemplate"]["spec"] == {"priorityClassName": "high"}


def test_on_grove_the_set_has_it_and_pods_have_that_of_their_template() -> None:
    (result,) = of_kind(graph_children(sample(priorityClassName="high"), replace(CONFIG, grove=True)), "PodCliqueSet")
    template = result["spec"]["template"]
    assert template["priorityClassName"] == "high"
    pods = {each["name"]: each["spec"]["podSpec"].get("priorityClassName") for each in template["cliques"]}
    assert pods == {"frontend": None, "own": "own", "spread-ldr": None, "spread-wkr": None}


def test_an_empty_one_changes_nothing() -> None:
    for grove in (False, True):
        config = replace(LEADER_WORKER_SETS, grove=grove)
        assert graph_children(sample(priorityClassName=""), config) == graph_children(sample(), config)
