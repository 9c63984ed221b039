"""Every contract, with valid examples."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from dynamo_shared.api.contracts.autoscaling import Autoscaling
from dynamo_shared.api.contracts.deployment_config import DeploymentConfig
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.contracts.profiler import ProfilerConfig, ProfilingConfig
from dynamo_shared.api.contracts.scaling_policy import ScalingPolicy
from dynamo_shared.api.v1alpha1.request import DeploymentOverrides


@dataclass(frozen=True, slots=True)
class Contract:
    """`name` is the name of the field or variable; `place` is its location and format."""

    name: str
    model: type[BaseModel]
    place: str
    description: str
    examples: tuple[Mapping[str, Any], ...]


_SLA = {"isl": 3000, "osl": 150, "ttft": 200, "itl": 20}
_PLANNER = {
    "optimization_target": "sla",
    "mode": "disagg",
    "backend": "vllm",
    "ttft_ms": 500,
    "itl_ms": 50,
    "enable_throughput_scaling": True,
    "enable_load_scaling": True,
    "max_gpu_budget": 16,
    "min_endpoint": 1,
}
_SIMULATED = {
    "sla": _SLA,
    "hardware": {"numGpusPerNode": 8},
    "sweep": {"useAiConfigurator": True, "aicSystem": "h200_sxm"},
    "deployment": {
        "modelCache": {"pvcName": "model-cache", "modelPathInPvc": "qwen3-32b", "pvcMountPath": "/opt/model-cache"}
    },
}

CONTRACTS: tuple[Contract, ...] = (
    Contract(
        "profilingConfig",
        ProfilingConfig,
        "In v1alpha1 DynamoGraphDeploymentRequests as spec.profilingConfig.",
        "How a request is profiled.",
        (
            {"profilerImage": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1", "config": {"sla": _SLA}},
            {
                "profilerImage": "nvcr.io/nvidia/ai-dynamo/trtllm-runtime:1.1.1",
                "config": _SIMULATED,
                "configMapRef": {"name": "base-graph", "key": "disagg.yaml"},
                "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
                "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
            },
        ),
    ),
    Contract(
        "profilingConfig.config",
        ProfilerConfig,
        "In v1alpha1 DynamoGraphDeploymentRequests as spec.profilingConfig.config.",
        "Configuration of the profiler.",
        ({"sla": _SLA}, _SIMULATED, {"sla": _SLA, "engine": {"backend": "vllm"}, "planner": _PLANNER}),
    ),
    Contract(
        "deploymentOverrides",
        DeploymentOverrides,
        "In v1alpha1 DynamoGraphDeploymentRequests as spec.deploymentOverrides.",
        "Metadata and images of the generated graph.",
        (
            {"workersImage": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.1.1"},
            {"name": "qwen", "namespace": "serving", "labels": {"team": "chat"}, "annotations": {"owner": "chat"}},
        ),
    ),
    Contract(
        "features.planner",
        PlannerConfig,
        "In v1beta1 DynamoGraphDeploymentRequests as spec.features.planner; YAML or JSON for planner pods.",
        "Configuration of the planner; its presence adds a planner to the graph.",
        (
            {},
            _PLANNER,
            {
                "policy": "reference",
                "optimization_target": "load",
                "mode": "agg",
                "decode_scale_up_kv_rate": 80,
                "decode_scale_down_kv_rate": 40,
            },
            {"attainment": 0.99, "advisory": True},
        ),
    ),
    Contract(
        "dynamo-autoscaling",
        Autoscaling,
        "Annotation nvidia.com/dynamo-autoscaling of DynamoGraphDeployments, written as YAML or JSON.",
        "Autoscalers for the adapters of a graph.",
        (
            {"Decode": {"minReplicas": 1, "maxReplicas": 8}},
            {
                "Prefill": {
                    "minReplicas": 2,
                    "maxReplicas": 16,
                    "metrics": [
                        {
                            "type": "Pods",
                            "pods": {
                                "metric": {"name": "queued_prefill_tokens"},
                                "target": {"type": "AverageValue", "averageValue": "4000"},
                            },
                        }
                    ],
                    "behavior": {"scaleDown": {"stabilizationWindowSeconds": 600}},
                },
                "Decode": {
                    "minReplicas": 0,
                    "maxReplicas": 8,
                    "cooldownPeriod": 600,
                    "triggers": [
                        {
                            "type": "prometheus",
                            "metadata": {
                                "serverAddress": "http://prometheus.monitoring:9090",
                                "query": "sum(dynamo_frontend_queued_requests)",
                                "threshold": "5",
                            },
                        }
                    ],
                },
            },
        ),
    ),
    Contract(
        "scaling-policy",
        ScalingPolicy,
        "Annotation nvidia.com/scaling-policy of DynamoGraphDeployments, written as YAML or JSON.",
        "Limits for the size and speed of scale commands for the components of a graph.",
        (
            {"*": {"down": {"cooldown": "5m"}}},
            {
                "Decode": {
                    "min": 2,
                    "max": 8,
                    "up": {"step": 2, "cooldown": "30s"},
                    "down": {"cooldown": 300, "stabilization": "10m"},
                },
                "Prefill": {"min": 0},
            },
        ),
    ),
    Contract(
        "DYN_DEPLOYMENT_CONFIG",
        DeploymentConfig,
        "Variable of main containers, written as JSON or YAML.",
        "Configuration of a component of an older graph.",
        (
            {
                "Frontend": {"port": 8000},
                "VllmWorker": {"ServiceArgs": {"workers": 2, "resources": {"cpu": "10", "memory": "20Gi", "gpu": 1}}},
            },
            {
                "namespace": "serving-chat",
                "component": "VllmWorker",
                "endpoints": [{"name": "generate", "address": "tcp://10.0.0.7:9000"}],
                "routing": {"mode": "kv"},
            },
        ),
    ),
)
