"""Step `adopt`: a worker generation with the same pods is the desired one, whatever its hash."""

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_pod_builder.legacy_types import legacy_type, legacy_types
from dynamo_pod_builder.reconcilers.graph.steps.adoption import adopt
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import LAST_APPLIED_GENERATION, OPERATOR_ORIGIN_VERSION, RESTART_AT
from dynamo_shared.api.v1beta1 import parse_graph

from tests.building.objects import with_metadata
from tests.building.tables import rows
from tests.unit.render.building import CONFIG, component, component_children, graph, graph_children, of_kind
from tests.unit.render.recorded import CASES, canonical_module, load
from tests.unit.render.test_conformance import BETTER, NAMESPACE, graphs, is_refused, slug
from tests.unit.render.test_conformance import CONFIG as RECORDED_CONFIG

from .building import desiring, observed, stored_graph

OLD = "0123abcd"


def desired_of(*components: KubeObject) -> list[KubeObject]:
    return graph_children(graph(*components))


def under(hash_: str, desired: list[KubeObject], made: str = "2026-01-01T00:00:00Z") -> list[KubeObject]:
    """The same workers with another hash, as they would be stored."""
    current = current_hash(desired)
    document = json.loads(json.dumps(of_kind(desired, "DynamoComponentDeployment")).replace(current, hash_))
    for each in document:
        each["metadata"] |= {"uid": f"uid-of-{each['metadata']['name']}", "creationTimestamp": made}
    return [each for each in document if labels.WORKER_HASH in each["metadata"]["labels"]]


def current_hash(desired: list[KubeObject]) -> str:
    (result,) = {
        each["metadata"]["labels"][labels.WORKER_HASH]
        for each in of_kind(desired, "DynamoComponentDeployment")
        if labels.WORKER_HASH in each["metadata"]["labels"]
    }
    return str(result)


def adopted(
    desired: list[KubeObject],
    present: list[KubeObject],
    workloads: dict[str, KubeObject] | None = None,
    config: render.RenderConfig = CONFIG,
) -> list[KubeObject]:
    return list(adopt(desiring(*desired), observed(*present, workloads=workloads, config=config)).desired)


def names_after(desired: list[KubeObject], present: list[KubeObject], workload: KubeObject | None = None) -> set[str]:
    workloads = {each["metadata"]["name"]: workload for each in present} if workload is not None else {}
    return {
        each["metadata"]["name"] for each in of_kind(adopted(desired, present, workloads), "DynamoComponentDeployment")
    }


FRONTEND, ONE, TWO = component("Front", "frontend"), component("One"), component("Two", "decode")
DESIRED = desired_of(FRONTEND, ONE, TWO)
PLAIN = {f"graph-{name}-{current_hash(DESIRED)}" for name in ("one", "two")} | {"graph-front"}
ADOPTED = {f"graph-one-{OLD}", f"graph-two-{OLD}", "graph-front"}


def changed(present: list[KubeObject], **spec: Any) -> list[KubeObject]:
    first, *rest = copy.deepcopy(present)
    first["spec"].update(spec)
    return [first, *rest]


def annotated(present: list[KubeObject], **object_annotations: str) -> list[KubeObject]:
    first, *rest = copy.deepcopy(present)
    metadata = first["spec"]["podTemplate"]["metadata"]
    metadata["annotations"] = {**metadata.get("annotations", {}), **object_annotations}
    return [first, *rest]


def test_the_same_pods_keep_their_names_and_hash():
    there = under(OLD, DESIRED)
    result = adopted(DESIRED, there)
    results = {each["metadata"]["name"]: each for each in of_kind(result, "DynamoComponentDeployment")}
    assert results.keys() == ADOPTED
    worker = results[f"graph-one-{OLD}"]
    assert worker["metadata"]["labels"][labels.WORKER_HASH] == OLD
    assert worker["spec"]["podTemplate"]["metadata"]["labels"][labels.WORKER_HASH] == OLD
    assert [each for each in result if each["kind"] != "DynamoComponentDeployment"] == [
        each for each in DESIRED if each["kind"] != "DynamoComponentDeployment"
    ]


