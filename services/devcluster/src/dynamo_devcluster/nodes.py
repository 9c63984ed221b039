"""The nodes that KWOK simulates: H100 machines labelled like by the NVIDIA GPU operator and node feature discovery."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .errors import LocalClusterError
from .probe import LocalHttp

NODE_LABEL = ("type", "kwok")
_ZONES = ("a", "b", "c")


@dataclass(frozen=True)
class NodeShape:
    """The resources of each node, as Kubernetes quantities. `labels` are added to the labels of `node_manifest`."""

    gpus: int = 8
    cpu: str = "192"
    memory: str = "2000Gi"
    pods: int = 250
    labels: Mapping[str, str] = field(default_factory=dict)


def node_name(index: int) -> str:
    """Name of the node at `index`, from 0."""
    return f"kwok-node-{index}"


def node_manifest(index: int, shape: NodeShape, kubelet_version: str) -> dict[str, Any]:
    """The Node with its status. It has no taints, so pods need no tolerations."""
    name = node_name(index)
    capacity = {
        "cpu": shape.cpu,
        "memory": shape.memory,
        "ephemeral-storage": "4000Gi",
        "pods": str(shape.pods),
    }
    labels = {
        NODE_LABEL[0]: NODE_LABEL[1],
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": name,
        "node-role.kubernetes.io/worker": "",
        "node.kubernetes.io/instance-type": "kwok-gpu" if shape.gpus else "kwok",
        "topology.kubernetes.io/region": "local",
        "topology.kubernetes.io/zone": f"local-{_ZONES[index % len(_ZONES)]}",
    }
    if shape.gpus:
        capacity["nvidia.com/gpu"] = str(shape.gpus)
        labels |= _gpu_labels(shape)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels | dict(shape.labels),
            "annotations": {"kwok.x-k8s.io/node": "fake", "node.alpha.kubernetes.io/ttl": "0"},
        },
        "status": {
            "capacity": capacity,
            "allocatable": capacity,
            "addresses": [
                {"type": "InternalIP", "address": f"10.127.{index // 250}.{index % 250 + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {
                "architecture": "amd64",
                "operatingSystem": "linux",
                "kubeletVersion": kubelet_version,
                **dict.fromkeys(("containerRuntimeVersion", "kernelVersion", "osImage"), "kwok"),
                **dict.fromkeys(("kubeProxyVersion", "bootID", "machineID", "systemUUID"), ""),
            },
        },
    }


def _gpu_labels(shape: NodeShape) -> dict[str, str]:
    """As the GPU operator's feature discovery describes H100s; memory in MiB."""
    return {
        "feature.node.kubernetes.io/pci-10de.present": "true",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.count": str(shape.gpus),
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.compute.major": "9",
        "nvidia.com/gpu.compute.minor": "0",
        "nvidia.com/gpu.replicas": "1",
        "nvidia.com/gpu.sharing-strategy": "none",
        "nvidia.com/mig.capable": "true",
        "nvidia.com/gpu.deploy.device-plugin": "true",
        "nvidia.com/cuda.driver.major": "570",
        "nvidia.com/cuda.runtime.major": "12",
    }


async def create_nodes(http: LocalHttp, count: int, shape: NodeShape, kubelet_version: str) -> None:
    """Create missing nodes; existing nodes (of an earlier start on the same data) stay unchanged."""
    for index in range(count):
        manifest = node_manifest(index, shape, kubelet_version)
        status, body = await http.request("POST", "/api/v1/nodes", manifest)
        if status not in (201, 409):
            raise LocalClusterError(f"the API server refused node {node_name(index)}: {_reason(status, body)}")


def _reason(status: int, body: bytes) -> str:
    """The message of a refusal. One that the API server writes before it serves has only text."""
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return f"{status} {body[:200].decode('utf-8', 'replace').strip()}".rstrip()
