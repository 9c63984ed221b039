"""Content of the golden messages: the data of each type, and the fields that differ in single events."""

from collections.abc import Mapping
from typing import Any

import msgspec
from dynamo_shared.wire.specifications.checkpoint import CheckpointData
from dynamo_shared.wire.specifications.deployment import ComponentCounts, ComponentDeploymentData, DeploymentData
from dynamo_shared.wire.specifications.discovery import AdapterData, DynamoModelData
from dynamo_shared.wire.specifications.image import ImageData
from dynamo_shared.wire.specifications.legacy import LegacyDeploymentData
from dynamo_shared.wire.specifications.planning import PlanAlternative, PlanData, RequestData
from dynamo_shared.wire.specifications.platform import CommandResult, ResyncData
from dynamo_shared.wire.specifications.scaling import ScaleData, ScaleTarget, ScalingAdapterData
from dynamo_shared.wire.specifications.scaling_decisions import BudgetFigures, ScaledComponent, ScalingDecision
from dynamo_shared.wire.specifications.workers import ModelCard, ServedModelData, WorkerData

NAMESPACE = "team-a"
NAME = "llama-3.1"
_DIGEST = f"sha256:{'c4' * 32}"

#: By type of the data.
DATA: dict[type[msgspec.Struct], msgspec.Struct] = {
    type(each): each
    for each in (
        DeploymentData(
            name=NAME,
            namespace=NAMESPACE,
            state="pending",
            reason="some_resources_not_ready",
            message="Decode: 1 of 2 ready",
            # Above 2^53: JSON preserves it only as a string.
            generation="9007199254740993",
            backend_framework="vllm",
            components={
                "Frontend": ComponentCounts(replicas=1, ready=1, updated=1, available=1),
                "Decode": ComponentCounts(replicas=2, ready=1, updated=2, available=1),
            },
        ),
        ComponentDeploymentData(
            name="decode",
            namespace="prod",
            reason="DeploymentReady",
            message="Deployment is ready",
            generation="2",
            backend_framework="vllm",
            replicas=ComponentCounts(replicas=2, ready=1, updated=2, available=1),
        ),
        CheckpointData(
            name="checkpoint-96429b2725761a09",
            namespace=NAMESPACE,
            generation="1",
            identity_hash="96429b2725761a09",
            model="meta-llama/Llama-2-7b-hf",
            backend_framework="vllm",
            job_name="checkpoint-job-96429b2725761a09-1",
            location="/checkpoints/96429b2725761a09/versions/1",
        ),
        ScalingAdapterData(
            name="llama-3.1-decode",
            namespace=NAMESPACE,
            graph_deployment=NAME,
            component="Decode",
            previous_replicas=2,
            replicas=5,
            writers=["kube-controller-manager"],
            generation="7",
        ),
        ScalingDecision(
            name=NAME,
            namespace=NAMESPACE,
            generation="7",
            reason="Paired",
            message="Prefill 3 -> 2; team-a/llama-3.1 Decode 3 -> 4",
            components=[
                ScaledComponent(
                    graph_deployment=NAME,
                    namespace=NAMESPACE,
                    component="Prefill",
                    sub_component_type="prefill",
                    current=3,
                    requested=2,
                    allowed=2,
                    gpus_per_replica=1,
                    adapter="llama-3.1-prefill",
                ),
                ScaledComponent(
                    graph_deployment=NAME,
                    namespace=NAMESPACE,
                    component="Decode",
                    sub_component_type="decode",
                    current=3,
                    requested=4,
                    allowed=4,
                    gpus_per_replica=1,
                    adapter="llama-3.1-decode",
                ),
            ],
            budgets=[BudgetFigures(name="team-a", min_gpus=6, max_gpus=6, before=6, after=6, tolerance=1)],
            requester="planner",
            request_reason="prefill is idle",
            command="6f1c",
        ),
        DynamoModelData(
            name="support-lora",
            namespace="prod",
            model_name="customer-support-v1",
            base_model_name="Qwen/Qwen3-0.6B",
            model_type="lora",
            ready_endpoints=2,
            total_endpoints=2,
            reason="AllEndpointsReady",
            message="2 of 2 workers have the adapter loaded",
            generation="1",
        ),
        AdapterData(
            name="support-lora",
            namespace="prod",
            model_name="customer-support-v1",
            base_model_name="Qwen/Qwen3-0.6B",
            pod="disagg-decode-7d9c5b6f4-x2x7k",
            pod_uid="7b0c9a52-3f0e-4f6e-9a38-0d2f5f0c8a11",
            address="http://10.0.0.7:9090",
        ),
        WorkerData(
            name="team-a-llama-3-1/backend/53da1fddc446718",
            namespace=NAMESPACE,
            # Above 2^53: JSON preserves it only as a string.
            instance_id="377636055463257880",
            dynamo_namespace="team-a-llama-3-1",
            component="backend",
            endpoints=["generate"],
            transport="tcp",
            address="10.0.0.7:9999/53da1fddc446718/team-a-llama-3-1/backend/generate",
            role="decode",
            source="etcd",
            graph_deployment="llama-3-1",
            graph_component="Decode",
            pod="llama-3-1-decode-7d9c5b6f4-x2x7k",
            pod_uid="7b0c9a52-3f0e-4f6e-9a38-0d2f5f0c8a11",
            device_type="cuda",
            models=[
                ModelCard(
                    name="Qwen/Qwen3-0.6B",
                    worker_type="decode",
                    model_type="Chat | Completions",
                    model_input="Tokens",
                    needs=["prefill"],
                    context_length=40960,
                    kv_cache_block_size=16,
                    total_kv_blocks=24576,
                    max_num_seqs=256,
                    max_num_batched_tokens=8192,
                    data_parallel_size=1,
                )
            ],
        ),
        ServedModelData(
            name="team-a-llama-3-1/Qwen/Qwen3-0.6B",
            namespace=NAMESPACE,
            model="Qwen/Qwen3-0.6B",
            dynamo_namespace="team-a-llama-3-1",
            graph_deployment="llama-3-1",
            available=True,
            workers={"prefill": 1, "decode": 2},
            model_type="Chat | Completions",
            context_length=40960,
        ),
        ImageData(
            name="frontend--jh2o6dqzpsgfued4",
            namespace="prod",
            bento_tag="frontend:jh2o6dqzpsgfued4",
            generation="1",
            image="registry.example.com/yatai-bentos:yatai.frontend.jh2o6dqzpsgfued4",
            archive_digest=f"sha256:{'1f' * 32}",
            job="dynamo-builds/dynamo-build-96429b2725761a09",
        ),
        LegacyDeploymentData(
            name="disagg",
            namespace="prod",
            artifact="frontend:jh2o6dqzpsgfued4",
            reason="ImageFailed",
            message="the image of frontend:jh2o6dqzpsgfued4 is not built: DynamoNimRequest frontend--jh2o6dqzpsgfued4 reports "
            "ArchiveNotFound: dynamo-store has no archive frontend:jh2o6dqzpsgfued4",
            generation="1",
        ),
        RequestData(
            name="llama",
            namespace=NAMESPACE,
            phase="Profiling",
            profiling_phase="SelectingConfig",
            reason="SelectingConfig",
            message="comparing 64 deployments",
            generation="1",
            model="meta-llama/Meta-Llama-3.1-70B",
            backend="auto",
            figures={"gpus": 16.0, "ttft": 429.5, "itl": 15.84},
        ),
        PlanData(
            graph_deployment=NAME,
            namespace=NAMESPACE,
            policy="adaptive",
            reason="scale_up",
            message="36.5 requests/s are predicted in 120 s: 3 prefill workers hold the time to first token",
            replicas={"prefill": 3, "decode": 2},
            current={"prefill": 2, "decode": 2},
            inputs={"requestsPerSecond": 31.5, "isl": 3000.0},
            missing={"forward_passes": "no_forward_passes"},
            predictions={"requestsPerSecond": 36.5},
            alternatives=[PlanAlternative(replicas={"prefill": 2}, figures={"ttftMs": 950.5}, reason="ttft_missed")],
            command="6f1c",
        ),
        ResyncData(
            reason="STATE was lost and has been published again",
            resources=["dynamographdeployments.nvidia.com", "deployments.apps"],
        ),
        CommandResult(
            service="scaler", verb="scale", reason="NotFound", message="there is no such graph", deliveries=1
        ),
        ScaleData(
            graph_deployment=NAME,
            targets=[
                ScaleTarget(component="Decode", replicas=3),
                ScaleTarget(sub_component_type="prefill", replicas=2),
            ],
            reason="load",
            requester="planner",
            expected_generation="9007199254740993",
        ),
    )
}

