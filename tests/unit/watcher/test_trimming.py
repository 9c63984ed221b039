"""Pods in STATE: they have all that services read, and nothing that their users wrote for the node."""

from typing import Any

import yaml
from dynamo_shared.api.registry.annotations import (
    AUTO_CHECKPOINT,
    CHECKPOINT_DELETION_POLICY,
    CHECKPOINT_OWNER_UID,
    RESTART_AT,
    SNAPSHOT_COMPATIBILITY_HASH,
)
from dynamo_shared.api.resources import DAEMON_SETS, POD_SNAPSHOTS, SNAPSHOT_JOBS
from dynamo_watcher.resources import WATCHED
from dynamo_watcher.trimming import trimmed, trimmed_agent, trimmed_capture, trimmed_claim, trimmed_slice

SECRET = "hunter2"


CONTAINER = f"""
    name: main
    image: x
    env: [{{name: HF_TOKEN, value: {SECRET}}}]
    envFrom: [{{secretRef: {{name: {SECRET}}}}}]
    command: [sh, -c, {SECRET}]
    args: [--token={SECRET}]
    volumeMounts: [{{mountPath: {SECRET}}}]
    lifecycle: {{preStop: {{exec: {{command: [{SECRET}]}}}}}}
    startupProbe: {{httpGet: {{httpHeaders: [{{name: Authorization, value: {SECRET}}}]}}}}
    readinessProbe: {{exec: {{command: [{SECRET}]}}}}
    resources: {{limits: {{memory: 1Gi}}}}
"""
POD = f"""
    apiVersion: v1
    kind: Pod
    metadata:
      {{name: p, namespace: ns, uid: u, resourceVersion: '5', generation: 1, labels: {{a: b}},
      creationTimestamp: '2026-01-01T00:00:00Z', annotations: {{mine: {SECRET}, {RESTART_AT}: now}},
      ownerReferences: [{{kind: ReplicaSet}}], managedFields: [{{fieldsV1: {{{SECRET}: {{}}}}}}]}}
    spec:
      nodeName: n
      resourceClaims: [{{name: gpus, resourceClaimTemplateName: eight}}]
      volumes: [{{secret: {{secretName: {SECRET}}}}}]
      hostAliases: [{{hostnames: [{SECRET}]}}]
    status:
      phase: Running
      podIP: 10.0.0.1
      conditions: [{{type: Ready, status: 'True'}}]
      resourceClaimStatuses: [{{name: gpus, resourceClaimName: p-gpus-x7k2p}}]
      containerStatuses: [{{name: main, ready: true, restartCount: 1, volumeMounts: [{{mountPath: {SECRET}}}]}}]
"""


def pod() -> dict[str, Any]:
    made: dict[str, Any] = yaml.safe_load(POD)
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        made["spec"][kind] = [yaml.safe_load(CONTAINER)]
    return made


def test_variables_commands_and_arguments_are_removed() -> None:
    assert SECRET not in str(trimmed(pod()))


def test_fields_that_services_read_are_kept() -> None:
    result = trimmed(pod())
    assert result["metadata"]["annotations"] == {RESTART_AT: "now"}
    main = {"name": "main", "image": "x", "resources": {"limits": {"memory": "1Gi"}}}
    assert result["spec"]["containers"] == [{**main, "startupProbe": {}, "readinessProbe": {}}]
    assert result["spec"]["nodeName"] == "n"
    assert result["spec"]["resourceClaims"] == [{"name": "gpus", "resourceClaimTemplateName": "eight"}]
    assert result["status"]["containerStatuses"] == [{"name": "main", "ready": True, "restartCount": 1}]
    assert result["status"]["resourceClaimStatuses"] == [{"name": "gpus", "resourceClaimName": "p-gpus-x7k2p"}]
    assert result["metadata"]["labels"] == {"a": "b"}
    assert trimmed(result) == result


def test_a_nearly_empty_pod_is_trimmed() -> None:
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert trimmed(bare) == {**bare, "spec": {}, "status": {}}


def test_no_secret_is_watched() -> None:
    assert all(entry.resource.kind != "Secret" for entry in WATCHED)


def test_a_resource_slice_keeps_its_gpus() -> None:
    kept = {"productName": {"string": "H100"}, "type": {"string": "gpu"}}
    memory = {"memory": {"value": "80Gi"}}
    attributes = {**kept, "uuid": {"string": SECRET}}
    capacity = {**memory, "multiprocessors": {"value": "132"}}
    device = {"name": "gpu-0", "attributes": attributes, "capacity": capacity, "taints": [{"key": SECRET}]}
    spec = {"driver": "gpu.nvidia.com", "nodeName": "a", "pool": {"name": "a"}}
    whole = stored("ResourceSlice", {**spec, "devices": [device]})
    result = trimmed_slice(whole)
    assert SECRET not in str(result)
    assert result["spec"] == {**spec, "devices": [{"name": "gpu-0", "attributes": kept, "capacity": memory}]}


