"""Values that Kubernetes stores unchanged are written as the reference's Go types do: quantities and empty fields."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder.render.typed import typed
from dynamo_shared.api.objects import KubeObject

from tests.building.tables import rows

from .building import CONFIG, component, component_children, graph, graph_children, of_kind

GROVE = replace(CONFIG, grove=True)
NODES = replace(CONFIG, leader_worker_sets=True)


def component_deployment(of: KubeObject) -> KubeObject:
    (made,) = of_kind(graph_children(graph(of), NODES), "DynamoComponentDeployment")
    return made


def in_component(of: KubeObject) -> KubeObject:
    pod: KubeObject = component_deployment(of)["spec"]["podTemplate"]["spec"]
    return pod


def in_clique(of: KubeObject) -> KubeObject:
    (made,) = of_kind(graph_children(graph(of), GROVE), "PodCliqueSet")
    pod: KubeObject = made["spec"]["template"]["cliques"][0]["spec"]["podSpec"]
    return pod


def in_group(of: KubeObject) -> KubeObject:
    """A component deployment that a user wrote."""
    name, spec = of["name"], {key: value for key, value in of.items() if key != "name"}
    alone = {"kind": "DynamoComponentDeployment", "metadata": {"name": name.lower(), "namespace": "ns"}, "spec": spec}
    (made,) = of_kind(component_children({"apiVersion": "nvidia.com/v1beta1", **alone}, NODES), "LeaderWorkerSet")
    pod: KubeObject = made["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]
    return pod


LIMITS = {"nvidia.com/gpu": 1}
GPU = {"resources": {"limits": LIMITS}, "command": ["python3", "-m", "dynamo.vllm"], "args": ["--x"]}


def sample(main: KubeObject | None = None, **pod: Any) -> KubeObject:
    return component(multinode={"nodeCount": 2}, main={**GPU, **(main or {})}, pod=pod)


@rows(
    "main, expected",
    {
        "a number is text": ({}, {"resources": {"limits": {"nvidia.com/gpu": "1"}}}),
        "amounts have one form": (
            {"resources": {"requests": {"cpu": 0.5, "memory": "1024Gi"}, "limits": LIMITS}},
            {"resources": {"requests": {"cpu": "500m", "memory": "1Ti"}, "limits": {"nvidia.com/gpu": "1"}}},
        ),
        "no values": (
            {"tty": False, "workingDir": "", "volumeMounts": [{"name": "v", "mountPath": "/v", "readOnly": False}]},
            {"tty": None, "workingDir": None},
        ),
        "pointers": (
            {"securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False}},
            {"securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": False}},
        ),
        "empty lists": ({"envFrom": [], "volumeDevices": []}, {"envFrom": None, "volumeDevices": None}),
        "a hook": (
            {
                "lifecycle": {
                    "preStop": {"httpGet": {"path": "", "port": 1, "httpHeaders": [{"name": "X", "value": ""}]}}
                }
            },
            {"lifecycle": {"preStop": {"httpGet": {"port": 1, "httpHeaders": [{"name": "X", "value": ""}]}}}},
        ),
    },
)
@pytest.mark.parametrize("place", [in_component, in_clique, in_group])
def test_containers(place, main, expected):
    made = place(sample(main))["containers"][0]
    assert {key: made.get(key) for key in expected} == expected
    assert all("readOnly" not in mount for mount in made.get("volumeMounts", ()))


@rows(
    "pod, expected",
    {
        "values": ({"hostNetwork": False, "schedulerName": "", "nodeSelector": {}}, {}),
        "pointers": (
            {"automountServiceAccountToken": False, "securityContext": {"runAsNonRoot": False, "runAsUser": 0}},
            {"automountServiceAccountToken": False, "securityContext": {"runAsNonRoot": False, "runAsUser": 0}},
        ),
        "a map of the author's": ({"nodeSelector": {"role": ""}}, {"nodeSelector": {"role": ""}}),
        "a toleration of all": (
            {"tolerations": [{"key": "", "operator": "Exists", "tolerationSeconds": 0}]},
            {"tolerations": [{"operator": "Exists", "tolerationSeconds": 0}]},
        ),
    },
)
@pytest.mark.parametrize("place", [in_component, in_clique, in_group])
def test_pods(place, pod, expected):
    made = place(sample(**pod))
    assert {key: made[key] for key in pod if key in made} == expected


@rows(
    "source, expected",
    {
        "memory": ({"emptyDir": {"medium": "", "sizeLimit": "2048Mi"}}, {"emptyDir": {"sizeLimit": "2Gi"}}),
        "anything": ({"emptyDir": {}}, {"emptyDir": {}}),
        "a claim": (
            {"persistentVolumeClaim": {"claimName": "c", "readOnly": False}},
            {"persistentVolumeClaim": {"claimName": "c"}},
        ),
        "a driver": ({"csi": {"driver": "d", "readOnly": False}}, {"csi": {"driver": "d", "readOnly": False}}),
        "a secret": (
            {"secret": {"secretName": "s", "optional": False, "defaultMode": 0}},
            {"secret": {"secretName": "s", "optional": False, "defaultMode": 0}},
        ),
    },
)
@pytest.mark.parametrize("place", [in_component, in_clique, in_group])
def test_volumes(place, source, expected):
    made = place(sample(volumes=[{"name": "v", **source}]))
    assert [each for each in made["volumes"] if each["name"] == "v"] == [{"name": "v", **expected}]


def test_a_component_has_no_empty_structs_but_keeps_its_own_fields():
    one = component(main={"resources": {"limits": {}}}, sharedMemorySize="16384Mi", globalDynamoNamespace=False)
    spec = component_deployment({**one, "scalingAdapter": {}, "replicas": 0})["spec"]
    assert "resources" not in spec["podTemplate"]["spec"]["containers"][0]
    assert (spec["sharedMemorySize"], spec["scalingAdapter"], spec["replicas"]) == ("16Gi", {}, 0)
    assert "globalDynamoNamespace" not in spec
    assert in_clique(one)["containers"][0]["resources"] == {}
    (memory,) = (each for each in in_clique(one)["volumes"] if each["name"] == "shared-memory")
    assert memory["emptyDir"]["sizeLimit"] == "16Gi"


@pytest.mark.parametrize("place", [in_component, in_clique, in_group])
def test_a_variable_with_a_resource_quantity_has_a_divisor(place: Any) -> None:
    env = [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]
    (made,) = (each for each in place(sample({"env": env}))["containers"][0]["env"] if each["name"] == "A")
    assert made["valueFrom"]["resourceFieldRef"] == {"resource": "limits.cpu", "divisor": "0"}


def test_requests_of_devices_stay_unchanged() -> None:
    spec = {"devices": {"requests": [{"name": "1000"}]}}
    assert typed({"kind": "PodCliqueSet", "spec": spec})["spec"] == spec


def test_templates_of_roles_are_written_in_the_same_way():
    own = {"spec": {"hostNetwork": False, "containers": [{"name": "main", "image": "i", **GPU}]}}
    spec = component_deployment({**sample(), "roles": [{"name": "leader"}, {"name": "worker", "podTemplate": own}]})
    (pod,) = (each["podTemplate"]["spec"] for each in spec["spec"]["roles"] if "podTemplate" in each)
    assert "hostNetwork" not in pod
    assert pod["containers"][0]["resources"] == {"limits": {"nvidia.com/gpu": "1"}}
