"""The field of one version for a field of the other, and what is preserved if there is none."""

import json
from typing import Any

import pytest
import yaml
from dynamo_shared.api.conversion import NotConvertible, convert
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS

from tests.building.tables import table_of

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
Object = dict[str, Any]


def graph(**services: Object) -> Object:
    type_meta = {"apiVersion": ALPHA, "kind": "DynamoGraphDeployment"}
    return {**type_meta, "metadata": {"name": "g"}, "spec": {"services": services}}


def graph_of(*components: Object) -> Object:
    return {**graph(), "apiVersion": BETA, "spec": {"components": list(components)}}


def kept(obj: Object) -> Object:
    document: Object = json.loads(obj["metadata"].get("annotations", {}).get(PRESERVED_FIELDS, "{}"))
    return document


def test_fields_of_a_graph_in_both_versions() -> None:
    policy = {"labelKey": "zone", "domain": "zone", "enforcement": "preferred", "preferredWeight": 0.5}
    both: Object = {"priorityClassName": "high", "experimental": {"kvTransferPolicy": policy}}
    obj = {**graph(), "spec": {**both, "services": {}}}
    made = convert(obj, BETA)
    assert made["spec"] == {**both, "components": []}
    assert kept(made) == {}
    assert convert(made, ALPHA) == obj


def component_of(**service: Any) -> tuple[Object, list[Any]]:
    """The component for a service, and its preserved fields."""
    made = convert(graph(Worker=service), BETA)
    (component,) = made["spec"]["components"]
    assert component.pop("name") == "Worker"
    return component, kept(made).get("components", {}).get("Worker", [])


def main(**fields: Any) -> Object:
    return {"podTemplate": {"spec": {"containers": [{"name": "main", **fields}]}}}