def stored(kind: str, spec: dict[str, Any], **status: Any) -> dict[str, Any]:
    metadata = {"name": "s", "uid": "u", "resourceVersion": "1", "annotations": {"mine": SECRET}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": spec, "status": status}


def test_a_resource_claim_keeps_its_numbers() -> None:
    kept = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}
    asked = {**kept, "selectors": [{"cel": {"expression": SECRET}}]}
    result = {"request": "gpus", "driver": "gpu.nvidia.com", "pool": "a", "device": "gpu-0"}

    def requests(each: dict[str, Any]) -> list[dict[str, Any]]:
        some = {"name": "any", "firstAvailable": [{"name": "some", **each, "count": 2}]}
        return [{"name": "gpus", "exactly": each}, some]

    opaque = {"opaque": {"driver": "gpu.nvidia.com", "parameters": {"token": SECRET}}}
    allocated = {"results": [{**result, "bindingConditions": [SECRET]}], "config": [{"opaque": SECRET}]}
    spec = {"devices": {"requests": requests(asked), "config": [opaque]}}
    whole = stored("ResourceClaim", spec, allocation={"devices": allocated}, devices=[{"data": SECRET}])
    trimmed_one = trimmed_claim(whole)
    assert SECRET not in str(trimmed_one)
    assert trimmed_one["spec"]["devices"]["requests"] == requests(kept)
    assert trimmed_one["status"] == {"allocation": {"devices": {"results": [result]}}}
    assert trimmed_claim(trimmed_one) == trimmed_one
    waiting = trimmed_claim({**whole, "status": {}})
    assert waiting["status"] == {}


def test_a_snapshot_agent_keeps_only_its_storage() -> None:
    mount, claim = {"name": "checkpoints", "mountPath": "/checkpoints"}, {"claimName": "claim"}
    containers = [
        {"name": "other", "env": SECRET},
        {
            "name": "agent",
            "env": SECRET,
            "volumeMounts": [{"name": "x", "mountPath": "/x"}, {**mount, "readOnly": True}],
        },
    ]
    volumes = [{"name": "x"}, {"name": "checkpoints", "persistentVolumeClaim": claim}]
    whole = stored("DaemonSet", {"template": {"spec": {"containers": containers, "volumes": volumes}}}, numberReady=1)
    whole["metadata"]["labels"] = {"a": SECRET}
    result = trimmed_agent(whole)
    assert SECRET not in str(result)
    assert result["spec"]["template"]["spec"] == {
        "containers": [{"name": "agent", "volumeMounts": [mount]}],
        "volumes": [{"name": "checkpoints", "persistentVolumeClaim": claim}],
    }
    assert trimmed_agent(result) == result
    odd = trimmed_agent({**whole, "spec": {"template": None}})
    assert odd["spec"]["template"]["spec"] == {"containers": [], "volumes": []}
    assert {each.trim for each in WATCHED if each.resource == DAEMON_SETS} == {trimmed_agent}


def test_a_snapshot_job_keeps_everything_but_its_pod() -> None:
    own = {AUTO_CHECKPOINT: "true", CHECKPOINT_DELETION_POLICY: "Delete", CHECKPOINT_OWNER_UID: "g"}
    template = {"metadata": {"annotations": {SNAPSHOT_COMPATIBILITY_HASH: "0"}}, "targetContainers": ["main"]}
    whole = stored("SnapshotJob", {"podTemplate": pod(), "podSnapshotTemplate": template}, podSnapshotName="s")
    whole["metadata"] |= {"labels": {"a": "b"}, "annotations": {**own, "last-applied-configuration": SECRET}}
    result = trimmed_capture(whole)
    assert SECRET not in str(result)
    assert result["metadata"]["annotations"] == own
    assert result["metadata"]["labels"] == {"a": "b"}
    assert result["spec"] == {"podSnapshotTemplate": template}
    assert result["status"] == {"podSnapshotName": "s"}
    assert trimmed_capture(result) == result
    source = {"source": {"podRef": {"name": "p", "containers": ["main"]}}}
    taken = stored("PodSnapshot", {**source, "other": SECRET}, boundSnapshotContentName="c")
    taken["metadata"]["annotations"] |= {SNAPSHOT_COMPATIBILITY_HASH: "0"}
    assert SECRET not in str(trimmed_capture(taken))
    assert trimmed_capture(taken)["spec"] == source
    assert trimmed_capture(taken)["metadata"]["annotations"] == {SNAPSHOT_COMPATIBILITY_HASH: "0"}
    odd = {**taken, "spec": None, "status": 5}
    assert trimmed_capture(odd)["spec"] == {}
    assert {each.trim for each in WATCHED if each.resource in (SNAPSHOT_JOBS, POD_SNAPSHOTS)} == {trimmed_capture}
