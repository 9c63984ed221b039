"""Step `desire`: the desired objects of a graph, and the fields that stay as they are."""

import json
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps import planned
from dynamo_pod_builder.reconcilers.graph.steps.desired import desire
from dynamo_pod_builder.render import CheckpointDefaults, children_as_given
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.starts import Catalogue, KnownCheckpoint
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.v1beta1 import parse_graph
from dynamo_shared.api.v1beta1.experimental import CheckpointIdentity

from tests.unit.render.building import CONFIG, component, graph_children, of_kind

from .building import observed, stored, stored_graph

GROVE = replace(CONFIG, grove=True)


def replicas(plan: Plan) -> dict[str, int]:
    return {
        each["spec"]["name"]: each["spec"]["replicas"]
        for each in of_kind(list(plan.desired), "DynamoComponentDeployment")
    }


def adapter(component: str, number: int, owner: str = "graph-uid") -> KubeObject:
    reference = {"kind": "DynamoGraphDeployment", "name": "graph", "uid": owner, "controller": True}
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "metadata": {"name": f"graph-{component.lower()}", "ownerReferences": [reference]},
        "spec": {"replicas": number, "dgdRef": {"name": "graph", "componentName": component}},
    }


ASKING = component("One", replicas=1, scalingAdapter={})


@pytest.mark.parametrize(
    ("of", "there", "expected"),
    [
        pytest.param(ASKING, [], 1, id="no adapter yet"),
        pytest.param(ASKING, [adapter("One", 3)], 3, id="the adapter's number counts"),
        pytest.param(ASKING, [adapter("One", 0)], 0, id="none is a number, too"),
        pytest.param(component("One", replicas=1), [adapter("One", 3)], 1, id="the component asks for none"),
        pytest.param(ASKING, [adapter("Two", 3)], 1, id="of another component"),
        pytest.param(ASKING, [adapter("One", 3, owner="other")], 1, id="of another graph"),
    ],
)
def test_replicas_come_from_the_adapter(of, there, expected):
    graph = stored_graph(of)
    assert replicas(desire(Plan(), observed(*there, of=graph))) == {"One": expected}


def test_an_immutable_engine_field_is_kept():
    graph = stored_graph(component("One"))
    (there,) = of_kind(graph_children(graph), "DynamoComponentDeployment")
    there = stored({**there, "spec": {**there["spec"], "backendFramework": "sglang"}})
    (desired,) = of_kind(list(desire(Plan(), observed(there, of=graph)).desired), "DynamoComponentDeployment")
    assert desired["spec"]["backendFramework"] == "sglang"


def test_a_graph_that_names_its_engine_is_not_rendered_again_once_it_has_components():
    graph = stored_graph(component("One"), backendFramework="vllm")
    first = desire(Plan(), observed(of=graph))
    again = desire(Plan(), observed(*map(stored, first.desired), of=graph))
    assert again.parsed is first.parsed


def test_existing_cliques_keep_their_order():
    graph = stored_graph(component("One"), component("Two", "decode"))
    (there,) = of_kind(graph_children(graph, GROVE), "PodCliqueSet")
    order = [each["name"] for each in there["spec"]["template"]["cliques"]]
    there["spec"]["template"]["cliques"].reverse()
    plan = desire(Plan(), observed(stored(there), of=graph, config=GROVE))
    assert plan.pod_clique_set is not None
    assert [each["name"] for each in plan.pod_clique_set["spec"]["template"]["cliques"]] == order[::-1]


def test_existing_cliques_keep_their_legacy_type():
    graph = stored_graph(component("Two", "decode"))
    (there,) = of_kind(graph_children(graph, GROVE), "PodCliqueSet")
    of_clique = there["spec"]["template"]["cliques"][0]["labels"]
    of_clique[labels.COMPONENT_TYPE] = "worker"
    assert written(graph, there, status=None)["spec"]["template"]["cliques"][0]["labels"] == of_clique


RUNS = {"currentGenerationHash": "a"}
SUFFIX = "DYN_NAMESPACE_WORKER_SUFFIX"


def worker(name: str = "One", **main: Any) -> KubeObject:
    return component(name, main={"image": "engine:1", "args": ["--model", "m"], **main})


def written(graph: KubeObject, there: KubeObject | None = None, status: KubeObject | None = RUNS) -> KubeObject:
    """The desired PodCliqueSet of a graph, given an existing set with this status."""
    present = [] if there is None else [stored(there, status=status or {})]
    desired = desire(Plan(), observed(*present, of=graph, config=GROVE)).pod_clique_set
    assert desired is not None
    return desired