@rows(
    "there, names",
    {
        "nothing there": ([], PLAIN),
        "a component is missing": (under(OLD, DESIRED)[:1], PLAIN),
        "another number of pods": (changed(under(OLD, DESIRED), replicas=7), ADOPTED),
        "restarted once": (annotated(under(OLD, DESIRED), **{RESTART_AT: "x"}), ADOPTED),
        "another origin": (annotated(under(OLD, DESIRED), **{OPERATOR_ORIGIN_VERSION: "0.9.0"}), ADOPTED),
        "an annotation of pods differs": (annotated(under(OLD, DESIRED), team="a"), PLAIN),
        "another type": (changed(under(OLD, DESIRED), type="prefill"), PLAIN),
        "one worker differs: none is taken": (changed(under(OLD, DESIRED), sharedMemorySize="1Gi"), PLAIN),
        "not to be read": (changed(under(OLD, DESIRED), multinode={"nodeCount": "x"}), PLAIN),
        "the desired one has begun": ([*under(OLD, DESIRED), *under(current_hash(DESIRED), DESIRED)[:1]], PLAIN),
        "back to one of two": (
            [*changed(under("feed0000", DESIRED), sharedMemorySize="1Gi"), *under(OLD, DESIRED)],
            ADOPTED,
        ),
        "the newest of two": ([*under("feed0000", DESIRED, "2025-01-01T00:00:00Z"), *under(OLD, DESIRED)], ADOPTED),
    },
)
def test_a_generation_is_adopted_only_if_its_pods_are_the_same(there, names):
    assert names_after(DESIRED, there) == names


@pytest.mark.parametrize("version", ["", "-v2"])
def test_of_two_generations_the_current_one_is_adopted(version):
    there = [*under(OLD, DESIRED, "2025-01-01T00:00:00Z"), *under("feed0000", DESIRED)]
    of = with_metadata(stored_graph(), annotations={f"nvidia.com/current-worker-hash{version}": OLD})
    desired = adopt(desiring(*DESIRED), observed(*there, of=of, config=CONFIG)).desired
    assert {each["metadata"]["name"] for each in desired if each["kind"] == "DynamoComponentDeployment"} == ADOPTED


def test_equivalent_notations_give_the_same_pods():
    """Fields that an API server or another program leaves out or adds without changing the meaning."""
    there = copy.deepcopy(under(OLD, DESIRED))
    for each in there:
        main = each["spec"]["podTemplate"]["spec"]["containers"][0]
        main["resources"] = {}
        main["env"] = []
    assert names_after(DESIRED, there) == ADOPTED


@pytest.mark.parametrize("nodes", [1, 2])
def test_quantities_and_empty_fields_as_the_author_wrote_them_give_the_same_pods(nodes):
    """An earlier version stored them as written, and the author writes them differently now."""
    config = replace(CONFIG, leader_worker_sets=True)

    def of(cpu: Any, memory: str, **pod: Any) -> KubeObject:
        resources = {"limits": {"nvidia.com/gpu": 1, "cpu": cpu}}
        main = {"resources": resources, "command": ["python3", "-m", "dynamo.vllm"], "args": ["--x"]}
        several = {"nodeCount": 2} if nodes > 1 else None
        return graph(component("One", main=main, pod=pod, sharedMemorySize=memory, multinode=several))

    given = render.children_as_given(parse_graph(of(0.5, "2048Mi", hostNetwork=False)), config)
    desired = graph_children(of("500m", "2Gi"), config)
    assert current_hash(given) != current_hash(desired)
    there = under(OLD, given)
    assert there[0]["spec"]["sharedMemorySize"] == "2048Mi"
    results = of_kind(adopted(desired, there, config=config), "DynamoComponentDeployment")
    assert [each["metadata"]["name"] for each in results] == [f"graph-one-{OLD}"]


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_restart_annotation_does_not_make_other_pods(nodes):
    config = replace(CONFIG, leader_worker_sets=True)
    gpus = {"resources": {"limits": {"nvidia.com/gpu": "1"}}, "command": ["python3", "-m", "dynamo.vllm"], "args": []}
    spread: dict[str, Any] = {"multinode": {"nodeCount": nodes}} if nodes > 1 else {}
    desired = graph_children(graph(component("One", main={**gpus, "args": ["--model", "m"]}, **spread)), config)
    (there,) = annotated(under(OLD, desired), **{RESTART_AT: "x"})
    there["spec"]["podTemplate"]["spec"]["containers"][0]["env"] = []
    result = adopted(desired, [there], config=config)
    assert [each["metadata"]["name"] for each in of_kind(result, "DynamoComponentDeployment")] == [f"graph-one-{OLD}"]


