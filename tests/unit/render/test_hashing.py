"""The worker hash changes if and only if the pods of workers would."""

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_graph
from hypothesis import given
from hypothesis import strategies as st

from .building import CONFIG, component, component_deployments, graph


def hash_of(obj: KubeObject, config: render.RenderConfig = CONFIG) -> str:
    return render.worker_hash(parse_graph(obj), config)


def sample() -> KubeObject:
    env = [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]
    ports = [{"name": "x", "containerPort": 1}, {"name": "y", "containerPort": 2}]
    volume_mounts = [{"name": "v", "mountPath": "/v"}, {"name": "w", "mountPath": "/w"}]
    main = {"command": ["python3", "-m", "dynamo.vllm"], "env": env, "ports": ports, "volumeMounts": volume_mounts}
    volumes = [{"name": "v", "emptyDir": {}}, {"name": "w", "emptyDir": {}}]
    return graph(
        component("Frontend", "frontend", replicas=1),
        component("Decode", "decode", replicas=2, main=main, pod={"volumes": volumes}),
        component("Prefill", "prefill", replicas=1, main=main),
    )


def part(obj: KubeObject, name: str) -> KubeObject:
    result: KubeObject = next(each for each in obj["spec"]["components"] if each["name"] == name)
    return result


def container(obj: KubeObject, name: str) -> KubeObject:
    result: KubeObject = part(obj, name)["podTemplate"]["spec"]["containers"][0]
    return result


def shuffled(value: Any, rng: random.Random) -> Any:
    """The same JSON object with another order of its keys."""
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: shuffled(value[key], rng) for key in keys}
    return [shuffled(each, rng) for each in value] if isinstance(value, list) else value


RACK = {"pack": {"required": "rack"}}
CHANGES_NOTHING = {
    "replicas": lambda obj: part(obj, "Decode").update(replicas=7),
    "no replicas": lambda obj: part(obj, "Decode").pop("replicas"),
    "replicas that start together": lambda obj: part(obj, "Decode").update(minAvailable=2),
    "the same in the words of Grove": lambda obj: part(obj, "Decode").update(
        providerOverride={"apiVersion": "grove.io/v1alpha1", "value": {"spec": {"minAvailable": 2}}}
    ),
    "constraint of a component in the words of Grove": lambda obj: part(obj, "Decode").update(
        providerOverride={"apiVersion": "grove.io/v1alpha1", "value": {"topologyConstraint": RACK}}
    ),
    "constraint of the graph in the words of Grove": lambda obj: obj["spec"].update(
        providerOverride={
            "apiVersion": "grove.io/v1alpha1",
            "value": {"spec": {"template": {"topologyConstraint": RACK}}},
        }
    ),
    "no policy for KV caches": lambda obj: obj["spec"].update(experimental={}),
    "scaling group": lambda obj: part(obj, "Decode").update(experimental={"grove": {"forceScalingGroup": True}}),
    "checkpoint that is off": lambda obj: part(obj, "Decode").update(
        experimental={"checkpoint": {"enabled": False, "checkpointRef": "c"}}
    ),
    "scaling adapter": lambda obj: part(obj, "Decode").update(scalingAdapter={}),
    "frontend image": lambda obj: container(obj, "Frontend").update(image="other"),
    "frontend gone": lambda obj: obj["spec"]["components"].pop(0),
    "order of components": lambda obj: obj["spec"]["components"].reverse(),
    "order of variables": lambda obj: container(obj, "Decode")["env"].reverse(),
    "order of ports": lambda obj: container(obj, "Decode")["ports"].reverse(),
    "order of mounts": lambda obj: container(obj, "Decode")["volumeMounts"].reverse(),
    "order of volumes": lambda obj: part(obj, "Decode")["podTemplate"]["spec"]["volumes"].reverse(),
    "protocol written out": lambda obj: container(obj, "Decode")["ports"][0].update(protocol="TCP"),
    "origin": lambda obj: obj["metadata"]["annotations"].update({"nvidia.com/dynamo-operator-origin-version": "0.9.0"}),
    "version of the runtime that its pods do not differ by": lambda obj: part(obj, "Decode").update(
        runtimeVersionOverride="1.4.2"
    ),
    "roles": lambda obj: part(obj, "Decode").update(roles=[{"name": "leader"}, {"name": "worker", "replicas": 1}]),
    "unrelated annotation": lambda obj: obj["metadata"]["annotations"].update({"x": "y"}),
    "labels of the graph": lambda obj: obj["metadata"].update(labels={"x": "y"}),
}
CHANGES_ALL = {
    "version of the runtime": lambda obj: part(obj, "Decode").update(runtimeVersionOverride="1.5.0"),
    "policy for KV caches": lambda obj: obj["spec"].update(
        experimental={"kvTransferPolicy": {"labelKey": "topology.kubernetes.io/zone", "domain": "zone"}}
    ),
    "priority": lambda obj: obj["spec"].update(priorityClassName="high"),
    "image": lambda obj: container(obj, "Prefill").update(image="other"),
    "argument": lambda obj: container(obj, "Prefill").update(args=["--x"]),
    "variable of the graph": lambda obj: obj["spec"].update(env=[{"name": "G", "value": "1"}]),
    "label of the pods": lambda obj: obj["spec"].update(labels={"team": "a"}),
    "discovery mode": lambda obj: obj["metadata"]["annotations"].update(
        {"nvidia.com/dynamo-kube-discovery-mode": "container"}
    ),
    "type": lambda obj: part(obj, "Prefill").update(type="worker"),
    "shared memory": lambda obj: part(obj, "Prefill").update(sharedMemorySize="1Gi"),
    "another worker": lambda obj: obj["spec"]["components"].append(component("More", "worker")),
    "order of arguments": lambda obj: container(obj, "Decode")["command"].reverse(),
}


