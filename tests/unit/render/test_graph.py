"""The objects of a graph other than pods: component deployments, access, labels, rejections."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_pod_builder.co_owners import is_co_owned
from dynamo_pod_builder.rights import RIGHTS
from dynamo_shared.api.objects import KubeObject

from tests.rights.compare import allows

from .building import (
    CONFIG,
    component,
    component_children,
    component_deployments,
    deployment,
    graph,
    graph_children,
    of_kind,
    workloads,
)

FRONTEND, PLANNER = component("Frontend", "frontend"), component("Planner", "planner")
VLLM = {"command": ["python3", "-m", "dynamo.vllm"]}
SGLANG = {"command": ["python3", "-m", "dynamo.sglang"]}


def names_of(children: list[KubeObject]) -> list[str]:
    return [f"{child['kind']}/{child['metadata']['name']}" for child in children]


def test_children_of_a_graph() -> None:
    assert names_of(graph_children(graph(FRONTEND))) == [
        "ServiceAccount/graph-k8s-service-discovery",
        "Role/graph-k8s-service-discovery-role",
        "RoleBinding/graph-k8s-service-discovery-binding",
        "ServiceAccount/planner-serviceaccount",
        "RoleBinding/planner-serviceaccount-binding",
        "DynamoComponentDeployment/graph-frontend",
    ]


def test_owner_references() -> None:
    children = graph_children(graph(FRONTEND))
    owner = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "name": "graph",
        "uid": "graph-uid",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    for child in children:
        shared = "planner" in child["metadata"]["name"]
        assert child["metadata"].get("ownerReferences") == (None if shared else [owner])
        assert child["metadata"]["namespace"] == "ns"
    for child in component_children(children[-1]):
        (reference,) = child["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["uid"]) == ("DynamoComponentDeployment", "uid-of-graph-frontend")


@pytest.mark.parametrize(
    ("config", "parts", "accounts"),
    [
        (CONFIG, [FRONTEND], {"graph-k8s-service-discovery", "planner-serviceaccount"}),
        (render.RenderConfig(), [FRONTEND], {"graph-k8s-service-discovery"}),
        (
            render.RenderConfig(restricted_namespace="ns"),
            [FRONTEND, PLANNER],
            {"graph-k8s-service-discovery", "planner-serviceaccount"},
        ),
        (
            render.RenderConfig(discovery_backend="etcd", planner_cluster_role="r"),
            [PLANNER],
            {"planner-serviceaccount"},
        ),
        (render.RenderConfig(discovery_backend="etcd"), [FRONTEND], set()),
    ],
)
def test_service_accounts(config: render.RenderConfig, parts: list[KubeObject], accounts: set[str]) -> None:
    result = of_kind(graph_children(graph(*parts), config), "ServiceAccount")
    assert {account["metadata"]["name"] for account in result} == accounts


def test_discovery_backend_of_the_graph_wins() -> None:
    children = workloads(graph(component(), FRONTEND, annotations={"nvidia.com/dynamo-discovery-backend": "etcd"}))
    assert [child["kind"] for child in children["Worker"]] == ["Deployment"]
    assert [child["kind"] for child in children["Frontend"]] == ["Deployment", "Service"]
    labels = children["Frontend"][0]["spec"]["template"]["metadata"]["labels"]
    assert "nvidia.com/dynamo-discovery-enabled" not in labels


@pytest.mark.parametrize("type_", [None, "frontend", "decode"])
@pytest.mark.parametrize("grove", [False, True])
def test_services_select_the_pods_of_their_component(type_: str | None, grove: bool) -> None:
    obj, config = graph(component("Part", type_)), replace(CONFIG, grove=grove)
    children = graph_children(obj, config) if grove else workloads(obj, config)["Part"]
    (service,) = of_kind(children, "Service")
    if grove:
        (pods,) = of_kind(children, "PodCliqueSet")[0]["spec"]["template"]["cliques"]
    else:
        pods = of_kind(children, "Deployment")[0]["spec"]["template"]["metadata"]
    assert service["spec"]["selector"].items() <= pods["labels"].items()


def test_a_component_deployment_has_the_labels_of_its_template_and_not_those_of_its_graph() -> None:
    """As the reference: all that it makes has both."""
    own = component("Worker", labels={"own": "a", "both": "own"})
    (dcd,) = component_deployments(graph(own, labels={"cost": "1", "both": "graph"})).values()
    assert {"own": "a", "both": "own"}.items() <= dcd["metadata"]["labels"].items()
    assert "cost" not in dcd["metadata"]["labels"]
    assert dcd["spec"]["podTemplate"]["metadata"]["labels"].items() >= {"cost": "1", "own": "a", "both": "own"}.items()


def test_labels_of_the_platform_override_those_of_the_user() -> None:
    labels = {"team": "a", "nvidia.com/dynamo-component": "mine", "nvidia.com/selector": "mine"}
    made = deployment(component("Decode", "decode", labels=labels), labels={"team": "graph", "cost": "1"})
    for object_labels in (made["metadata"]["labels"], made["spec"]["template"]["metadata"]["labels"]):
        assert (object_labels["team"], object_labels["cost"], object_labels["nvidia.com/dynamo-component"]) == (
            "a",
            "1",
            "Decode",
        )
        assert object_labels["nvidia.com/dynamo-sub-component-type"] == "decode"
    selected = made["spec"]["selector"]["matchLabels"]
    assert selected.items() <= made["spec"]["template"]["metadata"]["labels"].items()
    assert selected == {"nvidia.com/selector": made["metadata"]["name"]}


def test_annotations_reach_pods_except_for_the_version() -> None:
    made = deployment(component(annotations={"a": "own"}), annotations={"nvidia.com/enable-metrics": "false", "x": "y"})
    object_labels = made["spec"]["template"]["metadata"]["annotations"]
    assert object_labels == made["metadata"]["annotations"] == {"a": "own", "nvidia.com/enable-metrics": "false"}
    assert "nvidia.com/metrics-enabled" not in made["spec"]["template"]["metadata"]["labels"]


@pytest.mark.parametrize(("grove", "kept"), [(True, "false"), (False, "true")])
def test_with_grove_the_label_of_the_author_decides_whether_metrics_are_read(grove: bool, kept: str) -> None:
    own = component(labels={"nvidia.com/metrics-enabled": "false"})
    if grove:
        children = graph_children(graph(own), replace(CONFIG, grove=True))
        (pods,) = of_kind(children, "PodCliqueSet")[0]["spec"]["template"]["cliques"]
    else:
        pods = deployment(own)["spec"]["template"]["metadata"]
    assert pods["labels"]["nvidia.com/metrics-enabled"] == kept


@pytest.mark.parametrize(
    ("object_annotations", "own", "version"),
    [({}, {}, "1.2.0"), ({"nvidia.com/dynamo-operator-origin-version": "0.9.0"}, {}, "0.9.0")],
)
def test_origin_version(object_annotations: dict[str, str], own: dict[str, str], version: str) -> None:
    (dcd,) = component_deployments(graph(component(annotations=own), annotations=object_annotations)).values()
    result = dcd["spec"]["podTemplate"]["metadata"]["annotations"]
    assert result["nvidia.com/dynamo-operator-origin-version"] == version


@pytest.mark.parametrize("origin", [{}, {"nvidia.com/dynamo-operator-origin-version": "0.9.0"}])
def test_an_upgrade_of_the_platform_changes_no_pod_of_grove(origin: dict[str, str]) -> None:
    obj = graph(component(main=VLLM), annotations=origin)
    versions = [replace(CONFIG, grove=True, operator_version=version) for version in ("1.2.0", "1.3.0")]
    before, after = (of_kind(graph_children(obj, config), "PodCliqueSet")[0] for config in versions)
    assert before == after
    assert origin.items() <= after["spec"]["template"]["cliques"][0]["annotations"].items()


def test_services_of_components_on_grove_have_the_users_annotations() -> None:
    """As those of component deployments do, because load balancers and scrapers read them."""
    own = component("Frontend", "frontend", annotations={"both": "pod", "nvidia.com/enable-metrics": "false"})
    obj = graph(own, annotations={"nvidia.com/dynamo-discovery-backend": "kubernetes"})
    obj["spec"]["annotations"] = {"team": "a", "both": "graph"}
    (service,) = of_kind(graph_children(obj, replace(CONFIG, grove=True)), "Service")
    assert service["metadata"]["annotations"] == {"team": "a", "both": "pod"}


@pytest.mark.parametrize(
    ("object_annotations", "expected"),
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
        ({"deployment-strategy": "Recreate"}, {"type": "Recreate"}),
        (
            {"deployment-rolling-update-max-surge": "2", "deployment-rolling-update-max-unavailable": "10%"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": "10%"}},
        ),
        (
            {"deployment-rolling-update-max-surge": "0", "deployment-rolling-update-max-unavailable": "0%"},
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "0%"}},
        ),
    ],
)
def test_strategy(object_annotations: dict[str, str], expected: KubeObject) -> None:
    object_labels = {f"nvidia.com/{name}": value for name, value in object_annotations.items()}
    assert deployment(component(annotations=object_labels))["spec"]["strategy"] == expected


@pytest.mark.parametrize(("fields", "replicas"), [({}, 1), ({"replicas": 0}, 0), ({"replicas": 3}, 3)])
def test_the_platform_owns_the_replicas_of_a_graph_even_if_it_sets_none(fields: KubeObject, replicas: int) -> None:
    given = component(**fields)
    (dcd,) = component_deployments(graph(given)).values()
    assert dcd["spec"]["replicas"] == deployment(given)["spec"]["replicas"] == replicas


@pytest.mark.parametrize(
    ("parts", "framework", "expected"),
    [
        ([component("a", "worker", main=VLLM), FRONTEND], None, "vllm"),
        ([component("a", "worker", main=VLLM), component("b", "worker")], None, "vllm"),
        ([component("a", "worker"), FRONTEND], "trtllm", "trtllm"),
        ([component("a", "worker"), FRONTEND], None, None),
        ([component("Frontend", "frontend", main=VLLM)], None, None),
    ],
)
def test_backend_framework(parts: list[KubeObject], framework: str | None, expected: str | None) -> None:
    fields = {"backendFramework": framework} if framework else {}
    result = component_deployments(graph(*parts, **fields))
    assert {dcd["spec"].get("backendFramework") for dcd in result.values()} == {expected}


def test_backend_framework_of_an_existing_component_is_kept() -> None:
    children = graph_children(graph(component(main=VLLM), FRONTEND), backends={"graph-frontend": "sglang"})
    results = {
        dcd["spec"]["name"]: dcd["spec"]["backendFramework"] for dcd in of_kind(children, "DynamoComponentDeployment")
    }
    assert results == {"Worker": "vllm", "Frontend": "sglang"}


@pytest.mark.parametrize("checkpoint", [{"checkpointRef": "c"}, {"startupPolicy": "WaitForCheckpoint"}])
def test_while_checkpoints_are_disabled_a_component_starts_without_one(checkpoint: KubeObject) -> None:
    requested, plain = deployment(component(experimental={"checkpoint": checkpoint})), deployment(component())
    hashes = [each["metadata"]["name"].rpartition("-")[2] for each in (requested, plain)]
    assert str(requested).replace(*hashes) == str(plain)


REFUSALS = {
    "spec.components: names no component": graph(),
    "component Worker: multinode: no multinode orchestrator available": graph(component(multinode={"nodeCount": 2})),
    "component E: type: an endpoint picker needs an InferencePool": graph(
        component("E", "epp", eppConfig={"configMapRef": {"name": "c", "key": "k"}})
    ),
    "spec.components: workers run different engines: b runs sglang, a runs vllm": graph(
        component("a", main=VLLM), component("b", main=SGLANG)
    ),
    "component Worker: podTemplate.*: starts several engines: sglang, vllm": graph(
        component(main={"args": ["python3 -m dynamo.vllm & python3 -m dynamo.sglang"]})
    ),
    "component Worker: backendFramework: is sglang, but the command starts dynamo.vllm": graph(
        component(main=VLLM), backendFramework="sglang"
    ),
    "component Frontend: name: the Service would be named '.*', 69 characters; Kubernetes allows 63": graph(
        FRONTEND, name="g" * 60
    ),
    "component Frontend: name: the Service would be named '1graph-frontend'; .* requires a letter": graph(
        FRONTEND, name="1graph"
    ),
    "component a: name: is already the name of A": graph(component("A"), component("a")),
    "component A: name: is already the name of A": graph(component("A"), component("A")),
    "component Worker: podTemplate.metadata.annotations.*'some' is neither a number of pods nor a percentage": graph(
        component(annotations={"nvidia.com/deployment-rolling-update-max-surge": "some"})
    ),
}


@pytest.mark.parametrize(("message", "obj"), REFUSALS.items())
def test_refusals(message: str, obj: KubeObject) -> None:
    with pytest.raises(render.RenderError, match=message):
        # More than admission would reject: parsing is tolerant of these, as of objects stored before.
        graph_children(obj)


PICKER = component("Epp", "epp", eppConfig={"configMapRef": {"name": "own", "key": "k.yaml"}})
ROLE, CLUSTER_ROLE = "Role", "ClusterRole"


@pytest.mark.parametrize(
    ("parts", "fields", "bound"),
    [
        ([FRONTEND], {}, {}),
        ([PLANNER], {}, {"planner": (ROLE, "planner-serviceaccount-role")}),
        ([FRONTEND, PICKER], {}, {"epp": (ROLE, "epp-serviceaccount-role")}),
        ([PLANNER], {"restricted_namespace": "ns"}, {"planner": (ROLE, "planner-serviceaccount-role")}),
        ([PLANNER], {"planner_cluster_role": "p"}, {"planner": (CLUSTER_ROLE, "p")}),
        ([FRONTEND, PICKER], {"epp_cluster_role": "e"}, {"epp": (CLUSTER_ROLE, "e")}),
        ([PLANNER], {"restricted_namespace": "ns", "planner_cluster_role": "p"}, {}),
    ],
)
def test_access_of_planners_and_pickers(parts: list[KubeObject], fields: dict[str, Any], bound: dict[str, Any]) -> None:
    config = render.RenderConfig(discovery_backend="etcd", inference_pools=True, **fields)
    children = graph_children(graph(component(), *parts), config)
    references = {each["metadata"]["name"]: each["roleRef"] for each in of_kind(children, "RoleBinding")}
    assert {name: (ref["kind"], ref["name"]) for name, ref in references.items()} == {
        f"{name}-serviceaccount-binding": role for name, role in bound.items()
    }
    roles = {each["metadata"]["name"]: each for each in of_kind(children, "Role")}
    assert roles.keys() == {name for kind, name in bound.values() if kind == ROLE}
    assert not any("ownerReferences" in each["metadata"] for each in roles.values()), "all graphs there share it"


def bound(children: list[KubeObject]) -> list[str]:
    """Accounts that may register themselves and discover others."""
    bindings = {each["metadata"]["name"]: each for each in of_kind(children, "RoleBinding")}
    return [each["name"] for name, each in bindings.items() if "discovery" in name for each in each["subjects"]]


def test_accounts_that_pod_templates_name_may_register_their_pods() -> None:
    """For example those of a cloud's workload identity: https://github.com/ai-dynamo/dynamo/issues/10590."""
    template = {"serviceAccountName": "reads-buckets"}
    parts = [FRONTEND, component("One", pod=template), component("Two", pod=template), PLANNER, PICKER]
    children = graph_children(graph(*parts), render.RenderConfig(inference_pools=True))
    assert bound(children) == ["graph-k8s-service-discovery", "reads-buckets"]
    on_etcd = {"metadata": {"annotations": {"nvidia.com/dynamo-discovery-backend": "etcd"}}, "spec": template}
    assert bound(graph_children(graph(FRONTEND, {**component("One"), "podTemplate": on_etcd}))) == [
        "graph-k8s-service-discovery"
    ]


