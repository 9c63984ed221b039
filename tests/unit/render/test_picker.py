"""The endpoint picker of runtimes from 1.5.0 on: without configuration or arguments, as the reference renders it."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, graph, graph_children, of_kind, variables, workloads

WITH_POOLS = replace(CONFIG, inference_pools=True)
LEGACY: dict[str, Any] = {"eppConfig": {"configMapRef": {"name": "own", "key": "k.yaml"}}}


def picker(image: str = "frontend:1.5.0", **fields: Any) -> KubeObject:
    return component("Epp", "epp", main={"image": image}, **fields)


def pod_of(single: KubeObject) -> KubeObject:
    (made, *_) = workloads(graph(single, component("Decode", "decode")), WITH_POOLS)["Epp"]
    pod: KubeObject = made["spec"]["template"]["spec"]
    return pod


@pytest.mark.parametrize(("version", "strict"), [("1.5.0", None), ("1.6.0", "true")])
def test_a_picker_serves_only_its_own_graph_if_its_runtime_can(version: str, strict: str | None) -> None:
    (main,) = pod_of(picker(runtimeVersionOverride=version))["containers"]
    assert variables(main).get("DYN_NAMESPACE_PREFIX_STRICT") == strict


@pytest.mark.parametrize(("image", "stated"), [("frontend:1.5.0-rc.2", None), ("frontend:latest", "1.5.0")])
def test_the_image_starts_the_picker_and_variables_configure_it(image: str, stated: str | None) -> None:
    version = {"runtimeVersionOverride": stated} if stated else {}
    pod = pod_of(picker(image, **version))
    (main,) = pod["containers"]
    before = pod_of(picker("epp:1.4.0", **LEGACY))["containers"][0]
    assert not {"command", "args"} & main.keys()
    given, known = variables(main), variables(before)
    assert given == {**known, "RUST_LOG": "info", "HOME": "/home/dynamo"}
    assert [each for each in main["volumeMounts"] if each["name"] != "shared-memory"] == [
        {"name": "hf-cache", "mountPath": "/home/dynamo/.cache"}
    ]
    assert [each for each in pod["volumes"] if each["name"] != "shared-memory"] == [
        {"name": "hf-cache", "emptyDir": {}}
    ]
    same = ("ports", "livenessProbe", "readinessProbe", "startupProbe")
    assert {name: main[name] for name in same} == {name: before[name] for name in same}


def test_it_has_an_inference_pool_and_no_config_map() -> None:
    native, legacy = (
        graph_children(graph(each, component("Decode", "decode")), WITH_POOLS)
        for each in (picker(), picker("epp:1.4.0", **LEGACY))
    )
    assert of_kind(native, "InferencePool") == of_kind(legacy, "InferencePool")
    assert of_kind(native, "ConfigMap") == []


def test_a_configuration_selects_the_former_picker_with_any_version() -> None:
    one, other = (pod_of(picker(**LEGACY, **fields)) for fields in ({}, {"runtimeVersionOverride": "1.5.0"}))
    assert one == other
    assert "--config-file" in one["containers"][0]["args"]


@pytest.mark.parametrize(
    ("image", "stated"), [("frontend:1.5.0", "1.4.9"), ("frontend:1.4.9", None), ("frontend", None)]
)
def test_an_earlier_picker_needs_its_configuration(image: str, stated: str | None) -> None:
    version = {"runtimeVersionOverride": stated} if stated else {}
    with pytest.raises(render.RenderError, match=r"a runtime before 1\.5\.0 requires a configuration"):
        pod_of(picker(image, **version))