#: Fields of the data that differ in one event, by family and verb.
CHANGED: Mapping[str, Mapping[str, Any]] = {
    "deployment.ready": {"state": "successful", "reason": "all_resources_ready", "message": "All components are ready"},
    "deployment.failed": {
        "state": "failed",
        "reason": "InvalidPodTemplate",
        "message": "Decode: spec.containers[0].image: Required value",
    },
    "component.progressing": {
        "reason": "ImagePullBackOff",
        "message": "pod decode-6d4b: container main cannot pull its image",
    },
    "component.failed": {"reason": "RefusedByApiServer", "message": "403 Forbidden: exceeded quota"},
    "checkpoint.creating": {
        "phase": "Creating",
        "reason": "JobCreated",
        "message": "Job checkpoint-job-96429b2725761a09-1 loads the engine",
    },
    "checkpoint.ready": {"phase": "Ready", "reason": "JobSucceeded", "message": "pods can start from it"},
    "checkpoint.failed": {
        "phase": "Failed",
        "reason": "JobFailed",
        "message": "DeadlineExceeded: Job was active longer than specified deadline",
    },
    "scaling.scaled": {
        "reason": "Scaled",
        "message": "Scaled component Decode from 2 to 5 replicas, as kube-controller-manager asked",
    },
    "scaling.conflict": {
        "reason": "GraphChanged",
        "message": "kubectl-edit set 2 replicas in the graph, kube-controller-manager 5 in the adapter: the adapter's number "
        "counts",
        "writers": ["kube-controller-manager", "kubectl-edit"],
    },
    "scaling.failed": {
        "reason": "UpdateFailed",
        "message": "the graph could not be given 5 replicas of Decode: admission refused",
    },
    "model.gone": {"available": False, "missing": ["prefill"], "workers": {"decode": 2}},
    "image.building": {
        "phase": "Building",
        "reason": "Building",
        "message": "Job dynamo-build-96429b2725761a09 in namespace dynamo-builds builds the image",
    },
    "image.ready": {
        "phase": "Ready",
        "reason": "Built",
        "message": f"the image is pushed, as {_DIGEST}",
        "digest": _DIGEST,
        "duration_seconds": 94,
    },
    "image.failed": {
        "phase": "Failed",
        "reason": "ArchiveNotFound",
        "message": "dynamo-store has no archive frontend:jh2o6dqzpsgfued4: upload it, or correct spec.bentoTag",
    },
}
