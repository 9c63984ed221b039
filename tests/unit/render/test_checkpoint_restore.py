"""Pods that start from a checkpoint, for every kind of workload, and combinations that are rejected."""

from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_pod_builder.render.checkpoint.target import Restore, Storage
from dynamo_pod_builder.render.config import CheckpointDefaults
from dynamo_pod_builder.starts import NO_CHECKPOINTS, NO_STARTS, starts_from_one, starts_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_graph

from .building import CONFIG, component, component_children, component_deployments, graph, graph_children

ON = replace(CONFIG, checkpoints=CheckpointDefaults(enabled=True))
RESTORE = Restore("0123456789abcdef", "3", Storage("claim", "/checkpoints"), "profiles/block-iouring.json")
FOREVER = 2147483647
VLLM = {"command": ["python3"], "args": ["-m", "dynamo.vllm"], "resources": {"limits": {"nvidia.com/gpu": "1"}}}


def starting(restore: Restore | None = RESTORE, config: render.RenderConfig = ON, **fields: Any) -> KubeObject:
    experimental = {"checkpoint": {"checkpointRef": "c"}, **fields.pop("experimental", {})}
    single = component(experimental=experimental, **fields)
    dcd = component_deployments(graph(single), config)["Worker"]
    observed = {"restore": restore} if restore is not None else {}
    (result,) = (each for each in component_children(dcd, config, **observed) if each["kind"] == "Deployment")
    template: KubeObject = result["spec"]["template"]
    return template


def test_pods_load_the_model_until_their_checkpoint_is_ready() -> None:
    template = starting(None, main=VLLM)
    assert template["spec"]["containers"][0]["command"] == VLLM["command"]
    assert "snapshot" not in str(template)
    assert "podinfo" not in str(template)


def test_a_disabled_checkpoint_counts_as_none() -> None:
    off = graph(component(experimental={"checkpoint": {"enabled": False, "checkpointRef": "c"}}))
    (spec,) = parse_graph(off).spec.components
    assert starts_of([("Worker", spec)], NO_CHECKPOINTS, ON) == NO_STARTS
    assert not starts_from_one(off["spec"]["components"][0])
    for config in (ON, CONFIG):
        names = [each["metadata"]["name"] for each in graph_children(off, config)]
        assert names == [each["metadata"]["name"] for each in graph_children(graph(component()), config)]


def test_an_enabled_checkpoint_is_used_like_a_named_one() -> None:
    there, on = (
        graph(component(experimental={"checkpoint": {"checkpointRef": "c", **switch}}))
        for switch in ({}, {"enabled": True})
    )
    started = [
        starts_of([("Worker", parse_graph(each).spec.components[0])], NO_CHECKPOINTS, ON) for each in (there, on)
    ]
    assert started[0] == started[1] != NO_STARTS
    assert all(starts_from_one(each["spec"]["components"][0]) for each in (there, on))


def test_the_container_waits_for_the_agent() -> None:
    template = starting(main=VLLM)
    main = template["spec"]["containers"][0]
    assert main["command"] == ["sleep", "infinity"]
    assert "args" not in main
    assert main["startupProbe"]["failureThreshold"] == FOREVER
    assert main["startupProbe"]["httpGet"] == {"path": "/live", "port": "system"}
    assert {"name": "DYN_SNAPSHOT_CONTROL_DIR", "value": "/snapshot-control"} in main["env"]
    mounts = {each["name"]: each["mountPath"] for each in main["volumeMounts"]}
    assert mounts["checkpoint-storage"] == "/checkpoints"
    assert mounts["podinfo"] == "/etc/podinfo"
    assert template["spec"]["securityContext"] == {
        "fsGroup": 1000,
        "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/block-iouring.json"},
    }


def test_the_agent_selects_the_pods() -> None:
    metadata = starting()["metadata"]
    assert metadata["labels"]["nvidia.com/snapshot-is-restore-target"] == "true"
    assert metadata["labels"]["nvidia.com/snapshot-checkpoint-id"] == "0123456789abcdef"
    results = {name: value for name, value in metadata["annotations"].items() if "snapshot" in name}
    assert results == {
        "nvidia.com/snapshot-artifact-version": "3",
        "nvidia.com/snapshot-target-containers": "main",
        "nvidia.com/snapshot-storage-type": "pvc",
        "nvidia.com/snapshot-storage-base-path": "/checkpoints",
    }


LIVE = {"httpGet": {"path": "/l", "port": 1}}
WELL = {"httpGet": {"path": "/r", "port": 1}}


