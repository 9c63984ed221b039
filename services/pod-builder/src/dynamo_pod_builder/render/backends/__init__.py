"""Inference engines, one module each: a new one is a module here and an entry in `_BACKENDS`."""

from dynamo_shared.api.containers import main_container

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
    """Backend of a component: of a worker the one that its command starts or its spec names, of others none.

    A node that starts none itself, as one on which mpirun of the leader starts the engine, has the backend of those that serve.
    """
    if not context.is_worker:
        return backend_named("")
    named = context.spec.backend_framework
    engines = (
        one_engine(context.component, main_container(each), named)
        for each in (context.template, context.serving_template)
    )
    return backend_named(next(filter(None, engines), ""))
