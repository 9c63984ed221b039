"""Fields that only v1alpha1 has take effect, in a graph and in a component deployment of its own."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import legacy_types, render
from dynamo_pod_builder.reconcilers.graph.grove import cliques_of
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, POD_CLIQUE_SETS
from dynamo_shared.api.v1beta1 import parse_component, parse_graph

from tests.building.objects import object_of

BETA = "nvidia.com/v1beta1"
CONFIG = render.RenderConfig(operator_version="1.2.0")
MAIN = {"mainContainer": {"image": "i", "command": ["python3", "-m", "dynamo.frontend"]}}


def graph(service: KubeObject, **spec: Any) -> KubeObject:
    services = {"Frontend": {"extraPodSpec": MAIN, "componentType": "frontend", **service}}
    alpha = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")
    return convert(object_of(alpha, "g", "n", uid="u", spec={"services": services, **spec}), BETA)


def made(
    obj: KubeObject, config: render.RenderConfig = CONFIG, there: dict[str, KubeObject] | None = None
) -> dict[str, KubeObject]:
    """All objects of a graph by `Kind/name`."""
    before = there or {}
    cliques = cliques_of(each for each in before.values() if each["kind"] == POD_CLIQUE_SETS.kind)
    kept = render.ObservedGraph(lacking=legacy_types.missing_from_cliques(obj, cliques))
    children = render.graph_children(parse_graph(obj), config, kept)
    for child in list(children):
        if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            stored = {**child, "metadata": {**child["metadata"], "uid": "c"}}
            lacking = legacy_types.missing_from(child, before.get(f"Deployment/{child['metadata']['name']}"))
            around = render.ObservedComponent(lacking=lacking)
            children += render.component_children(parse_component(stored), config, around)
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in children}


@pytest.mark.parametrize("grove", [False, True])
def test_labels_and_annotations_of_a_service_reach_its_pods(grove) -> None:
    labels = {"team": "a", "both": "service"}
    service = {"labels": labels, "annotations": {"note": "b"}, "extraPodMetadata": {"labels": {"both": "pod"}}}
    result = made(graph(service), replace(CONFIG, grove=grove))
    if grove:
        pod = result["PodCliqueSet/g"]["spec"]["template"]["cliques"][0]
    else:
        pod = result["Deployment/g-frontend"]["spec"]["template"]["metadata"]
    assert {"team": "a", "both": "pod"}.items() <= pod["labels"].items()
    assert pod["annotations"]["note"] == "b"


def test_a_component_deployment_keeps_most_of_them_out_of_its_pod_template() -> None:
    """As in the reference. The template has those that decide how pods are replaced or override the graph's."""
    service = {
        "labels": {"team": "a", "both": "service"},
        "annotations": {"note": "b", "nvidia.com/deployment-strategy": "Recreate"},
        "extraPodMetadata": {"labels": {"tier": "front"}},
    }
    result = made(graph(service, labels={"both": "graph"}))
    component = result["DynamoComponentDeployment/g-frontend"]
    metadata = component["spec"]["podTemplate"]["metadata"]
    assert metadata["labels"] == {"both": "service", "tier": "front"}
    assert "note" not in metadata["annotations"]
    assert metadata["annotations"]["nvidia.com/deployment-strategy"] == "Recreate"
    assert "team" not in component["metadata"]["labels"]
    pods = result["Deployment/g-frontend"]["spec"]["template"]["metadata"]
    assert {"team": "a", "both": "service", "tier": "front"}.items() <= pods["labels"].items()
    assert pods["annotations"]["note"] == "b"


def test_annotations_of_a_service_act_like_pod_annotations() -> None:
    result = made(graph({"annotations": {"nvidia.com/deployment-strategy": "Recreate"}}))
    assert result["Deployment/g-frontend"]["spec"]["strategy"] == {"type": "Recreate"}


def test_a_component_type_that_v1beta1_lacks() -> None:
    result = made(graph({"componentType": "default"}))
    template = result["Deployment/g-frontend"]["spec"]["template"]
    assert template["metadata"]["labels"]["nvidia.com/dynamo-component-type"] == "default"
    selector = result["Service/g-frontend"]["spec"]["selector"]
    assert selector["nvidia.com/dynamo-component-type"] == "default"


PART = "nvidia.com/dynamo-sub-component-type"


@pytest.mark.parametrize("grove", [False, True])
def test_a_sub_component_type_that_v1beta1_lacks_is_a_label(grove: bool) -> None:
    config = replace(CONFIG, grove=grove)
    result = made(graph({"subComponentType": "encode"}), config)
    assert grove or result["Service/g-frontend"]["metadata"]["labels"][PART] == "encode"
    assert labels_of_pods(result)[PART] == "encode"
    assert PART not in labels_of_pods(made(graph({}), config))
    decode = {"componentType": "worker", "subComponentType": "decode"}
    assert labels_of_pods(made(graph(decode), config))[PART] == "decode"