def test_pods_of_roles_keep_their_hash():
    main = {"name": "main", "image": "img:1", "command": ["torchrun"]}
    roles = [{"name": role, "podTemplate": {"spec": {"containers": [main]}}} for role in ("leader", "worker")]
    single = {"name": "One", "type": "worker", "multinode": {"nodeCount": 2}, "roles": roles}
    config = replace(CONFIG, leader_worker_sets=True)
    desired = graph_children(graph(single), config)
    there = annotated(under(OLD, desired), **{RESTART_AT: "x"})
    of_workers = there[0]["spec"]["roles"][1]["podTemplate"]["metadata"]
    of_workers["annotations"] = {**of_workers.get("annotations", {}), RESTART_AT: "x"}
    (made,) = of_kind(adopted(desired, there, config=config), "DynamoComponentDeployment")
    assert made["metadata"]["name"] == f"graph-one-{OLD}"
    assert current_hash(desired) not in json.dumps(made)


def test_workers_from_before_hashes_keep_their_plain_names():
    there = copy.deepcopy(under(OLD, DESIRED))
    for each in there:
        each["metadata"]["name"] = each["metadata"]["name"].removesuffix(f"-{OLD}")
        del each["metadata"]["labels"][labels.WORKER_HASH]
        del each["spec"]["podTemplate"]["metadata"]["labels"][labels.WORKER_HASH]
    assert names_after(DESIRED, there) == {"graph-front", "graph-one", "graph-two"}


def test_an_immutable_engine_field_stays():
    there = changed(under(OLD, DESIRED), backendFramework="vllm")
    result = adopted(DESIRED, there)
    results = {each["metadata"]["name"]: each["spec"] for each in of_kind(result, "DynamoComponentDeployment")}
    assert results[f"graph-one-{OLD}"]["backendFramework"] == "vllm"


def test_pods_of_the_reference_are_compared_if_its_component_lacks_a_field():
    """The reference keeps fields that only v1alpha1 has in annotations of its own."""
    desired = desired_of(component("One", annotations={"team": "a"}))
    (there,) = under(OLD, desired)
    del there["spec"]["podTemplate"]["metadata"]["annotations"]["team"]
    (named,) = of_kind(json.loads(json.dumps(desired).replace(current_hash(desired), OLD)), "DynamoComponentDeployment")
    (workload,) = of_kind(component_children(named), "Deployment")
    assert names_after(desired, [there], workload) != {f"graph-one-{OLD}"}, "of the platform: the component counts"
    there["metadata"]["annotations"] = {LAST_APPLIED_GENERATION: "1"}
    assert names_after(desired, [there], workload) == {f"graph-one-{OLD}"}
    assert names_after(desired, [there], None) != {f"graph-one-{OLD}"}


@pytest.mark.parametrize(
    ("type_", "object_labels", "legacy"),
    [
        ("decode", {labels.COMPONENT_TYPE: "worker", labels.SUB_COMPONENT_TYPE: "decode"}, "worker"),
        ("decode", {labels.COMPONENT_TYPE: "worker"}, "worker"),
        ("decode", {labels.COMPONENT_TYPE: "worker", labels.SUB_COMPONENT_TYPE: "prefill"}, ""),
        ("decode", {labels.COMPONENT_TYPE: "decode", labels.SUB_COMPONENT_TYPE: "decode"}, ""),
        ("worker", {labels.COMPONENT_TYPE: "worker"}, ""),
    ],
)
@pytest.mark.parametrize("kind", ["Deployment", "LeaderWorkerSet"])
def test_pods_with_a_legacy_type_label_keep_it(type_, object_labels, legacy, kind):
    template = {"metadata": {"labels": object_labels}}
    spec = {"template": template} if kind == "Deployment" else {"leaderWorkerTemplate": {"workerTemplate": template}}
    assert legacy_type({"spec": {"type": type_}}, {"kind": kind, "spec": spec}) == legacy
    assert legacy_type({"spec": {"type": type_}}, None) == ""


