"""Request bodies of the API server to admission: reviews of a v1alpha1 graph of 25 components, about 21 KB of JSON."""

from collections.abc import Callable
from typing import Any

import msgspec
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

COMPONENTS = 25
IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0"
ALPHA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")
BETA = DYNAMO_GRAPH_DEPLOYMENTS
_UID = "00000000-0000-0000-0000-000000000000"
#: Namespaces of the reviews: admission checks large objects of one namespace one after the other.
NAMESPACES = 20
_NAMESPACE = "bench-00"


def graph(namespace: str = _NAMESPACE) -> dict[str, Any]:
    """A frontend and 24 workers with typical fields: resources, variables, probes, volumes, shared memory."""
    services = {"Frontend": _frontend()}
    for number in range(1, COMPONENTS):
        role = "prefill" if number % 2 else "decode"
        services[f"{role.capitalize()}Worker{number:02}"] = _worker(role)
    return {
        **ALPHA.type_meta,
        "metadata": {"name": "bench", "namespace": namespace, "labels": {"team": "serving"}},
        "spec": {
            "backendFramework": "vllm",
            "envs": [{"name": "HF_HOME", "value": "/models"}, {"name": "DYN_LOG", "value": "info"}],
            "pvcs": [{"name": "models"}],
            "services": services,
        },
    }


def admission(operation: str = "CREATE") -> Callable[[int], bytes]:
    """AdmissionReviews of the graph, each with its own uid, of several namespaces."""
    request = {
        "uid": _UID,
        "kind": {"group": "nvidia.com", "version": "v1alpha1", "kind": ALPHA.kind},
        "resource": {"group": "nvidia.com", "version": "v1alpha1", "resource": ALPHA.plural},
        "requestKind": {"group": "nvidia.com", "version": "v1alpha1", "kind": ALPHA.kind},
        "requestResource": {"group": "nvidia.com", "version": "v1alpha1", "resource": ALPHA.plural},
        "name": "bench",
        "namespace": _NAMESPACE,
        "operation": operation,
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "object": graph(),
        "oldObject": None if operation == "CREATE" else graph(),
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldValidation": "Strict"},
    }
    return _numbered({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


def conversion() -> Callable[[int], bytes]:
    """ConversionReviews of the graph to v1beta1, each with its own uid, of several namespaces."""
    request = {"uid": _UID, "desiredAPIVersion": BETA.api_version, "objects": [graph()]}
    return _numbered({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request})


def _numbered(review: dict[str, Any]) -> Callable[[int], bytes]:
    body, uid, namespace = msgspec.json.encode(review), _UID.encode(), _NAMESPACE.encode()
    if uid not in body or namespace not in body:
        raise ValueError("the review has no uid or no namespace")

    def numbered(number: int) -> bytes:
        own = body.replace(uid, b"00000000-0000-0000-0000-%012d" % number)
        return own.replace(namespace, b"bench-%02d" % (number % NAMESPACES))

    return numbered


def _frontend() -> dict[str, Any]:
    return {
        "componentType": "frontend",
        "replicas": 2,
        "resources": {"requests": {"cpu": "2", "memory": "8Gi"}, "limits": {"cpu": "4", "memory": "16Gi"}},
        "envs": [{"name": "DYN_ROUTER_MODE", "value": "kv"}],
        "extraPodSpec": {"mainContainer": {"image": IMAGE, "args": ["--router-mode", "kv"]}},
    }


def _worker(role: str) -> dict[str, Any]:
    return {
        "componentType": "worker",
        "subComponentType": role,
        "replicas": 4,
        "envFromSecret": "hf-token",
        "resources": {"requests": {"cpu": "8", "memory": "80Gi"}, "limits": {"gpu": "2", "memory": "120Gi"}},
        "envs": [
            {"name": "DYN_SYSTEM_ENABLED", "value": "true"},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "sharedMemory": {"size": "16Gi"},
        "volumeMounts": [{"name": "models", "mountPoint": "/models"}],
        "readinessProbe": {"httpGet": {"path": "/health", "port": 9090}, "periodSeconds": 10, "failureThreshold": 60},
        "extraPodSpec": {
            "mainContainer": {
                "image": IMAGE,
                "workingDir": "/workspace",
                "command": ["python3", "-m", "dynamo.vllm"],
                "args": ["--model", "Qwen/Qwen3-32B", "--disaggregation-mode", role, "--tensor-parallel-size", "2"],
            },
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }
