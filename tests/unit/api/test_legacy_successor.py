"""The kinds from before graphs as graphs: every field that graphs have is copied."""

from typing import Any

import pytest
from dynamo_shared.api import legacy
from dynamo_shared.api.manifest import load_manifest, schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_DEPLOYMENTS

from tests.building.objects import object_of

SPEC: KubeObject = {
    "dynamoNamespace": "dynamo",
    "dynamoNim": "frontend--v1",
    "dynamoTag": "graphs.disagg:Worker",
    "serviceName": "Worker",
}


def service(name: str = "worker-1", **spec: Any) -> legacy.DynamoNimDeployment:
    loaded = load_manifest(object_of(DYNAMO_NIM_DEPLOYMENTS, name, spec={**SPEC, **spec}))
    assert isinstance(loaded, legacy.DynamoNimDeployment)
    return loaded


def graph_of(**spec: Any) -> KubeObject:
    graph = legacy.graph_of_services([service(**spec)]).graph
    assert schema_errors(graph) == []
    return graph


def component(**spec: Any) -> KubeObject:
    (result,) = graph_of(**spec)["spec"]["services"].values()
    assert isinstance(result, dict)
    return result


PROBE = {"httpGet": {"path": "/healthz", "port": 3000}}
AUTOSCALING = {"enabled": True, "minReplicas": 1, "maxReplicas": 4}


PODS = {"labels": {"l": "1"}, "annotations": {"a": "1"}}
EXPOSED = {"ingress": {"enabled": True, "host": "h"}}


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ({"replicas": 0}, {"replicas": 0}),
        ({"envs": [{"name": "A", "value": "b"}]}, {"envs": [{"name": "A", "value": "b"}]}),
        ({"envFromSecret": "keys"}, {"envFromSecret": "keys"}),
        ({"resources": {"limits": {"gpu": "1"}}}, {"resources": {"limits": {"gpu": "1"}}}),
        ({"livenessProbe": PROBE, "readinessProbe": PROBE}, {"livenessProbe": PROBE, "readinessProbe": PROBE}),
        (PODS, {"extraPodMetadata": PODS}),
        ({**PODS, "extraPodMetadata": {"labels": {"l": "2"}}}, {"extraPodMetadata": {**PODS, "labels": {"l": "2"}}}),
        (EXPOSED, {**EXPOSED, "componentType": "frontend"}),
        ({"autoscaling": AUTOSCALING}, {"autoscaling": AUTOSCALING, "scalingAdapter": {"enabled": True}}),
        ({"pvc": {"name": "m", "mountPoint": "/m"}}, {"volumeMounts": [{"name": "m", "mountPoint": "/m"}]}),
    ],
    ids="-".join,
)
def test_a_field_is_copied_to_its_place(written: KubeObject, becomes: KubeObject) -> None:
    assert component(**written).items() >= becomes.items()


def test_a_disabled_autoscaler_is_ignored() -> None:
    assert not {"autoscaling", "scalingAdapter"} & component(autoscaling={"enabled": False}).keys()


def test_a_requested_claim_is_created_by_the_graph() -> None:
    claim = {"create": True, "size": "1Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteOnce"}
    graph = graph_of(pvc={**claim, "mountPoint": "/m"})
    assert graph["spec"]["pvcs"] == [{"name": "worker", **claim}]
    assert graph["spec"]["services"]["Worker"]["volumeMounts"] == [{"name": "worker", "mountPoint": "/m"}]
    assert "pvcs" not in graph_of(pvc={"name": "models", "mountPoint": "/m"})["spec"]


@pytest.mark.parametrize(
    ("spec", "args"),
    [
        ({}, "cd src && uv run dynamo serve --service-name Worker graphs.disagg:Worker"),
        (
            {"envs": [{"name": "DYNAMO_CONFIG_PATH", "value": "my config.yaml"}]},
            "cd src && uv run dynamo serve --service-name Worker graphs.disagg:Worker -f 'my config.yaml'",
        ),
        ({"dynamoTag": "a:b; rm -rf /"}, "cd src && uv run dynamo serve --service-name Worker 'a:b; rm -rf /'"),
    ],
    ids=["tag", "configuration", "not a tag"],
)
def test_the_service_of_the_artifact_starts_as_the_former_operator_started_it(spec: KubeObject, args: str) -> None:
    main = component(**spec)["extraPodSpec"]["mainContainer"]
    assert main == {"command": ["sh", "-c"], "args": [args]}


@pytest.mark.parametrize("own", [{"command": ["run"]}, {"args": ["--fast"]}], ids=["command", "args"])
def test_a_command_of_the_user_is_kept_alone(own: KubeObject) -> None:
    pod = {"nodeSelector": {"gpu": "h100"}, "mainContainer": {"image": "i", **own}}
    assert component(extraPodSpec=pod)["extraPodSpec"] == pod


def test_tasks_left_to_the_author_are_reported() -> None:
    needs = {"Decode": {"deploymentSelectorKey": "dynamo", "deploymentSelectorValue": "Decode/dynamo"}}
    assert legacy.graph_of_services([service(externalServices=needs)]).remarks == (
        "component Worker has no image: write the image that was built from frontend--v1",
        "component Worker: externalServices is left out, because components of a graph discover each other",
    )
    assert legacy.graph_of_services([service(extraPodSpec={"mainContainer": {"image": "i"}})]).remarks == ()


def test_a_shared_dynamo_namespace_stays() -> None:
    assert component(dynamoNamespace="dynamo")["globalDynamoNamespace"] is True
    (_, said) = legacy.graph_of_services([service(dynamoNamespace="team")]).remarks
    assert said == (
        "component Worker: dynamoNamespace team is left out, because the name of a graph determines its Dynamo namespace"
    )
    assert "globalDynamoNamespace" not in component(dynamoNamespace="team")


def test_services_of_one_artifact_are_one_graph() -> None:
    graph = legacy.graph_of_services([service(), service("frontend-1", serviceName="Frontend")]).graph
    assert graph["metadata"] == {"name": "frontend--v1", "namespace": "ns"}
    assert list(graph["spec"]["services"]) == ["Worker", "Frontend"]
    assert graph_of()["metadata"] == {"name": "worker-1", "namespace": "ns"}


def test_services_get_the_variables_of_their_deployment_and_their_own_win() -> None:
    deployment = load_manifest(
        {
            "apiVersion": "nvidia.com/v1alpha1",
            "kind": "DynamoDeployment",
            "metadata": {"name": "disagg", "labels": {"team": "a"}},
            "spec": {
                "dynamoNim": "frontend:v1",
                "envs": [{"name": "A", "value": "all"}, {"name": "B", "value": "all"}],
                "services": {"Frontend": {"replicas": 0}, "Worker": {"envs": [{"name": "B", "value": "own"}]}},
            },
        }
    )
    assert isinstance(deployment, legacy.DynamoDeployment)
    graph, remarks = legacy.graph_of_deployment(deployment)
    assert schema_errors(graph) == []
    assert graph["metadata"] == {"name": "disagg", "labels": {"team": "a"}}
    frontend, worker = graph["spec"]["services"].values()
    assert (frontend["componentType"], frontend["replicas"]) == ("frontend", 0)
    assert worker["envs"] == [{"name": "A", "value": "all"}, {"name": "B", "value": "own"}]
    assert remarks[:2] == (
        "component Frontend has no image: write the image that was built from frontend:v1",
        "component Frontend has no command: write the command with which frontend:v1 starts it, unless the image has it",
    )
