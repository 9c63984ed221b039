"""Pods in STATE: what services read is there, and nothing that their users wrote for the node."""

from typing import Any

from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_watcher.resources import WATCHED
from dynamo_watcher.trimming import trimmed, trimmed_claim, trimmed_slice

SECRET = "hunter2"


def pod() -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "x",
        "env": [{"name": "HF_TOKEN", "value": SECRET}],
        "envFrom": [{"secretRef": {"name": SECRET}}],
        "command": ["sh", "-c", SECRET],
        "args": [f"--token={SECRET}"],
        "volumeMounts": [{"mountPath": SECRET}],
        "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
        "startupProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
        "readinessProbe": {"exec": {"command": [SECRET]}},
        "resources": {"limits": {"memory": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "u",
            "resourceVersion": "5",
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"a": "b"},
            "annotations": {"mine": SECRET, RESTART_AT: "now"},
            "ownerReferences": [{"kind": "ReplicaSet"}],
            "managedFields": [{"fieldsV1": {SECRET: {}}}],
        },
        "spec": {
            "nodeName": "n",
            "containers": [container],
            "initContainers": [container],
            "ephemeralContainers": [container],
            "volumes": [{"secret": {"secretName": SECRET}}],
            "hostAliases": [{"hostnames": [SECRET]}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
            "resourceClaimStatuses": [{"name": "gpus", "resourceClaimName": "p-gpus-x7k2p"}],
            "containerStatuses": [
                {"name": "main", "ready": True, "restartCount": 1, "volumeMounts": [{"mountPath": SECRET}]}
            ],
        },
    }


def test_nothing_of_a_containers_environment_leaves() -> None:
    assert SECRET not in str(trimmed(pod()))


def test_what_services_read_stays() -> None:
    result = trimmed(pod())
    assert result["metadata"]["annotations"] == {RESTART_AT: "now"}
    assert result["spec"]["containers"] == [
        {
            "name": "main",
            "image": "x",
            "resources": {"limits": {"memory": "1Gi"}},
            "startupProbe": {},
            "readinessProbe": {},
        }
    ]
    assert result["spec"]["nodeName"] == "n"
    assert result["status"]["containerStatuses"] == [{"name": "main", "ready": True, "restartCount": 1}]
    assert result["status"]["resourceClaimStatuses"] == [{"name": "gpus", "resourceClaimName": "p-gpus-x7k2p"}]
    assert result["metadata"]["labels"] == {"a": "b"}
    assert trimmed(result) == result


def test_a_pod_that_says_little() -> None:
    bare = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert trimmed(bare) == {**bare, "spec": {}, "status": {}}


def test_no_secret_is_watched() -> None:
    assert all(entry.resource.kind != "Secret" for entry in WATCHED)


def test_of_a_resource_slice_the_gpus_are_there() -> None:
    device = {
        "name": "gpu-0",
        "attributes": {"productName": {"string": "H100"}, "type": {"string": "gpu"}, "uuid": {"string": SECRET}},
        "capacity": {"memory": {"value": "80Gi"}, "multiprocessors": {"value": "132"}},
        "taints": [{"key": SECRET}],
    }
    whole = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "s", "uid": "u", "resourceVersion": "1", "annotations": {"mine": SECRET}},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "a", "pool": {"name": "a"}, "devices": [device]},
    }
    kept = trimmed_slice(whole)
    assert SECRET not in str(kept)
    assert kept["spec"] == {
        "driver": "gpu.nvidia.com",
        "nodeName": "a",
        "pool": {"name": "a"},
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {"productName": {"string": "H100"}, "type": {"string": "gpu"}},
                "capacity": {"memory": {"value": "80Gi"}},
            }
        ],
    }


def test_of_a_resource_claim_the_numbers_are_there() -> None:
    asked = {
        "deviceClassName": "gpu.nvidia.com",
        "allocationMode": "All",
        "selectors": [{"cel": {"expression": SECRET}}],
    }
    kept = {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All"}
    result = {"request": "gpus", "driver": "gpu.nvidia.com", "pool": "a", "device": "gpu-0"}
    whole = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "uid": "u", "resourceVersion": "1", "annotations": {"mine": SECRET}},
        "spec": {
            "devices": {
                "requests": [
                    {"name": "gpus", "exactly": asked},
                    {"name": "any", "firstAvailable": [{"name": "some", **asked, "count": 2}]},
                ],
                "config": [{"opaque": {"driver": "gpu.nvidia.com", "parameters": {"token": SECRET}}}],
            }
        },
        "status": {
            "allocation": {
                "devices": {"results": [{**result, "bindingConditions": [SECRET]}], "config": [{"opaque": SECRET}]}
            },
            "devices": [{"data": SECRET}],
        },
    }
    trimmed_one = trimmed_claim(whole)
    assert SECRET not in str(trimmed_one)
    assert trimmed_one["spec"]["devices"]["requests"] == [
        {"name": "gpus", "exactly": kept},
        {"name": "any", "firstAvailable": [{"name": "some", **kept, "count": 2}]},
    ]
    assert trimmed_one["status"] == {"allocation": {"devices": {"results": [result]}}}
    assert trimmed_claim(trimmed_one) == trimmed_one
    waiting = trimmed_claim({**whole, "status": {}})
    assert waiting["status"] == {}