@pytest.mark.parametrize("grove", [False, True])
def test_pods_of_an_earlier_release_are_not_replaced_for_that_label(grove: bool) -> None:
    config = replace(CONFIG, grove=grove)
    before = made(graph({}), config)
    after = made(graph({"subComponentType": "encode"}), config, before)
    assert labels_of_pods(after) == labels_of_pods(before)
    own = {"subComponentType": "encode", "extraPodMetadata": {"labels": {PART: "mine"}}}
    assert labels_of_pods(made(graph(own), config, before))[PART] == "encode"


def labels_of_pods(result: dict[str, KubeObject]) -> dict[str, str]:
    of_set = result.get("PodCliqueSet/g")
    if of_set is not None:
        return dict(of_set["spec"]["template"]["cliques"][0]["labels"])
    (workload,) = (each for key, each in result.items() if key.startswith("Deployment/"))
    return dict(workload["spec"]["template"]["metadata"]["labels"])


def test_a_component_deployment_that_needs_no_annotation_has_none() -> None:
    component = made(graph({"replicas": 2}))["DynamoComponentDeployment/g-frontend"]
    assert "annotations" not in component["metadata"]


def test_an_ingress() -> None:
    desired = {
        "enabled": True,
        "host": "chat",
        "hostPrefix": "a-",
        "hostSuffix": "example.com",
        "ingressControllerClassName": "nginx",
        "annotations": {"x": "y"},
        "labels": {"l": "m"},
        "tls": {"secretName": "cert"},
    }
    result = made(graph({"ingress": desired}))["Ingress/g-frontend"]
    host = "a-chat.example.com"
    assert result["metadata"]["annotations"] == {"x": "y"}
    assert result["metadata"]["labels"]["l"] == "m"
    assert result["spec"]["ingressClassName"] == "nginx"
    assert result["spec"]["tls"] == [{"hosts": [host], "secretName": "cert"}]
    (rule,) = result["spec"]["rules"]
    assert rule["host"] == host
    assert rule["http"]["paths"][0]["backend"] == {"service": {"name": "g-frontend", "port": {"number": 8000}}}


def test_an_empty_list_counts_as_absent() -> None:
    volumes = [{"name": "scratch", "emptyDir": {}}]
    main_container = {"image": "i", "args": [], "securityContext": {"capabilities": {"drop": []}}}
    pod = {"tolerations": [], "nodeSelector": {}, "volumes": volumes, "mainContainer": main_container}
    with_empty = made(graph({"extraPodSpec": pod}))
    result = with_empty["DynamoComponentDeployment/g-frontend"]["spec"]["podTemplate"]["spec"]
    assert result == {
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "containers": [{"name": "main", "image": "i", "securityContext": {"capabilities": {}}}],
    }
    assert "tolerations" not in with_empty["Deployment/g-frontend"]["spec"]["template"]["spec"]


def test_an_ingress_without_a_class_has_the_default_class() -> None:
    result = made(graph({"ingress": {"enabled": True, "host": "chat"}}))["Ingress/g-frontend"]
    assert "ingressClassName" not in result["spec"]
    assert result["spec"]["rules"][0]["host"] == "chat.local"
    assert "Ingress/g-frontend" not in made(graph({"ingress": {"enabled": True}}))


@pytest.mark.parametrize("tls", [{}, {"secretName": ""}])
def test_tls_without_a_secret_uses_the_certificate_of_the_controller(tls: KubeObject) -> None:
    """As in the reference. An installation's own certificate has priority."""
    obj = graph({"ingress": {"enabled": True, "host": "chat", "tls": tls}})
    assert made(obj)["Ingress/g-frontend"]["spec"]["tls"] == [{"hosts": ["chat.local"]}]
    (own,) = made(obj, replace(CONFIG, ingress=render.IngressDefaults(tls_secret="cert")))["Ingress/g-frontend"][
        "spec"
    ]["tls"]
    assert own["secretName"] == "cert"


@pytest.mark.parametrize("grove", [False, True])
def test_labels_of_a_pod_template_reach_the_service(grove: bool) -> None:
    service = {"labels": {"team": "x"}, "extraPodMetadata": {"labels": {"tier": "front"}}}
    result = made(graph(service), replace(CONFIG, grove=grove))["Service/g-frontend"]
    assert {"team": "x", "tier": "front"}.items() <= result["metadata"]["labels"].items()


def test_the_installation_may_expose_every_frontend() -> None:
    config = replace(CONFIG, ingress=render.IngressDefaults(class_name="nginx", host_suffix="example.com"))
    assert made(graph({}), config)["Ingress/g-frontend"]["spec"]["rules"][0]["host"] == "g.example.com"
    for off in ({"enabled": False}, {}):
        assert "Ingress/g-frontend" not in made(graph({"ingress": off}), config)
    assert "Ingress/g-frontend" not in made(graph({}))