@pytest.mark.parametrize(("own", "account"), [({}, "planner-serviceaccount"), ({"serviceAccountName": "own"}, "own")])
def test_a_planner_on_grove_may_have_its_own_account(own: dict[str, str], account: str) -> None:
    """As in the reference, in which only the account of a planner without Grove is fixed."""
    planner = {**PLANNER, "podTemplate": {"spec": {**PLANNER["podTemplate"]["spec"], **own}}}
    (made,) = of_kind(graph_children(graph(planner), render.RenderConfig(grove=True)), "PodCliqueSet")
    (clique,) = made["spec"]["template"]["cliques"]
    assert clique["spec"]["podSpec"]["serviceAccountName"] == account


@pytest.mark.parametrize("parts", [[PLANNER], [FRONTEND, PICKER], [FRONTEND]])
def test_the_pod_builder_has_the_rights_that_it_gives_to_pods(parts: list[KubeObject]) -> None:
    """The API server rejects a Role with more rights than its writer has."""
    children = graph_children(graph(component(), *parts), render.RenderConfig(inference_pools=True))
    rules = [rule for role in of_kind(children, "Role") for rule in role["rules"]]
    assert rules
    given = [
        (verb, group, plural)
        for rule in rules
        for group in rule["apiGroups"]
        for plural in rule["resources"]
        for verb in rule["verbs"]
    ]
    assert [each for each in given if not any(allows(right, *each, "") for right in RIGHTS)] == []


