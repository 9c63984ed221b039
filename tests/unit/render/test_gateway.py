"""Gateways and service meshes in front of a graph."""

from dataclasses import replace

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_graph

CONFIG = render.RenderConfig(
    epp_cluster_role="epp",
    inference_pools=True,
    gateway=render.GatewayDefaults("public", "infra", routes=True),
    ingress=render.IngressDefaults(host_suffix="example.com"),
    mesh=render.Mesh(destination_rules=True),
)


ISTIO = "sidecar.istio.io/inject"


def graph(*types: str) -> KubeObject:
    def component(type_: str) -> KubeObject:
        results = {"name": type_.title(), "type": type_, "podTemplate": {"spec": {"containers": [{"name": "main"}]}}}
        return {**results, "eppConfig": {"configMapRef": {"name": "c", "key": "k"}}} if type_ == "epp" else results

    metadata = {"name": "g", "namespace": "n", "uid": "u"}
    spec = {"components": [component(each) for each in types]}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


def made(config: render.RenderConfig, *types: str) -> dict[str, KubeObject]:
    return {each["kind"]: each for each in render.graph_children(parse_graph(graph(*types)), config)}


def test_a_route_leads_to_the_frontend() -> None:
    route = made(CONFIG, "frontend", "worker")["HTTPRoute"]
    assert route["metadata"]["name"] == "g"
    assert route["spec"] == {
        "parentRefs": [{"name": "public", "namespace": "infra"}],
        "hostnames": ["g.example.com"],
        "rules": [
            {
                "matches": [{"path": {"type": "PathPrefix", "value": "/"}}],
                "backendRefs": [{"group": "", "kind": "Service", "name": "g-frontend", "port": 8000}],
            }
        ],
    }


def test_a_route_leads_to_the_pool_if_a_picker_chooses() -> None:
    route = made(CONFIG, "epp", "worker")["HTTPRoute"]
    (rule,) = route["spec"]["rules"]
    assert rule["backendRefs"] == [{"group": "inference.networking.k8s.io", "kind": "InferencePool", "name": "g-pool"}]


def test_a_mesh_gets_the_settings_for_the_connection_to_the_picker() -> None:
    rule = made(CONFIG, "epp", "worker")["DestinationRule"]
    assert rule["metadata"]["name"] == "g-epp"
    assert rule["spec"] == {
        "host": "g-epp.n.svc.cluster.local",
        "trafficPolicy": {"tls": {"mode": "SIMPLE", "insecureSkipVerify": True}},
    }
    assert "DestinationRule" not in made(CONFIG, "frontend", "worker")


def test_a_mesh_with_mutual_tls_names_its_own_certificate() -> None:
    mesh = render.Mesh(
        destination_rules=True, tls_mode="MUTUAL", client_certificate="/c", private_key="/k", ca_certificates="/a"
    )
    files = {"clientCertificate": "/c", "privateKey": "/k", "caCertificates": "/a"}
    rule = made(replace(CONFIG, mesh=mesh), "epp", "worker")["DestinationRule"]
    assert rule["spec"]["trafficPolicy"]["tls"] == {"mode": "MUTUAL", "insecureSkipVerify": True, **files}
    simple = made(replace(CONFIG, mesh=replace(mesh, tls_mode="SIMPLE")), "epp", "worker")["DestinationRule"]
    assert not simple["spec"]["trafficPolicy"]["tls"].keys() & files.keys()


@pytest.mark.parametrize(
    ("mesh", "own", "graph_wide", "expected"),
    [
        (render.Mesh(destination_rules=True), {}, {}, {"Epp": "false", "Worker": None}),
        (render.Mesh(destination_rules=True), {}, {ISTIO: "true"}, {"Epp": "false", "Worker": "true"}),
        (render.Mesh(destination_rules=True), {ISTIO: "true"}, {}, {"Epp": "true", "Worker": None}),
        (render.Mesh(), {}, {}, {"Epp": None, "Worker": None}),
    ],
)
def test_a_picker_with_its_own_tls_has_no_mesh_proxy(mesh, own, graph_wide, expected) -> None:
    obj = graph("epp", "worker")
    obj["spec"]["annotations"] = graph_wide
    obj["spec"]["components"][0]["podTemplate"]["metadata"] = {"annotations": own}
    children = render.graph_children(parse_graph(obj), replace(CONFIG, mesh=mesh))
    templates = {
        each["spec"]["name"]: each["spec"]["podTemplate"].get("metadata", {}).get("annotations", {})
        for each in children
        if each["kind"] == "DynamoComponentDeployment"
    }
    assert {name: annotations.get(ISTIO) for name, annotations in templates.items()} == expected


@pytest.mark.parametrize(
    "config",
    [
        replace(CONFIG, gateway=render.GatewayDefaults(), mesh=render.Mesh()),
        replace(CONFIG, gateway=render.GatewayDefaults("public"), mesh=render.Mesh()),
    ],
)
def test_only_desired_objects_that_the_cluster_supports_are_rendered(config) -> None:
    assert not {"HTTPRoute", "DestinationRule"} & made(config, "epp", "worker").keys()


def test_a_graph_without_a_frontend_has_no_route() -> None:
    assert "HTTPRoute" not in made(CONFIG, "worker")
