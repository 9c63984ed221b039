"""Worker, prefill, decode: an inference engine."""

from dynamo_shared.api.objects import RUNTIME, KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.runtime_version import RuntimeFeatures, features_of

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod import probes
from dynamo_pod_builder.render.pod.containers import common
from dynamo_pod_builder.render.pod.env import EnvVar, var
from dynamo_pod_builder.render.pod.placement import PodRole
from dynamo_pod_builder.render.pod.topology_names import topology_names

pod = common.pod

_SYSTEM = (var(env.DYN_SYSTEM_ENABLED, "true"), var(env.DYN_SYSTEM_PORT, str(ports.SYSTEM.number)))
_CANARY = var(env.DYN_HEALTH_CHECK_ENABLED, "false")
_ENGINE = (
    var(env.DYN_SYSTEM_ENABLED, "true"),
    var(env.DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS, '["generate"]'),
    var(env.DYN_SYSTEM_PORT, str(ports.SYSTEM.number)),
    _CANARY,
    var(env.NIXL_TELEMETRY_ENABLE, "n"),
    var(env.NIXL_TELEMETRY_EXPORTER, "prometheus"),
    var(env.NIXL_TELEMETRY_PROMETHEUS_PORT, str(ports.NIXL.number)),
    var(env.DYN_FORWARDPASS_METRIC_PORT, str(ports.FORWARD_PASS_METRICS.number)),
)


def container(context: PodContext) -> KubeObject:
    """Main container of an engine; generations of a rolling update register with different suffixes."""
    base = common.container(context)
    features = features_of(context.spec.runtime_version_override)
    variables = [*base["env"], *_engine(features), *_generation(context), *topology_names(context)]
    return {
        **base,
        "ports": [ports.SYSTEM.container_port(), ports.NIXL.container_port()],
        **_probes(context, features),
        "env": variables,
    }


def runtime(context: PodContext) -> KubeObject:
    """The Dynamo runtime as a sidecar of an engine that does not know it: it starts first, and ends last."""
    variables = [*common.environment(context, context.type, RUNTIME), *_SYSTEM, *_generation(context)]
    return {
        "name": RUNTIME,
        "restartPolicy": "Always",
        "ports": [ports.SYSTEM.container_port()],
        **probes.RUNTIME,
        "env": variables,
    }


def _probes(context: PodContext, features: RuntimeFeatures) -> KubeObject:
    """Probes of an engine. Workers of a multi-node engine serve nothing: they have only their author's probes."""
    if context.has_own_commands and context.placement.role is PodRole.WORKER:
        return {}
    return probes.LENIENT_WORKER if features.lenient else probes.WORKER


def _generation(context: PodContext) -> list[EnvVar]:
    return [var(env.DYN_NAMESPACE_WORKER_SUFFIX, context.worker_hash)] if context.worker_hash else []


def _engine(features: RuntimeFeatures) -> list[KubeObject]:
    if not features.canary:
        return [*_ENGINE]
    return [{**each, "value": "true"} if each is _CANARY else each for each in _ENGINE]