#: Equivalent texts of both versions as YAML; `main` has the fields of the main container.
SAID_BY_BOTH = table_of("""
type | componentType: planner | type: planner
sub-type | {componentType: worker, subComponentType: decode} | type: decode
replicas | replicas: 0 | replicas: 0
replicas that start together | {replicas: 3, minAvailable: 2} | {replicas: 3, minAvailable: 2}
roles |
    {multinode: {nodeCount: 3}, roles: [{name: worker, replicas: 2}, {name: leader}]} |
    {multinode: {nodeCount: 3}, roles: [{name: worker, replicas: 2}, {name: leader}]}
constraint in the words of Grove |
    providerOverride: {apiVersion: grove.io/v1alpha1, value: {topologyConstraint: {later: null}}} |
    providerOverride: {apiVersion: grove.io/v1alpha1, value: {topologyConstraint: {later: null}}}
version of the runtime | runtimeVersionOverride: 1.5.0 | runtimeVersionOverride: 1.5.0
nodes | multinode: {nodeCount: 4} | multinode: {nodeCount: 4}
model | modelRef: {name: m, revision: r} | modelRef: {name: m, revision: r}
shared namespace | globalDynamoNamespace: true | globalDynamoNamespace: true
pack domain | topologyConstraint: {packDomain: rack} | topologyConstraint: {packDomain: rack}
memory | sharedMemory: {size: 8Gi} | sharedMemorySize: 8Gi
no memory | sharedMemory: {disabled: true} | sharedMemorySize: '0'
adapter | scalingAdapter: {enabled: true} | scalingAdapter: {}
compilation cache |
    volumeMounts: [{name: c, mountPoint: /c, useAsCompilationCache: true}] |
    compilationCache: {pvcName: c, mountPath: /c}
mounts |
    volumeMounts: [{name: m, mountPoint: /m, useAsCompilationCache: false}] |
    main: {volumeMounts: [{name: m, mountPath: /m}]}
resources |
    resources: {limits: {cpu: '1', memory: 1Gi, gpu: '2', custom: {rdma/ib: '1'}}, requests: {gpu: '2'}, claims: [{name: c}]} |
    main: {resources: {limits: {cpu: '1', memory: 1Gi, nvidia.com/gpu: '2', rdma/ib: '1'},
      requests: {nvidia.com/gpu: '2'}, claims: [{name: c}]}}
variables | envs: [{name: A, value: '1'}] | main: {env: [{name: A, value: '1'}]}
secret | envFromSecret: s | main: {envFrom: [{secretRef: {name: s}}]}
liveness | livenessProbe: {periodSeconds: 3} | main: {livenessProbe: {periodSeconds: 3}}
readiness | readinessProbe: {periodSeconds: 3} | main: {readinessProbe: {periodSeconds: 3}}
main container |
    extraPodSpec: {mainContainer: {image: i, startupProbe: {}, args: []}} |
    main: {image: i, startupProbe: {}, args: []}
pod |
    extraPodSpec: {tolerations: [{key: k}], containers: [{name: log}]} |
    podTemplate: {spec: {tolerations: [{key: k}], containers: [{name: log}]}}
pod metadata |
    extraPodMetadata: {labels: {a: b}, annotations: {c: d}} |
    podTemplate: {metadata: {labels: {a: b}, annotations: {c: d}}}
front end next to the engine |
    frontendSidecar: {image: i, args: [x], envs: [{name: A}], envFromSecret: s} |
    {frontendSidecar: sidecar-frontend, podTemplate: {spec: {containers: [{name: sidecar-frontend, image: i,
      args: [x], env: [{name: A}], envFrom: [{secretRef: {name: s}}]}]}}}
memory service |
    gpuMemoryService: {enabled: true, mode: interPod, deviceClassName: d} |
    experimental: {gpuMemoryService: {mode: InterPod, deviceClassName: d}}
clients of the memory service |
    gpuMemoryService: {enabled: true, mode: intraPod, deviceClassName: d, extraClientContainers: [a]} |
    experimental: {gpuMemoryService: {mode: IntraPod, deviceClassName: d, extraClientContainers: [a]}}
failover | failover: {enabled: true, mode: intraPod, numShadows: 1} | experimental: {failover: {mode: IntraPod, numShadows: 1}}
policies of a checkpoint |
    checkpoint: {enabled: true, mode: Auto, checkpointRef: c, startupPolicy: Immediate} |
    experimental: {checkpoint: {mode: Auto, checkpointRef: c, startupPolicy: Immediate}}
a checkpoint that is taken of the component itself |
    checkpoint: {enabled: true, mode: Auto, job: {podTemplate: {spec: {hostNetwork: true}}}} |
    experimental: {checkpoint: {enabled: true, mode: Auto, job: {podTemplate: {spec: {hostNetwork: true}}}}}
checkpoint |
    checkpoint: {enabled: true, mode: Manual, checkpointRef: c} |
    experimental: {checkpoint: {mode: Manual, checkpointRef: c}}
picker |
    {componentType: epp, eppConfig: {configMapRef: {key: k, name: n}}} |
    {type: epp, eppConfig: {configMapRef: {key: k, name: n}}}
""")


@pytest.mark.parametrize(("alpha", "beta"), SAID_BY_BOTH.values(), ids=SAID_BY_BOTH)
def test_fields_of_both_versions_need_no_annotation(alpha: str, beta: str) -> None:
    service, component = yaml.safe_load(alpha), yaml.safe_load(beta)
    component |= main(**component.pop("main")) if "main" in component else {}
    made, residue = component_of(**service)
    assert made == component
    assert residue == []
    assert convert(graph_of({"name": "Worker", **component}), ALPHA) == graph(Worker=service)