def generations(clique_set: KubeObject) -> dict[str, tuple[str, str]]:
    """By clique: the generation hash that its pods register under, and the one of its label."""
    of_cliques: dict[str, tuple[str, str]] = {}
    for each in clique_set["spec"]["template"]["cliques"]:
        (main,) = (one for one in each["spec"]["podSpec"]["containers"] if one["name"] == "main")
        values = {variable["name"]: variable.get("value", "") for variable in main["env"]}
        of_cliques[each["name"]] = (values.get(SUFFIX, ""), each["labels"].get("nvidia.com/dynamo-worker-hash", ""))
    return of_cliques


BOTH = stored_graph(worker(), component("Two", "decode"), component("Front", "frontend"))
CHANGED = stored_graph(worker(image="engine:2"), component("Two", "decode"), component("Front", "frontend"))
NONE = ("", "")


def test_the_first_workers_on_grove_register_without_a_generation_suffix():
    assert set(generations(written(BOTH)).values()) == {NONE}


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(CHANGED, id="another image"),
        pytest.param(
            stored_graph(worker(args=None), component("Two", "decode"), component("Front", "frontend")), id="no flags"
        ),
        pytest.param(stored_graph(worker(), component("Front", "frontend")), id="one worker fewer"),
    ],
)
def test_changed_workers_on_grove_all_register_under_a_new_generation(changed):
    """Old and new pods run side by side while Grove replaces them: frontends reject new ones under the same name."""
    after = generations(written(changed, written(BOTH)))
    assert after.pop("front") == NONE
    suffixes = set(after.values())
    assert len(suffixes) == 1
    ((suffix, label),) = suffixes
    assert suffix == label != ""


def test_a_generation_keeps_its_hash_until_its_workers_change():
    changed = written(CHANGED, written(BOTH))
    assert written(CHANGED, changed) == changed
    front = stored_graph(
        worker(image="engine:2"), component("Two", "decode"), component("Front", "frontend", main={"image": "other"})
    )
    assert generations(written(front, changed)) == generations(changed)
    back = generations(written(BOTH, changed))
    assert back["one"] == back["two"]
    assert back["one"] not in (NONE, generations(changed)["one"])


AMOUNTS: dict[str, Any] = {
    "main": {
        "resources": {"limits": {"cpu": 0.5, "nvidia.com/gpu": 1}},
        "env": [{"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}],
    },
    "pod": {"hostNetwork": False, "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1.5Gi"}}]},
}


def test_an_upgrade_keeps_the_names_of_existing_workers():
    """An earlier version stored quantities as their author wrote them: they are of the same generation."""
    graph = stored_graph(component("One", **AMOUNTS))
    given = of_kind(children_as_given(parse_graph(graph), CONFIG), "DynamoComponentDeployment")
    (there,) = (stored(each) for each in given)
    (desired,) = of_kind(list(desire(Plan(), observed(there, of=graph)).desired), "DynamoComponentDeployment")
    assert desired["metadata"]["name"] == there["metadata"]["name"]
    assert desired["spec"] != there["spec"]