def test_fields_of_a_later_runtime_that_few_pods_have_do_not_change_other_hashes() -> None:
    """An upgrade of the platform, which learns the features of a runtime version, does not replace existing workers."""
    one, other = sample(), sample()
    part(one, "Decode").update(runtimeVersionOverride="1.5.0")
    part(other, "Decode").update(runtimeVersionOverride="1.6.1")
    assert hash_of(one) == hash_of(other)


def test_checkpoint_fields_other_than_its_name_do_not_change_it() -> None:
    plain, more = sample(), sample()
    for obj, policies in (
        (plain, {}),
        (
            more,
            {"enabled": True, "startupPolicy": "Immediate", "deletionPolicy": "Delete", "targetContainerName": "main"},
        ),
    ):
        part(obj, "Decode")["experimental"] = {"checkpoint": {"checkpointRef": "c", **policies}}
    config = replace(CONFIG, checkpoints=render.CheckpointDefaults(enabled=True))
    assert hash_of(plain, config) == hash_of(more, config) != hash_of(sample(), config)


@pytest.mark.parametrize("change", CHANGES_NOTHING.values(), ids=CHANGES_NOTHING)
def test_changes_that_do_not_change_it(change: Any) -> None:
    obj = sample()
    before = hash_of(obj)
    change(obj)
    assert hash_of(obj) == before


@pytest.mark.parametrize("change", CHANGES_ALL.values(), ids=CHANGES_ALL)
def test_changes_that_change_it(change: Any) -> None:
    obj = sample()
    before = hash_of(obj)
    change(obj)
    assert hash_of(obj) != before


@given(st.randoms(use_true_random=False))
def test_order_of_keys_does_not_change_it(rng: random.Random) -> None:
    assert hash_of(shuffled(sample(), rng)) == hash_of(sample())


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_different_images_have_different_hashes(one: str, other: str) -> None:
    first, second = sample(), sample()
    container(first, "Decode")["image"] = one
    container(second, "Decode")["image"] = other
    assert (hash_of(first) == hash_of(second)) == (one == other)


def test_order_of_init_containers_and_later_duplicates_matter() -> None:
    obj = sample()
    part(obj, "Decode")["podTemplate"]["spec"]["initContainers"] = [
        {"name": "b", "image": "b"},
        {"name": "a", "image": "a"},
    ]
    reordered = copy.deepcopy(obj)
    part(reordered, "Decode")["podTemplate"]["spec"]["initContainers"].reverse()
    assert hash_of(obj) != hash_of(reordered)
    twice, swapped = sample(), sample()
    container(twice, "Decode")["env"] = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    container(swapped, "Decode")["env"] = [{"name": "A", "value": "2"}, {"name": "A", "value": "1"}]
    assert hash_of(twice) != hash_of(swapped)


def test_an_upgrade_of_the_platform_changes_no_hash() -> None:
    newer = render.RenderConfig(planner_cluster_role="planner-role", operator_version="9.9.9")
    assert hash_of(sample(), newer) == hash_of(sample())


def test_only_names_and_labels_of_workers_contain_it() -> None:
    digest = hash_of(sample())
    assert len(digest) == 8
    result = component_deployments(sample())
    for name in ("Decode", "Prefill"):
        assert result[name]["metadata"]["name"] == f"graph-{name.lower()}-{digest}"
        assert result[name]["metadata"]["labels"]["nvidia.com/dynamo-worker-hash"] == digest
        assert result[name]["spec"]["podTemplate"]["metadata"]["labels"]["nvidia.com/dynamo-worker-hash"] == digest
    assert result["Frontend"]["metadata"]["name"] == "graph-frontend"
    assert digest not in str(result["Frontend"])


def test_a_graph_without_workers_has_none() -> None:
    assert hash_of(graph(component("Frontend", "frontend"))) == ""
