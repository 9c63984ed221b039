"""Inference engines, one module each: a new one is a module here and an entry in `_BACKENDS`."""

from __future__ import annotations

from dynamo_pod_builder.render.backends.base import Backend
from dynamo_pod_builder.render.backends.detect import engine_of_graph, one_engine
from dynamo_pod_builder.render.backends.noop import Noop
from dynamo_pod_builder.render.backends.sglang import Sglang
from dynamo_pod_builder.render.backends.trtllm import TrtLlm
from dynamo_pod_builder.render.backends.vllm import Vllm

__all__ = ["Backend", "backend_named", "engine_of_graph", "one_engine"]

_BACKENDS: dict[str, Backend] = {backend.name: backend for backend in (Noop(), Vllm(), Sglang(), TrtLlm())}


def backend_named(name: str) -> Backend:
    """Backend of a word in `backendFramework`, the one without an engine for ""."""
    return _BACKENDS[name]