def test_multinode_of_a_standalone_component_is_rejected() -> None:
    dcd = component_deployments(graph(component()))["Worker"]
    with pytest.raises(render.RenderError):
        component_children({**dcd, "spec": {**dcd["spec"], "multinode": {"nodeCount": 2}}})


def test_dots_in_the_name_of_a_graph() -> None:
    (children,) = workloads(graph(FRONTEND, name="llama-3.1")).values()
    assert names_of(children) == ["Deployment/llama-3.1-frontend", "Service/llama-3-1-frontend"]
    assert children[1]["spec"]["selector"]["nvidia.com/dynamo-namespace"] == "ns-llama-3-1"


def test_long_names_still_have_valid_labels() -> None:
    account = graph_children(graph(FRONTEND, name="g" * 50))[0]
    assert len(account["metadata"]["name"]) == 72
    assert len(account["metadata"]["labels"]["app.kubernetes.io/name"]) <= 63


def test_workers_of_a_picker_are_labelled_for_its_pool() -> None:
    config = render.RenderConfig(planner_cluster_role="p", epp_cluster_role="e", inference_pools=True)
    picker = component("Epp", "epp", eppConfig={"configMapRef": {"name": "own", "key": "k.yaml"}})
    children = workloads(graph(component("Decode", "decode"), picker, FRONTEND), config)
    classes = {
        name: made[0]["spec"]["template"]["metadata"]["labels"].get("nvidia.com/dynamo-component-class")
        for name, made in children.items()
    }
    assert classes == {"Decode": "worker", "Epp": None, "Frontend": None}
    volume = children["Epp"][0]["spec"]["template"]["spec"]["volumes"][0]
    assert volume["configMap"] == {"name": "own", "items": [{"key": "k.yaml", "path": "epp-config-dynamo.yaml"}]}