def test_a_gateway_renders_a_virtual_service_if_the_cluster_has_the_type() -> None:
    config = replace(CONFIG, ingress=render.IngressDefaults(virtual_service_gateway="istio/gate"))
    assert not any(name.startswith("VirtualService") for name in made(graph({}), config))
    result = made(graph({}), replace(config, virtual_services=True))["VirtualService/g-frontend"]
    assert result["spec"]["gateways"] == ["istio/gate"]
    assert result["spec"]["hosts"] == ["g.local"]


@pytest.mark.parametrize("grove", [False, True])
def test_an_installation_with_a_class_and_a_gateway_renders_both(grove: bool) -> None:
    """As in the reference: users of the one keep it when the other is added."""
    defaults = render.IngressDefaults(class_name="nginx", virtual_service_gateway="istio/gate")
    config = replace(CONFIG, ingress=defaults, grove=grove)
    assert "Ingress/g-frontend" in made(graph({}), config)
    config = replace(config, virtual_services=True)
    result = made(graph({}), config)
    assert result["Ingress/g-frontend"]["spec"]["rules"][0]["host"] == "g.local"
    assert result["VirtualService/g-frontend"]["spec"]["hosts"] == ["g.local"]
    own = {"enabled": True, "host": "chat", "useVirtualService": True, "virtualServiceGateway": "istio/gate"}
    assert "Ingress/g-frontend" not in made(graph({"ingress": own}), config)
    result = made(graph({"ingress": {**own, "ingressControllerClassName": "own"}}), config)
    assert result["Ingress/g-frontend"]["spec"]["ingressClassName"] == "own"
    assert "VirtualService/g-frontend" in result


@pytest.mark.parametrize("grove", [False, True])
@pytest.mark.parametrize("gateway", ["mesh", "istio/gate"])
def test_a_virtual_service_is_for_a_gateway_and_never_for_the_whole_mesh(grove: bool, gateway: str) -> None:
    """Each proxy of the mesh would send requests for that host to this graph, also those for another namespace."""
    ingress = {"enabled": True, "host": "chat.victim", "hostSuffix": "svc.cluster.local", "useVirtualService": True}
    config = replace(CONFIG, virtual_services=True, grove=grove)
    obj = graph({"ingress": {**ingress, "virtualServiceGateway": gateway}})
    if gateway == "istio/gate":
        assert made(obj, config)["VirtualService/g-frontend"]["spec"]["gateways"] == [gateway]
        return
    with pytest.raises(render.RenderError, match=r"virtualServiceGateway: .* whole mesh"):
        made(obj, config)


def test_the_gateway_of_an_ingress_without_a_virtual_service_has_no_effect() -> None:
    """Admission allows it, and it takes no requests for others."""
    result = made(
        graph({"ingress": {"enabled": True, "host": "chat", "virtualServiceGateway": "mesh"}}),
        replace(CONFIG, virtual_services=True),
    )
    assert "Ingress/g-frontend" in result
    assert "VirtualService/g-frontend" not in result


def test_claims() -> None:
    desired = [
        {"name": "models", "create": True, "size": "10Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteMany"},
        {"name": "there"},
    ]
    result = made(graph({}, pvcs=desired))
    assert [name for name in result if name.startswith("PersistentVolumeClaim")] == ["PersistentVolumeClaim/models"]
    assert result["PersistentVolumeClaim/models"]["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": {"storage": "10Gi"}},
        "storageClassName": "fast",
    }


@pytest.mark.parametrize(("nodes", "names"), [(None, {"front-gms-0": 1, "front": 4}), (2, None)])
def test_more_engines_wait_than_v1beta1_can_express(nodes: int | None, names: dict[str, int] | None) -> None:
    mode = {"enabled": True, "mode": "interPod"}
    service = {
        "componentType": "worker",
        "resources": {"limits": {"gpu": "1"}},
        "gpuMemoryService": mode,
        "failover": {**mode, "numShadows": 3},
        "extraPodSpec": {"mainContainer": {"image": "i", "command": ["python3", "-m", "dynamo.vllm"]}},
        **({"multinode": {"nodeCount": nodes}} if nodes else {}),
    }
    alpha = convert(graph(service, backendFramework="vllm"), "nvidia.com/v1alpha1")
    alpha["spec"]["services"] = {"Front": alpha["spec"]["services"]["Frontend"]}
    result = made(convert(alpha, BETA), replace(CONFIG, grove=True, device_claims=True))
    cliques = {each["name"]: each["spec"] for each in result["PodCliqueSet/g"]["spec"]["template"]["cliques"]}
    expected = names or {"front-gms-0": 1, "front-ldr": 4, "front-gms-1": 1, "front-wkr-1": 4}
    assert {name: spec["replicas"] for name, spec in cliques.items()} == expected
    assert {spec["minAvailable"] for spec in cliques.values()} == {1}
