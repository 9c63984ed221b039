"""Inference engines, one module each: a new one is a module here and an entry in `_BACKENDS`."""

from dynamo_shared.api.objects import MAIN

from dynamo_pod_builder.render.backends.base import EngineBackend
from dynamo_pod_builder.render.backends.detect import engine_of_graph, one_engine
from dynamo_pod_builder.render.backends.noop import Noop
from dynamo_pod_builder.render.backends.sglang import Sglang
from dynamo_pod_builder.render.backends.trtllm import TrtLlm
from dynamo_pod_builder.render.backends.vllm import Vllm
from dynamo_pod_builder.render.context import PodContext

__all__ = ["EngineBackend", "backend_named", "backend_of", "engine_of_graph", "one_engine"]

_BACKENDS: dict[str, EngineBackend] = {backend.name: backend for backend in (Noop(), Vllm(), Sglang(), TrtLlm())}


def backend_named(name: str) -> EngineBackend:
    """Backend of a word in `backendFramework`, the one without an engine for ""."""
    return _BACKENDS[name]


def backend_of(context: PodContext) -> EngineBackend:
    """Backend of a component: of a worker the one that its command starts or its spec names, of others none."""
    if not context.is_worker:
        return backend_named("")
    containers = (context.template.get("spec") or {}).get("containers") or ()
    main = next((each for each in containers if each["name"] == MAIN), None)
    return backend_named(one_engine(context.component, main, context.spec.backend_framework))
