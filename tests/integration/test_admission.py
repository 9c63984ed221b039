"""The webhooks on a real API server: defaults, refusals and their texts, and warnings."""

import json
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import OPERATOR_ORIGIN_VERSION
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey

from tests.building.objects import object_of

from . import command

Kubectl = Callable[..., Awaitable[tuple[int, str, str]]]
BETA, ALPHA = DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))


def alpha(namespace: str, name: str = "chat", **spec: Any) -> KubeObject:
    decode = {
        "componentType": "worker",
        "subComponentType": "decode",
        "replicas": 2,
        "resources": {"limits": {"gpu": "1", "memory": "20Gi"}},
        "envs": [{"name": "A", "value": "b"}],
        "extraPodSpec": {"mainContainer": {"image": "engine:1", "args": ["--model", "m"]}},
    }
    services = {"Frontend": {"componentType": "frontend", "replicas": 1}, "Decode": decode}
    return object_of(ALPHA, name, namespace, spec={"backendFramework": "vllm", "services": services, **spec})


def beta(namespace: str, name: str = "chat", **spec: Any) -> KubeObject:
    resources = {"limits": {"nvidia.com/gpu": "1", "memory": "20Gi"}}
    main = {"name": "main", "image": "engine:1", "args": ["--model", "m"], "resources": resources}
    frontend = {"name": "Frontend", "type": "frontend", "replicas": 1}
    decode = {"name": "Decode", "type": "decode", "replicas": 2, "podTemplate": {"spec": {"containers": [main]}}}
    spec = {"backendFramework": "vllm", "components": [frontend, decode], **spec}
    return object_of(BETA, name, namespace, spec=spec)


@pytest.fixture
async def kubectl(programs: Programs, admission_plane: ControlPlane, admission_namespace: str) -> Kubectl:
    program, namespace = await programs.obtain("kubectl"), f"--namespace={admission_namespace}"
    return partial(command.kubectl, program, admission_plane.kubeconfig, namespace)


async def test_omitted_fields_get_defaults_in_the_written_version(admission_kube, admission_namespace):
    written = alpha(admission_namespace)
    del written["spec"]["services"]["Decode"]["replicas"]
    stored = await admission_kube.create(ALPHA, written)
    assert stored["spec"]["services"]["Decode"]["replicas"] == 1
    assert stored["metadata"]["annotations"] == {OPERATOR_ORIGIN_VERSION: "1.2.0"}
    other = beta(admission_namespace, "other")
    del other["spec"]["components"][1]["replicas"]
    stored = await admission_kube.create(BETA, other)
    assert [component["replicas"] for component in stored["spec"]["components"]] == [1, 1]


async def test_defaulted_replicas_of_roles_follow_the_node_count(admission_kube, admission_namespace):
    """By server-side apply and by a patch. These fields have no field manager."""

    def spread(nodes: int) -> dict[str, Any]:
        roles = [{"name": "leader"}, {"name": "worker"}]
        worker = {"name": "Worker", "type": "worker", "multinode": {"nodeCount": nodes}, "roles": roles}
        return object_of(
            BETA, "spread", admission_namespace, spec={"backendFramework": "sglang", "components": [worker]}
        )

    for nodes in (2, 3):
        stored = await admission_kube.apply(BETA, spread(nodes))
        assert [each["replicas"] for each in stored["spec"]["components"][0]["roles"]] == [1, nodes - 1]
    services = {"Worker": {"multinode": {"nodeCount": 4}}}
    key = ObjectKey(admission_namespace, "spread")
    stored = await admission_kube.merge_patch(ALPHA, key, {"spec": {"services": services}})
    assert [each["replicas"] for each in stored["spec"]["services"]["Worker"]["roles"]] == [1, 3]


async def test_kubectl_shows_refusals_and_warnings(kubectl, admission_namespace):
    written = alpha(admission_namespace)
    written["spec"]["services"]["Decode"]["dynamoNamespace"] = "mine"
    code, out, err = await kubectl("apply", "--filename=-", stdin=json.dumps(written))
    assert code == 0, err
    assert "Warning: nvidia.com/v1alpha1 DynamoGraphDeployment is deprecated" in err
    assert "Warning: spec.services.Decode.dynamoNamespace" in err
    written["spec"]["services"]["Decode"]["extraPodSpec"]["mainContainer"]["imag"] = "engine"
    code, out, err = await kubectl("apply", "--filename=-", stdin=json.dumps(written))
    assert code == 1, out
    assert "spec.services.Decode.extraPodSpec.mainContainer.imag: no such field; did you mean image?" in err


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: f"{file.parent.name}/{file.stem}")
async def test_examples_are_admitted_and_can_be_read_in_the_other_version(
    file, kubectl, admission_kube, admission_namespace
):
    code, _, err = await kubectl("apply", f"--filename={file}")
    assert code == 0, err
    for written in yaml.safe_load_all(file.read_text()):
        if written["kind"] != BETA.kind:
            continue
        key = ObjectKey(admission_namespace, written["metadata"]["name"])
        in_alpha, in_beta = await admission_kube.get(ALPHA, key), await admission_kube.get(BETA, key)
        assert set(in_alpha["spec"]["services"]) == {each["name"] for each in in_beta["spec"]["components"]}


@pytest.mark.parametrize("command", [("replace",), ("apply",), ("apply", "--server-side", "--force-conflicts")])
async def test_an_object_that_is_read_in_the_old_version_and_written_back_stays_unchanged(
    command, kubectl, admission_kube, admission_namespace
):
    key = ObjectKey(admission_namespace, "chat")
    before = await admission_kube.create(BETA, beta(admission_namespace))
    code, text, err = await kubectl("get", "dgd.v1alpha1.nvidia.com", "chat", "--output=yaml")
    assert code == 0, err
    code, _, err = await kubectl(*command, "--filename=-", stdin=text)
    assert code == 0, err
    after = await admission_kube.get(BETA, key)
    assert after["spec"] == before["spec"]
    object_annotations = after["metadata"].get("annotations", {})
    object_annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    assert object_annotations == before["metadata"].get("annotations", {})
    assert after["metadata"]["generation"] == before["metadata"]["generation"]
