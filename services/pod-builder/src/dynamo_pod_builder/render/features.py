"""What can be asked of a component but not be run here: refused by name, rather than half done."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.v1beta1 import BackendFramework, ComponentSpec, ComponentType

from dynamo_pod_builder.render.config import RenderConfig
from dynamo_pod_builder.render.errors import NotDeployable


def check_component(name: str, spec: ComponentSpec, *, multinode: bool) -> None:
    """NotDeployable for the first feature of a component that this platform cannot run.

    `multinode` says whether there is an orchestrator for replicas that span nodes.
    """
    if spec.multinode is not None and spec.multinode.node_count > 1 and not multinode:
        raise NotDeployable(
            name,
            f"no multinode orchestrator available for {spec.multinode.node_count} nodes a replica",
            "multinode",
            "install LeaderWorkerSet or Grove, or leave multinode out to run each replica on one node",
        )
    experimental = spec.experimental
    if experimental is None:
        return
    for path, feature, words in (
        ("gpuMemoryService", experimental.gpu_memory_service, "the GPU memory service"),
        ("failover", experimental.failover, "engine failover"),
        ("checkpoint", experimental.checkpoint, "starting from a checkpoint"),
    ):
        if feature is not None:
            raise NotDeployable(name, f"{words} is not available", f"experimental.{path}", "leave it out")


def check_picker(name: str, spec: ComponentSpec, config: RenderConfig) -> None:
    """NotDeployable for an endpoint picker without a gateway that would ask it."""
    if spec.type is ComponentType.EPP and not config.inference_pools:
        raise NotDeployable(
            name, "no InferencePool can be made for an endpoint picker", "type", "use a frontend instead"
        )


def needs_ssh_keys(child: dict[str, Any]) -> bool:
    """Whether the pods of a component deployment reach each other over ssh: TensorRT-LLM's on several nodes."""
    spec = child.get("spec", {})
    nodes = (spec.get("multinode") or {}).get("nodeCount", 1)
    return bool(nodes > 1 and spec.get("backendFramework") == BackendFramework.TRTLLM)