def test_the_configuration_of_a_picker_has_all_fields_that_the_gateways_types_write() -> None:
    config = render.RenderConfig(planner_cluster_role="p", epp_cluster_role="e", inference_pools=True)
    plugins = [{"pluginRef": "scorer", "weight": 2}, {"pluginRef": "picker"}]
    inline = {"plugins": [{"type": "scorer"}], "schedulingProfiles": [{"name": "default", "plugins": plugins}]}
    picker = component("Epp", "epp", eppConfig={"config": inline})
    (config_map,) = (
        each for each in graph_children(graph(component(), picker, FRONTEND), config) if each["kind"] == "ConfigMap"
    )
    assert config_map["data"]["epp-config-dynamo.yaml"].splitlines() == [
        "apiVersion: inference.networking.x-k8s.io/v1alpha1",
        "kind: EndpointPickerConfig",
        "plugins:",
        '- name: ""',
        "  parameters: null",
        "  type: scorer",
        "schedulingProfiles:",
        "- name: default",
        "  plugins:",
        "  - pluginRef: scorer",
        "    weight: 2",
        "  - pluginRef: picker",
        "    weight: null",
    ]


@pytest.mark.parametrize(
    ("model", "value"),
    [
        ("Qwen/Qwen3-0.6B", "Qwen--Qwen3-0.6B"),
        ("/models/llama 3", "models--llama-3"),
        ("a" * 70, "a" * 63),
        ("x" * 62 + "/y", "x" * 62),
    ],
)
def test_pods_have_the_label_of_their_model(model: str, value: str) -> None:
    worker = component("Worker", modelRef={"name": model})
    template = deployment(worker)["spec"]["template"]["metadata"]
    assert template["labels"]["nvidia.com/dynamo-base-model"] == value
    assert template["annotations"]["nvidia.com/dynamo-base-model"] == model


