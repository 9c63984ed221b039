"""vLLM."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.registry import env

from dynamo_pod_builder.render.backends.base import Backend
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.env import var

KubeObject = dict[str, Any]


class Vllm(Backend):
    """vLLM workers."""

    name = "vllm"
    compilation_cache_path = "/root/.cache/vllm"

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """Point vLLM at the compilation cache, unless the user did."""
        cache = context.spec.compilation_cache
        if cache is None or any(variable["name"] == env.VLLM_CACHE_ROOT for variable in container["env"]):
            return
        container["env"].append(var(env.VLLM_CACHE_ROOT, cache.mount_path or self.compilation_cache_path))