ONLY_ALPHA: list[Object] = [
    {"dynamoNamespace": "n"},
    {"autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 3}},
    {"ingress": {"enabled": True, "host": "h"}},
    {"annotations": {"a": "b"}},
    {"labels": {"a": "b"}},
    {"serviceName": "s"},
    {"componentType": "default"},
    {"subComponentType": "decode"},
    {"scalingAdapter": {"enabled": False}},
    {"gpuMemoryService": {"enabled": False}},
    {"failover": {"enabled": False}},
    {"checkpoint": {"enabled": False}},
    {"extraPodMetadata": {"labels": {}}},
    {"extraPodSpec": {"mainContainer": {}}},
    {"resources": {"limits": {"cpu": "much"}}},
    {"sharedMemory": {"size": "0"}},
    {"volumeMounts": [{"name": "m"}]},
    {"eppConfig": {"config": {"plugins": [], "schedulingProfiles": []}}},
]


@pytest.mark.parametrize("service", ONLY_ALPHA, ids=lambda service: next(iter(service)))
def test_fields_missing_in_v1beta1_are_preserved(service: Object) -> None:
    made, residue = component_of(**service)
    assert made == {}
    assert residue
    obj = graph(Worker=service)
    assert convert(convert(obj, BETA), ALPHA) == obj


def test_the_main_container_overrides_the_fields_of_the_service() -> None:
    """As in the reference: variables are merged by name, mounts by path, resources by name, other lists replaced."""
    made, _ = component_of(
        envs=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
        envFromSecret="s",
        resources={"limits": {"gpu": "1", "memory": "1Gi"}},
        livenessProbe={"httpGet": {"path": "/a", "port": 1}, "periodSeconds": 3},
        readinessProbe={"httpGet": {"path": "/a", "port": 1}, "periodSeconds": 3},
        volumeMounts=[{"name": "m", "mountPoint": "/m"}, {"name": "old", "mountPoint": "/n"}],
        extraPodSpec={
            "mainContainer": {
                "name": "other",
                "env": [{"name": "B", "value": "2"}, {"name": "C"}],
                "envFrom": [{"configMapRef": {"name": "c"}}],
                "resources": {"limits": {"nvidia.com/gpu": 2}, "claims": [{"name": "x"}]},
                "livenessProbe": {"httpGet": {"path": "/b"}},
                "readinessProbe": {"exec": {"command": ["true"]}},
                "volumeMounts": [{"name": "n", "mountPath": "/n", "readOnly": True}],
            }
        },
    )
    assert made == main(
        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C"}],
        envFrom=[{"configMapRef": {"name": "c"}}],
        resources={"limits": {"nvidia.com/gpu": "2", "memory": "1Gi"}, "claims": [{"name": "x"}]},
        livenessProbe={"httpGet": {"path": "/b", "port": 1}, "periodSeconds": 3},
        readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 3},
        volumeMounts=[{"name": "n", "mountPath": "/n", "readOnly": True}, {"name": "m", "mountPath": "/m"}],
    )


def test_defaults_are_written_as_the_server_writes_them() -> None:
    made, _ = component_of(
        gpuMemoryService={"enabled": True},
        failover={"enabled": True},
        checkpoint={"enabled": True, "checkpointRef": "c"},
    )
    assert made["experimental"] == {
        "gpuMemoryService": {"mode": "IntraPod", "deviceClassName": "gpu.nvidia.com"},
        "failover": {"mode": "IntraPod", "numShadows": 1},
        "checkpoint": {"mode": "Auto", "checkpointRef": "c"},
    }


def test_gpus_of_another_kind() -> None:
    made, residue = component_of(resources={"limits": {"gpu": "1", "gpuType": "amd.com/gpu"}})
    assert made == main(resources={"limits": {"amd.com/gpu": "1"}})
    assert residue


def test_components_are_sorted_unless_an_order_is_preserved() -> None:
    obj = graph(b={}, A={}, a={})
    made = convert(obj, BETA)
    assert [each["name"] for each in made["spec"]["components"]] == ["A", "a", "b"]
    assert PRESERVED_FIELDS not in made["metadata"].get("annotations", {})
    made["spec"]["components"].reverse()
    back = convert(made, ALPHA)
    assert kept(back)["order"] == ["b", "a", "A"]
    back["spec"]["services"] = {name: each for name, each in back["spec"]["services"].items() if name != "a"} | {
        "c": {}
    }
    assert [each["name"] for each in convert(back, BETA)["spec"]["components"]] == ["b", "A", "c"]


def test_added_and_removed_components_leave_preserved_fields_of_the_others() -> None:
    obj = graph(a={"dynamoNamespace": "x"}, b={"ingress": {"enabled": True}}, c={"labels": {"l": "v"}})
    made = convert(obj, BETA)
    made["spec"]["components"] = [{"name": "new", "replicas": 2}, *made["spec"]["components"][1:]]
    services = convert(made, ALPHA)["spec"]["services"]
    assert services == {"new": {"replicas": 2}, "b": {"ingress": {"enabled": True}}, "c": {"labels": {"l": "v"}}}


