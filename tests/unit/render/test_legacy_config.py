from __future__ import annotations

import json
from typing import Any

import pytest
from dynamo_pod_builder import render

from .building import component, component_deployments, graph, main

CONFIG = "DYN_DEPLOYMENT_CONFIG"


def configured(value: Any, name: str = "Worker", type_: str = "worker", **fields: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return component(name, type_, main={"env": [{"name": CONFIG, "value": text}], **fields.pop("main", {})}, **fields)


@pytest.mark.parametrize(("fields", "replicas"), [({}, 3), ({"replicas": 1}, 1)])
def test_workers_are_replicas_where_none_are_given(fields: dict[str, Any], replicas: int) -> None:
    obj = graph(configured({"Worker": {"ServiceArgs": {"workers": 3}}}, **fields))
    assert component_deployments(obj)["Worker"]["spec"]["replicas"] == replicas


def test_resources_become_requests_and_limits() -> None:
    resources = {"cpu": "2", "memory": "4Gi", "gpu": "1", "custom": {"rdma/ib": "1"}}
    given = configured(
        {"Worker": {"ServiceArgs": {"resources": resources}}}, main={"resources": {"limits": {"disk": "1"}}}
    )
    amounts = {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1", "rdma/ib": "1"}
    assert main(given)["resources"] == {"requests": amounts, "limits": {"disk": "1", **amounts}}


@pytest.mark.parametrize("entry", ["Front", "FrontEnd"])
def test_port_of_a_frontend_is_ours(entry: str) -> None:
    given = configured({entry: {"port": 9999, "x": 1}, "Other": {"port": 1}}, "Front", "frontend")
    text = next(each["value"] for each in main(given)["env"] if each["name"] == CONFIG)
    assert json.loads(text) == {entry: {"port": 8000, "x": 1}, "Other": {"port": 1}}


def test_another_components_entry_counts_for_nothing() -> None:
    obj = graph(configured({"Other": {"ServiceArgs": {"workers": 3}}}))
    assert "replicas" not in component_deployments(obj)["Worker"]["spec"]


@pytest.mark.parametrize("text", ["{", "[1]", '{"Worker": 3}'])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(render.RenderError, match=r"component Worker: .*DYN_DEPLOYMENT_CONFIG\]: is no JSON"):
        component_deployments(graph(configured(text)))
