"""Frontend: the OpenAI-compatible API, as a separate component or as a sidecar of an engine."""

from dynamo_shared.api.engines import frontend
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.runtime_version import features_of
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod import probes
from dynamo_pod_builder.render.pod.containers import common
from dynamo_pod_builder.render.pod.env import var

pod = common.pod


def container(context: PodContext, name: str = MAIN) -> KubeObject:
    """Container of a frontend: the main one, or a sidecar."""
    features = features_of(context.spec.runtime_version_override)
    return {
        "name": name,
        "command": list(frontend.COMMAND),
        "args": list(frontend.ARGS),
        "ports": [ports.HTTP.container_port()],
        **(probes.STARTING_FRONTEND if features.frontend_startup else probes.FRONTEND),
        "env": [
            *common.environment(context, ComponentType.FRONTEND.value, name),
            var(env.DYNAMO_PORT, str(ports.HTTP.number)),
            var(env.DYN_HTTP_PORT, str(ports.HTTP.number)),
            *common.namespaces(context),
        ],
    }
