import json
from typing import Any

import pytest
from dynamo_pod_builder import render

from .building import component, component_deployments, graph, main

CONFIG = "DYN_DEPLOYMENT_CONFIG"


def configured(value: Any, name: str = "Worker", type_: str = "worker", **fields: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return component(name, type_, main={"env": [{"name": CONFIG, "value": text}], **fields.pop("main", {})}, **fields)


@pytest.mark.parametrize(
    ("entry", "name", "type_", "fields", "replicas"),
    [
        pytest.param("Worker", "Worker", "worker", {}, 3, id="none given"),
        pytest.param("Worker", "Worker", "worker", {"replicas": 1}, 1, id="given"),
        pytest.param("Frontend", "Front", "frontend", {}, 3, id="the entry that is called Frontend"),
        pytest.param("Other", "Worker", "worker", {}, 1, id="the entry of another component"),
    ],
)
def test_workers_are_replicas(entry: str, name: str, type_: str, fields: dict[str, Any], replicas: int) -> None:
    obj = graph(configured({entry: {"ServiceArgs": {"workers": 3}}}, name, type_, **fields))
    assert component_deployments(obj)[name]["spec"]["replicas"] == replicas


@pytest.mark.parametrize("workers", [True, -1, 150_001])
def test_workers_that_no_component_may_have_are_rejected(workers: int) -> None:
    """Admission limits replicas, but does not read this number."""
    obj = graph(configured({"Worker": {"ServiceArgs": {"workers": workers}}}))
    with pytest.raises(
        render.RenderError, match=rf"env\[{CONFIG}\]: ServiceArgs.workers is {str(workers).lower()}, not"
    ):
        component_deployments(obj)


def test_resources_become_requests_and_limits() -> None:
    resources = {"cpu": "2", "memory": "4Gi", "gpu": "1", "custom": {"rdma/ib": "1"}}
    given = configured(
        {"Worker": {"ServiceArgs": {"resources": resources}}}, main={"resources": {"limits": {"disk": "1"}}}
    )
    amounts = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1", "rdma/ib": "1"}
    assert main(given)["resources"] == {"requests": amounts, "limits": {"disk": "1", **amounts}}


def test_names_of_arguments_are_read_in_any_case_as_by_the_operator() -> None:
    amounts = {"CPU": "2", "Memory": "4Gi", "GPU": "1", "Custom": {"rdma/ib": "1"}}
    obj = graph(configured({"Worker": {"serviceArgs": {"Workers": 3, "Resources": amounts}}}))
    spec = component_deployments(obj)["Worker"]["spec"]
    expected = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1", "rdma/ib": "1"}
    assert spec["replicas"] == 3
    assert spec["podTemplate"]["spec"]["containers"][0]["resources"] == {"requests": expected, "limits": expected}


@pytest.mark.parametrize("entry", ["Front", "FrontEnd"])
def test_the_platform_sets_the_port_of_a_frontend(entry: str) -> None:
    given = configured({entry: {"port": 9999, "x": 1}, "Other": {"port": 1}}, "Front", "frontend")
    text = next(each["value"] for each in main(given)["env"] if each["name"] == CONFIG)
    assert json.loads(text) == {entry: {"port": 8000, "x": 1}, "Other": {"port": 1}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "is not valid JSON or YAML"),
        ("a: [", "is not valid JSON or YAML"),
        ("[1]", "must be an object"),
        ("just text", "must be an object"),
        ("a: 1\n---\nb: 2", "must be an object"),
        ('{"Worker": 3}', "must be an object"),
        ("routing: kv", "must be an object"),
        ("routing: {mode: fastest}", "routing.mode is 'fastest', not one of kv, round-robin, random"),
    ],
)
def test_invalid_configurations_are_rejected(text: str, problem: str) -> None:
    with pytest.raises(render.RenderError) as refused:
        component_deployments(graph(configured(text)))
    assert "component Worker: " in str(refused.value)
    assert problem in str(refused.value)


PRINTED = """\
namespace: string      # Dynamo namespace
component: string      # Component name
endpoints:             # Service discovery
  - name: generate
    address: tcp://10.0.0.7:9000
routing:               # Router configuration
  mode: kv             # kv, round-robin, random
"""


def value(obj: dict[str, Any]) -> dict[str, Any]:
    text = next(each["value"] for each in main(obj)["env"] if each["name"] == CONFIG)
    document: dict[str, Any] = json.loads(text)
    return document


def test_the_yaml_of_a_component_is_read_and_rendered() -> None:
    assert value(configured(PRINTED)) == {
        "namespace": "ns-graph",
        "component": "Worker",
        "endpoints": [{"name": "generate", "address": "tcp://10.0.0.7:9000"}],
        "routing": {"mode": "kv"},
    }


def test_the_endpoint_of_a_frontend_is_set_if_it_is_missing() -> None:
    assert value(configured("routing: {mode: random}", "Front", "frontend")) == {
        "namespace": "ns-graph",
        "component": "Front",
        "endpoints": [{"name": "http", "address": "http://graph-front.ns.svc:8000"}],
        "routing": {"mode": "random"},
    }


@pytest.mark.parametrize(("own", "mode"), [([], "kv"), ([{"name": "DYN_ROUTER_MODE", "value": "random"}], "random")])
def test_routing_becomes_the_router_mode_of_the_frontend(own: list[dict[str, Any]], mode: str) -> None:
    front = component("Front", "frontend", main={"env": own})
    specs = component_deployments(graph(front, configured(PRINTED)))
    env = specs["Front"]["spec"]["podTemplate"]["spec"]["containers"][0]["env"]
    assert [each["value"] for each in env if each["name"] == "DYN_ROUTER_MODE"] == [mode]
    worker = specs["Worker"]["spec"]["podTemplate"]["spec"]["containers"][0]["env"]
    assert all(each["name"] != "DYN_ROUTER_MODE" for each in worker)


def test_yaml_of_the_older_form_is_read_and_kept_as_written() -> None:
    text = "Worker:\n  ServiceArgs:\n    workers: 3\n"
    spec = component_deployments(graph(configured(text)))["Worker"]["spec"]
    assert spec["replicas"] == 3
    assert spec["podTemplate"]["spec"]["containers"][0]["env"] == [{"name": CONFIG, "value": text}]