FILES = sorted((CASES / "deployments").glob("*.json"))


# A generation whose pods lacked a field because of an error of the reference is replaced.
@pytest.mark.parametrize(
    "path", [each for each in FILES if not is_refused(each) and slug(each) not in BETTER], ids=slug
)
def test_every_recorded_generation_is_adopted(path):
    case, canonical = load(path), canonical_module()
    text = json.dumps(case["expected"]).replace("case-namespace", NAMESPACE).replace("workerhash", OLD)
    recorded = json.loads(text)
    workloads = {
        obj["metadata"]["name"]: {**obj, "kind": "Deployment" if "deployments" in key else "LeaderWorkerSet"}
        for key, obj in recorded.items()
        if canonical.resource_of(key) in ("deployments", "leaderworkersets")
    }
    for given in graphs(case):
        metadata = {**given["metadata"], "namespace": NAMESPACE, "uid": "graph-uid", "generation": 1}
        desired = render.graph_children(parse_graph({**given, "metadata": metadata}), RECORDED_CONFIG)
        present = [
            {
                "apiVersion": "nvidia.com/v1beta1",
                "kind": "DynamoComponentDeployment",
                **obj,
                "metadata": {
                    **obj["metadata"],
                    "namespace": NAMESPACE,
                    "uid": f"uid-of-{obj['metadata']['name']}",
                    "annotations": {LAST_APPLIED_GENERATION: "1"},
                },
            }
            for key, obj in recorded.items()
            if canonical.resource_of(key) == "dynamocomponentdeployments"
            and obj["metadata"]["labels"][labels.GRAPH_DEPLOYMENT_NAME] == given["metadata"]["name"]
        ]
        result = adopted(desired, present, workloads, RECORDED_CONFIG)
        names = {each["metadata"]["name"] for each in of_kind(result, "DynamoComponentDeployment")}
        assert names == {each["metadata"]["name"] for each in present}


def test_cliques_with_a_legacy_type_label_keep_it():
    asked = [{"name": "One", "type": "decode"}, {"name": "Two", "type": "prefill"}, {"name": "Front"}]
    cliques: list[KubeObject] = [
        {"labels": {labels.COMPONENT: "One", labels.COMPONENT_TYPE: "worker", labels.SUB_COMPONENT_TYPE: "decode"}},
        {"labels": {labels.COMPONENT: "Two", labels.COMPONENT_TYPE: "prefill"}},
        {"name": "unmarked"},
    ]
    assert legacy_types(asked, cliques) == {"One": "worker"}
    assert legacy_types(asked, []) == {}
    on_grove = replace(CONFIG, grove=True)
    made = graph_children(graph(component("One", "decode")), on_grove, legacy_types={"One": "worker"})
    ((clique,),) = (each["spec"]["template"]["cliques"] for each in of_kind(made, "PodCliqueSet"))
    assert clique["labels"][labels.COMPONENT_TYPE] == "worker"
    assert clique["labels"][labels.SUB_COMPONENT_TYPE] == "decode"
    services = [each for each in of_kind(made, "Service") if each["metadata"]["name"] == "graph-one"]
    assert [each["spec"]["selector"][labels.COMPONENT_TYPE] for each in services] == ["worker"]


def test_pods_that_claim_other_gpus_differ_even_if_their_templates_are_equal():
    def sharing(gpus: int) -> list[KubeObject]:
        shared = component("One", main={"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}})
        shared["experimental"] = {"gpuMemoryService": {}}
        return graph_children(graph(shared), replace(CONFIG, device_claims=True))

    def names(desired: list[KubeObject], present: list[KubeObject]) -> set[str]:
        result = adopted(desired, present, config=replace(CONFIG, device_claims=True))
        return {each["metadata"]["name"] for each in of_kind(result, "DynamoComponentDeployment")}

    assert names(sharing(2), under(OLD, sharing(2))) == {f"graph-one-{OLD}"}
    three = sharing(3)
    assert names(three, under(OLD, sharing(2))) == {f"graph-one-{current_hash(three)}"}
