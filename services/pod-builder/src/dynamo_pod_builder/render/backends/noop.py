"""No known engine: frontends, planners, custom workers."""

from dynamo_shared.api.engines import CHOICE
from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.render.backends.base import EngineBackend
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError


class Noop(EngineBackend):
    """Leaves pods unchanged."""

    def update_container(self, container: KubeObject, context: PodContext) -> None:  # noqa: ARG002 - of the interface
        """Raise RenderError for a multi-node replica without its author's own commands, because its pods would not
        connect.
        """
        if context.placement.group is None or context.has_own_commands:
            return
        if context.is_worker:
            raise RenderError(
                context.component,
                "backendFramework",
                f"is not set and the command starts no known engine, so the platform cannot connect the "
                f"{context.placement.nodes} nodes of one replica",
                f"set backendFramework to {CHOICE}",
            )
        raise RenderError(
            context.component,
            "multinode",
            f"a component of type {context.type or 'none'} runs no engine that could use several nodes",
            "set type to worker, prefill or decode, or remove multinode",
        )