def test_pods_without_the_label_are_not_replaced_for_it() -> None:
    (dcd,) = component_deployments(graph(component("Worker", modelRef={"name": "m"}))).values()
    kept = of_kind(component_children(dcd, lacking=frozenset({"nvidia.com/dynamo-base-model"})), "Deployment")[0][
        "spec"
    ]["template"]["metadata"]
    assert "nvidia.com/dynamo-base-model" not in kept["labels"]
    assert "nvidia.com/dynamo-base-model-hash" in kept["labels"]


def test_only_the_service_of_a_model_may_have_several_owners() -> None:
    children = workloads(graph(component(modelRef={"name": "Qwen/Qwen3-0.6B"})))["Worker"]
    assert names_of(children)[2] == "Service/dynamo-model-fb68f5a6"
    assert [is_co_owned(child) for child in children] == [False, False, True]


def test_a_standalone_component_gets_its_access() -> None:
    metadata = {"name": "alone", "namespace": "ns"}
    spec = {key: value for key, value in component().items() if key != "name"}
    dcd = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoComponentDeployment", "metadata": metadata, "spec": spec}
    named = {**dcd, "spec": component("One", pod={"serviceAccountName": "reads-buckets"})}
    assert bound(component_children(named)) == ["alone-k8s-service-discovery", "reads-buckets"]
    children = component_children(dcd)
    assert names_of(children) == [
        "ServiceAccount/alone-k8s-service-discovery",
        "Role/alone-k8s-service-discovery-role",
        "RoleBinding/alone-k8s-service-discovery-binding",
        "Deployment/alone",
        "Service/alone",
    ]
    assert children[3]["spec"]["template"]["spec"]["serviceAccountName"] == "alone-k8s-service-discovery"
    assert children[4]["spec"]["selector"]["nvidia.com/dynamo-component"] == "alone"


def test_legacy_selectors_are_kept() -> None:
    dcd = component_deployments(graph(component("Decode", "decode")))["Decode"]
    made, service = component_children(dcd, legacy_type="worker")
    object_labels = made["spec"]["template"]["metadata"]["labels"]
    assert (
        object_labels["nvidia.com/dynamo-component-type"]
        == service["spec"]["selector"]["nvidia.com/dynamo-component-type"]
        == "worker"
    )
    assert object_labels["nvidia.com/dynamo-sub-component-type"] == "decode"