def test_live_fields_win() -> None:
    obj = graph(
        a={
            "componentType": "default",
            "ingress": {"enabled": True},
            "scalingAdapter": {"enabled": False},
            "extraPodSpec": {"mainContainer": {"env": [{"name": "A", "value": "old"}], "image": "i"}},
        }
    )
    made = convert(obj, BETA)
    (component,) = made["spec"]["components"]
    component |= {"type": "worker", "scalingAdapter": {}}
    component["podTemplate"]["spec"]["containers"][0]["env"] = [{"name": "A", "value": "new"}]
    service = convert(made, ALPHA)["spec"]["services"]["a"]
    assert service == {
        "componentType": "worker",
        "ingress": {"enabled": True},
        "scalingAdapter": {"enabled": True},
        "envs": [{"name": "A", "value": "new"}],
        "extraPodSpec": {"mainContainer": {"image": "i"}},
    }


@pytest.mark.parametrize("main_container", [{"image": "i"}, {}], ids=["with more", "alone"])
def test_an_added_variable_joins_the_others_in_one_place(main_container: Object) -> None:
    written = {"extraPodSpec": {"mainContainer": {**main_container, "env": [{"name": "A", "value": "1"}]}}}
    made = convert(graph(a={**written, "ingress": {"enabled": True}}), BETA)
    containers = made["spec"]["components"][0]["podTemplate"]["spec"]["containers"]
    containers[0]["env"] = [*containers[0]["env"], {"name": "B", "value": "2"}]
    service = convert(made, ALPHA)["spec"]["services"]["a"]
    assert service.pop("ingress") == {"enabled": True}
    assert service.pop("envs") == [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]
    assert service == ({"extraPodSpec": {"mainContainer": main_container}} if main_container else {})


def test_unchanged_fields_stay_in_their_place() -> None:
    envs = [{"name": "A", "value": "1"}]
    extra_pod_spec = {"mainContainer": {"env": [{"name": "B"}], "resources": {"claims": [{"name": "c"}]}}}
    written = {"envs": envs, "resources": {"limits": {"gpu": "1"}}, "extraPodSpec": extra_pod_spec}
    made = convert(graph(a=written), BETA)
    made["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]["env"].append({"name": "C"})
    service = convert(made, ALPHA)["spec"]["services"]["a"]
    assert service == {
        "envs": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "C"}],
        "resources": {"limits": {"gpu": "1"}},
        "extraPodSpec": {"mainContainer": {"resources": {"claims": [{"name": "c"}]}}},
    }


def test_a_frontend_that_v1alpha1_cannot_express_stays_one() -> None:
    pod_template = {"spec": {"containers": [{"name": "mine", "image": "i", "ports": []}, {"name": "main"}]}}
    component = {"name": "w", "frontendSidecar": "mine", "podTemplate": pod_template}
    obj = graph_of(component)
    back = convert(obj, ALPHA)
    assert back["spec"]["services"]["w"]["extraPodSpec"]["containers"] == [{"name": "mine", "image": "i", "ports": []}]
    assert convert(back, BETA) == obj
    back["spec"]["services"]["w"] = {"replicas": 1}
    assert convert(back, BETA)["spec"]["components"] == [{"name": "w", "replicas": 1}], (
        "no name of a container that is gone"
    )


@pytest.mark.parametrize("containers", [[{"name": "main", "env": [{"name": "A"}]}], [], None])
def test_a_frontend_may_have_any_container_name(containers: list[Object] | None) -> None:
    """Even that of the main container, or none."""
    component: Object = {"name": "w", "frontendSidecar": "main"}
    if containers is not None:
        component["podTemplate"] = {"spec": {"containers": containers}}
    obj = graph_of(component)
    back = convert(obj, ALPHA)
    assert convert(back, BETA) == obj
    assert "x-frontend-sidecar" not in json.dumps(back["spec"])
    back["spec"]["services"]["w"]["envs"] = [{"name": "B"}]
    there = convert(back, BETA)
    assert convert(there, ALPHA)["spec"] == back["spec"]
    assert convert(convert(there, ALPHA), BETA) == there


