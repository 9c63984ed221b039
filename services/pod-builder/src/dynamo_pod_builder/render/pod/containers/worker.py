"""Worker, prefill, decode: an inference engine."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.runtime_version import RuntimeFeatures, features_of

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod import probes
from dynamo_pod_builder.render.pod.containers import common
from dynamo_pod_builder.render.pod.env import var
from dynamo_pod_builder.render.pod.topology_names import topology_names

pod = common.pod

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
    """Main container of an engine; generations of a rolling update register under different suffixes."""
    base = common.container(context)
    features = features_of(context.spec.runtime_version_override)
    variables = [*base["env"], *_engine(features), *topology_names(context)]
    if context.worker_hash:
        variables.append(var(env.DYN_NAMESPACE_WORKER_SUFFIX, context.worker_hash))
    return {
        **base,
        "ports": [ports.SYSTEM.container_port(), ports.NIXL.container_port()],
        **(probes.LENIENT_WORKER if features.lenient else probes.WORKER),
        "env": variables,
    }


def _engine(features: RuntimeFeatures) -> list[KubeObject]:
    if not features.canary:
        return [*_ENGINE]
    return [{**each, "value": "true"} if each is _CANARY else each for each in _ENGINE]
