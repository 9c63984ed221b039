"""Builders of objects for attacks; each object is valid unless the arguments say otherwise."""

from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource

from tests.building.objects import object_of

IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0"


def obj(resource: Resource, namespace: str, name: str, /, **fields: Any) -> KubeObject:
    """An object; `labels`, `annotations` and `metadata` go into the metadata, all other fields next to it."""
    return object_of(resource, name, namespace, **fields.pop("metadata", {}), **fields)


def pods(*others: KubeObject, **main: Any) -> KubeObject:
    """A pod template whose main container has these additional fields."""
    return {"spec": {"containers": [{"name": "main", "image": IMAGE, **main}, *others]}}


def component(name: str, type_: str = "worker", gpus: int = 0, **fields: Any) -> KubeObject:
    """A component of a graph; `template` replaces its pod template."""
    resources_ = {"resources": {"limits": {"nvidia.com/gpu": str(gpus)}}} if gpus else {}
    template = fields.pop("template", pods(image=fields.pop("image", IMAGE), **resources_))
    return {"name": name, "type": type_, "replicas": 1, "podTemplate": template, **fields}


def graph(namespace: str, name: str, *components: KubeObject, spec: Any = None, **fields: Any) -> KubeObject:
    """A graph; without components it has a frontend."""
    parts = list(components) or [component("Frontend", "frontend")]
    content = {"backendFramework": "vllm", "components": parts, **(spec or {})}
    return obj(resources.DYNAMO_GRAPH_DEPLOYMENTS, namespace, name, spec=content, **fields)


def disaggregated(namespace: str, name: str, **fields: Any) -> KubeObject:
    """A graph of a frontend and one worker of each role."""
    return graph(
        namespace,
        name,
        component("Frontend", "frontend"),
        component("Prefill", "prefill"),
        component("Decode", "decode"),
        **fields,
    )


def request(namespace: str, name: str, **fields: Any) -> KubeObject:
    """A request with rapid profiling, which starts at once."""
    spec = {
        "model": "Qwen/Qwen3-0.6B",
        "backend": "vllm",
        "image": IMAGE,
        "searchStrategy": "rapid",
        "hardware": {"gpuSku": "h200_sxm", "totalGpus": 8, "numGpusPerNode": 8},
        "workload": {"isl": 1000, "osl": 100},
        "sla": {"ttft": 1000, "itl": 50},
        "autoApply": False,
        **fields.pop("spec", {}),
    }
    return obj(resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, namespace, name, spec=spec, **fields)


def model(namespace: str, name: str, **spec: Any) -> KubeObject:
    """A DynamoModel with a base model."""
    return obj(resources.DYNAMO_MODELS, namespace, name, spec={"modelName": "m", "baseModelName": "b", **spec})


def checkpoint(namespace: str, name: str, **job: Any) -> KubeObject:
    """A checkpoint with this specification of its Job."""
    spec = {"identity": {"model": "m", "backendFramework": "vllm"}, "job": job}
    return obj(resources.DYNAMO_CHECKPOINTS, namespace, name, spec=spec)


def condition(type_: str = "Ready", *, since: str = "0001-01-01T00:00:00Z", **fields: Any) -> KubeObject:
    """A condition that is true."""
    return {"type": type_, "status": "True", "reason": "R", "message": "", "lastTransitionTime": since, **fields}


def lease(namespace: str, **spec: Any) -> KubeObject:
    """The Lease by which another platform claims a namespace."""
    content = {"holderIdentity": "user", "leaseDurationSeconds": 30, "renewTime": "2026-01-01T00:00:00.000000Z"}
    return obj(resources.LEASES, namespace, "dynamo-operator-namespace-scope", spec={**content, **spec})


def config_map(namespace: str, name: str, data: dict[str, str], **fields: Any) -> KubeObject:
    """A ConfigMap."""
    return obj(resources.CONFIG_MAPS, namespace, name, data=data, **fields)