def test_graph_and_status() -> None:
    obj = graph()
    obj["spec"] |= {
        "envs": [{"name": "A"}],
        "topologyConstraint": {"topologyProfile": "t", "packDomain": "rack"},
        "pvcs": [{"name": "p", "create": False}],
        "backendFramework": "vllm",
    }
    counts = {
        "componentKind": "Deployment",
        "replicas": 1,
        "updatedReplicas": 1,
        "gpusPerEngine": 4,
        "gpusPerReplica": 5,
    }
    obj["status"] = {
        "state": "successful",
        "services": {
            "a": {**counts, "componentName": "x", "componentNames": ["x", "y"]},
            "b": {**counts, "componentName": "z"},
        },
        "rollingUpdate": {"phase": "Completed", "updatedServices": ["a"]},
    }
    made = convert(obj, BETA)
    assert made["spec"] == {
        "components": [],
        "env": [{"name": "A"}],
        "topologyConstraint": {"clusterTopologyName": "t", "packDomain": "rack"},
        "backendFramework": "vllm",
    }
    assert made["status"] == {
        "state": "successful",
        "components": {"a": {**counts, "componentNames": ["x", "y"]}, "b": {**counts, "componentNames": ["z"]}},
        "rollingUpdate": {"phase": "Completed", "updatedComponents": ["a"]},
    }
    assert [piece[0] for piece in kept(made)["fields"]] == [
        ["spec", "pvcs"],
        ["status", "services", "b", "componentNames"],
    ]
    assert convert(made, ALPHA) == obj


@pytest.mark.parametrize(("service_name", "name"), [("Worker", "Worker"), ("", "dcd"), (None, "dcd")])
def test_a_standalone_component_has_a_name(service_name: str | None, name: str) -> None:
    spec: Object = {"backendFramework": "sglang", "replicas": 2}
    if service_name is not None:
        spec["serviceName"] = service_name
    status = {"conditions": [], "podSelector": {"a": "b"}, "service": {"componentName": "d", "componentNames": ["d"]}}
    obj = {
        "apiVersion": ALPHA,
        "kind": "DynamoComponentDeployment",
        "metadata": {"name": "dcd"},
        "spec": spec,
        "status": status,
    }
    made = convert(obj, BETA)
    assert made["spec"] == {"name": name, "backendFramework": "sglang", "replicas": 2}
    assert made["status"] == {"conditions": [], "component": {"componentNames": ["d"]}}
    assert convert(made, ALPHA) == obj


def test_a_standalone_component_without_a_service_name_has_none() -> None:
    obj = {"apiVersion": ALPHA, "kind": "DynamoComponentDeployment", "metadata": {}, "spec": {"replicas": 2}}
    assert convert(obj, BETA)["spec"] == {"replicas": 2}


def test_an_adapter_needs_no_annotation() -> None:
    obj = {
        "apiVersion": ALPHA,
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "metadata": {"name": "a"},
        "spec": {"replicas": 2, "dgdRef": {"name": "g", "serviceName": "Decode"}},
        "status": {"replicas": 2, "selector": "a=b", "lastScaleTime": "2026-05-01T10:00:00Z"},
    }
    made = convert(obj, BETA)
    assert made["spec"]["dgdRef"] == {"name": "g", "componentName": "Decode"}
    assert made["status"] == obj["status"]
    assert "annotations" not in made["metadata"]
    assert convert(made, ALPHA) == obj


@pytest.mark.parametrize(
    ("obj", "to"),
    [
        ({"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoNimRequest"}, BETA),
        ({"apiVersion": ALPHA, "kind": "DynamoGraphDeployment"}, "nvidia.com/v1"),
        ({"apiVersion": "apps/v1beta1", "kind": "DynamoGraphDeployment"}, BETA),
        ({"apiVersion": ALPHA, "kind": ["?"]}, BETA),
        ({}, BETA),
    ],
)
def test_a_missing_conversion_is_an_error(obj: Object, to: str) -> None:
    with pytest.raises(NotConvertible, match=f"has no conversion from .* to {to}"):
        convert(obj, to)


def test_conversion_to_the_same_version_returns_the_same_object() -> None:
    obj = graph()
    assert convert(obj, ALPHA) is obj
    request = {"apiVersion": ALPHA, "kind": "DynamoNimRequest"}
    assert convert(request, ALPHA) is request


def test_an_amount_in_custom_overrides_the_field_of_the_same_resource() -> None:
    """As in the reference."""
    custom = {"nvidia.com/gpu": "2", "cpu": "3"}
    component, _ = component_of(resources={"limits": {"gpu": "8", "cpu": "1", "memory": "1Gi", "custom": custom}})
    assert component == main(resources={"limits": {"nvidia.com/gpu": "2", "cpu": "3", "memory": "1Gi"}})
