"""TensorRT-LLM. On a single node it needs nothing of its own."""

from __future__ import annotations

from dynamo_pod_builder.render.backends.base import Backend


class TrtLlm(Backend):
    """TensorRT-LLM workers."""

    name = "trtllm"