@pytest.mark.parametrize(
    ("probes", "asked"),
    [
        ({"livenessProbe": LIVE, "readinessProbe": WELL}, LIVE),
        ({"readinessProbe": WELL}, WELL),
        ({}, {"exec": {"command": ["cat", "/snapshot-control/restore-complete"]}, "periodSeconds": 1}),
    ],
    ids=["liveness", "readiness", "none"],
)
def test_the_startup_probe_waits_as_long_as_the_restore_takes(probes: KubeObject, asked: KubeObject) -> None:
    # A component without a type has no probes of its own.
    main = starting(type_=None, main=probes)["spec"]["containers"][0]
    assert main["startupProbe"] == {**asked, "failureThreshold": FOREVER, "successThreshold": 1}


def test_other_containers_start_normally() -> None:
    sidecar = {"name": "log", "image": "log:1", "command": ["log"]}
    result = starting(sidecars=[sidecar])["spec"]["containers"][1]
    assert result["command"] == ["log"]


def test_both_engines_of_a_pod_start_from_it() -> None:
    config = replace(ON, device_claims=True, checkpoints=CheckpointDefaults(enabled=True, gpu_memory=True))
    template = starting(
        config=config,
        main=VLLM,
        experimental={"gpuMemoryService": {}, "failover": {}},
        annotations={KUBE_MODE: "container"},
    )
    assert template["metadata"]["annotations"]["nvidia.com/snapshot-target-containers"] == "engine-0,engine-1"
    engines = template["spec"]["containers"]
    assert [each["command"] for each in engines] == [["sleep", "infinity"]] * 2
    control = [mount for each in engines for mount in each["volumeMounts"] if mount["name"] == "snapshot-control"]
    assert [each["subPath"] for each in control] == ["engine-0", "engine-1"]


KUBE_MODE = "nvidia.com/dynamo-kube-discovery-mode"


def test_a_frontend_loads_no_model() -> None:
    obj = graph(component("Front", "frontend", experimental={"checkpoint": {"checkpointRef": "c"}}))
    with pytest.raises(render.RenderError, match=r"component Front: experimental.checkpoint: .* loads no model"):
        graph_children(obj, ON)


def test_pods_on_grove_start_from_it_too() -> None:
    config = replace(ON, grove=True)
    obj = graph(component(experimental={"checkpoint": {"checkpointRef": "c"}}), component("Other", "decode"))
    made = graph_children(obj, config, restores={"Worker": RESTORE})
    (result,) = (each for each in made if each["kind"] == "PodCliqueSet")
    first, second = result["spec"]["template"]["cliques"]
    assert first["labels"]["nvidia.com/snapshot-is-restore-target"] == "true"
    assert first["annotations"]["nvidia.com/snapshot-artifact-version"] == "3"
    assert first["spec"]["podSpec"]["containers"][0]["command"] == ["sleep", "infinity"]
    assert "nvidia.com/snapshot-is-restore-target" not in second["labels"]


def test_starting_from_a_checkpoint_does_not_change_the_worker_generation() -> None:
    obj = graph(component(experimental={"checkpoint": {"checkpointRef": "c"}}))
    cold, warm = graph_children(obj, ON), graph_children(obj, ON, restores={"Worker": RESTORE})
    assert cold == warm


GATED = {"checkpoint": {"checkpointRef": "c"}, "gpuMemoryService": {}}
BETWEEN = {"checkpoint": {"checkpointRef": "c"}, "gpuMemoryService": {"mode": "InterPod"}}
OPEN = CheckpointDefaults(enabled=True, gpu_memory=True)


@pytest.mark.parametrize(
    ("defaults", "fields", "message"),
    [
        (
            CheckpointDefaults(enabled=True),
            {"experimental": GATED},
            "does not include the memory of a GPU memory service",
        ),
        (OPEN, {"experimental": BETWEEN}, "the GPU memory would be in another pod"),
        (
            CheckpointDefaults(enabled=True),
            {"experimental": {"checkpoint": {"checkpointRef": "c"}}, "multinode": {"nodeCount": 2}},
            "not several nodes",
        ),
    ],
    ids=["the gate", "memory in another pod", "several nodes"],
)
def test_refusals(defaults: CheckpointDefaults, fields: KubeObject, message: str) -> None:
    config = replace(CONFIG, checkpoints=defaults, leader_worker_sets=True, device_claims=True, grove=True)
    with pytest.raises(render.RenderError, match=rf"component Worker: experimental.checkpoint: .*{message}"):
        graph_children(graph(component(main=VLLM, **fields)), config)
