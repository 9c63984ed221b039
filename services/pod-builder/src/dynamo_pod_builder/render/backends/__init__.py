"""Inference engines, one module each: to add one, add a module here and an entry in `_BACKENDS`."""

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
    """The backend for a value of `backendFramework`; "" is the one without an engine."""
    return _BACKENDS[name]


def backend_of(context: PodContext) -> EngineBackend:
    """Backend of a component: of a worker by its command or spec, of others the one without an engine.

    A node that starts no engine itself, for example because mpirun on the leader does, has the backend of the serving
    pods.
    """
    if not context.is_worker:
        return backend_named("")
    named = context.spec.backend_framework
    engines = (
        one_engine(context.component, main_container(each), named)
        for each in (context.template, context.serving_template)
    )
    return backend_named(next(filter(None, engines), ""))