def test_quantities_on_grove_stay_as_they_were_first_written():
    """Grove would replace pods because of another notation."""
    graph = stored_graph(component("One", **AMOUNTS))
    (there,) = of_kind(children_as_given(parse_graph(graph), GROVE), "PodCliqueSet")

    def amounts(clique_set: KubeObject) -> tuple[KubeObject, KubeObject]:
        pod = clique_set["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
        (volume,) = (each["emptyDir"] for each in pod["volumes"] if each["name"] == "v")
        return pod["containers"][0]["resources"]["limits"], volume

    assert written(graph, there) == written(graph, written(graph, there)) != written(graph)
    assert amounts(written(graph, there)) == ({"cpu": 0.5, "nvidia.com/gpu": 1}, {"sizeLimit": "1.5Gi"})
    assert "divisor" not in json.dumps(written(graph, there))
    assert amounts(written(graph)) == ({"cpu": "500m", "nvidia.com/gpu": "1"}, {"sizeLimit": "1536Mi"})
    more = stored_graph(component("One", main={"resources": {"limits": {"cpu": "2000m"}}}, pod=AMOUNTS["pod"]))
    assert amounts(written(more, there)) == ({"cpu": "2"}, {"sizeLimit": "1.5Gi"})


def test_all_objects_on_grove_except_pods_belong_to_all_generations():
    changed = stored(written(CHANGED, written(BOTH)), status=RUNS)
    before, after = (
        [
            each
            for each in desire(Plan(), observed(*there, of=CHANGED, config=GROVE)).desired
            if each["kind"] != "PodCliqueSet"
        ]
        for there in ([], [changed])
    )
    assert {each["metadata"]["name"] for each in of_kind(after, "Service")} == {"graph-one", "graph-two", "graph-front"}
    assert after == before


def test_more_replicas_do_not_replace_workers():
    more = stored_graph(worker() | {"replicas": 5}, component("Two", "decode"), component("Front", "frontend"))
    assert set(generations(written(more, written(BOTH))).values()) == {NONE}


def test_a_set_that_grove_has_not_observed_has_no_old_generation():
    assert set(generations(written(CHANGED, written(BOTH), status=None)).values()) == {NONE}


IDENTITY = {"model": "m", "backendFramework": "vllm"}
JOB = f"checkpoint-job-{identity_hash(CheckpointIdentity.model_validate(IDENTITY))}-1"


def checkpoint(**status: Any) -> KnownCheckpoint:
    metadata = {"name": "c", "namespace": "ns", "uid": "c", "resourceVersion": "1"}
    return KnownCheckpoint.of({"metadata": metadata, "spec": {"identity": IDENTITY}, "status": status})


@pytest.mark.parametrize(
    ("catalogue", "status"),
    [
        (Catalogue(), {"checkpointName": "c", "ready": False}),
        (
            Catalogue({"c": checkpoint(phase="Creating")}),
            {"checkpointName": "c", "ready": False, "identityHash": "IDENTITY"},
        ),
        (
            Catalogue({"c": checkpoint(phase="Ready", jobName=JOB)}),
            {"checkpointName": "c", "ready": True, "identityHash": "IDENTITY"},
        ),
    ],
)
def test_components_start_from_their_ready_checkpoint(catalogue, status):
    graph = stored_graph(component("One", experimental={"checkpoint": {"checkpointRef": "c"}}))
    config = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True, claim="claim", base_path="/checkpoints"))
    result = desire(Plan(), observed(of=graph, config=config, checkpoints=catalogue)).starts.status["One"]
    if "identityHash" in result:
        result = {**result, "identityHash": "IDENTITY"}
    assert result == status
    nowhere = replace(config, checkpoints=CheckpointDefaults(enabled=True))
    assert not desire(Plan(), observed(of=graph, config=nowhere, checkpoints=catalogue)).starts.status["One"]["ready"]


@pytest.mark.parametrize(
    ("graph", "reason", "message"),
    [
        (stored_graph(), "NotDeployable", "spec.components: names no component; add at least one"),
        (stored_graph(component("One"), component("one")), "NotDeployable", "One"),
        (stored_graph(component("One", "nonsense")), "InvalidSpec", "spec.components[0].type"),
    ],
)
def test_a_graph_that_cannot_be_rendered_gives_a_plan_with_a_failure(graph, reason, message):
    plan = planned(observed(of=graph))
    assert plan.children is None, "nothing is written"
    assert plan.failure is not None
    assert plan.failure.reason == reason
    assert message in plan.failure.message


def test_a_set_on_grove_keeps_the_fields_of_its_topology_constraints():
    graph = stored_graph(
        component("One", topologyConstraint={"packDomain": "rack"}),
        topologyConstraint={"clusterTopologyName": "dc", "packDomain": "zone"},
    )
    present = desire(Plan(), observed(of=graph, config=GROVE)).pod_clique_set
    later = replace(GROVE, topology_fields=frozenset({"pack", "packDomain", "topologyName"}))
    new = desire(Plan(), observed(of=graph, config=later)).pod_clique_set
    assert present is not None
    assert new is not None
    assert new["spec"]["template"]["topologyConstraint"] == {"topologyName": "dc", "pack": {"required": "zone"}}
    kept = desire(Plan(), observed(stored(present), of=graph, config=later)).pod_clique_set
    assert kept is not None
    template = kept["spec"]["template"]
    assert template["topologyConstraint"] == {"topologyName": "dc", "packDomain": "zone"}
    assert template["cliques"][0]["topologyConstraint"] == {"packDomain": "rack"}
