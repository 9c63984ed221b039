"""Endpoint picker: chooses the worker of a request for the gateway."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.resources import INFERENCE_POOLS

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod import probes
from dynamo_pod_builder.render.pod.containers import common
from dynamo_pod_builder.render.pod.env import var

CONFIG_FILE = "epp-config-dynamo.yaml"
_CONFIG_DIRECTORY = "/etc/epp"
_CONFIG_VOLUME, _CACHE_VOLUME = "epp-config", "hf-cache"
#: Seconds: a gateway may hold a stream open as long as this.
_GRACE_PERIOD = 130


def container(context: PodContext) -> KubeObject:
    """Main container of an endpoint picker; its image has the entry point."""
    arguments = {
        "--pool-name": names.inference_pool(context.graph),
        "--pool-namespace": context.namespace,
        "--pool-group": INFERENCE_POOLS.group,
        "-v": "4",
        "--zap-encoder": "json",
        "--grpc-port": str(ports.EPP_GRPC.number),
        "--grpc-health-port": str(ports.EPP_HEALTH.number),
        "--config-file": f"{_CONFIG_DIRECTORY}/{CONFIG_FILE}",
    }
    base = {key: value for key, value in common.container(context).items() if key != "command"}
    return {
        **base,
        "args": [part for pair in arguments.items() for part in pair],
        "ports": [
            ports.EPP_GRPC.container_port(),
            ports.EPP_HEALTH.container_port(),
            ports.EPP_METRICS.container_port(),
        ],
        **probes.EPP,
        "env": [
            *base["env"],
            var(env.USE_STREAMING, "true"),
            var(env.RUST_LOG, "debug,dynamo_llm::kv_router=trace"),
            var(env.DYN_ENFORCE_DISAGG, "false"),
            var(env.DYN_NAMESPACE_PREFIX, context.dynamo_namespace),
        ],
        "volumeMounts": [
            {"name": _CONFIG_VOLUME, "mountPath": _CONFIG_DIRECTORY, "readOnly": True},
            {"name": _CACHE_VOLUME, "mountPath": "/home/nonroot/.cache"},
        ],
    }


def pod(context: PodContext) -> KubeObject:
    """Fields of the pod spec, with the volume of the configuration: the user's ConfigMap or the one made for the graph."""
    config = context.spec.epp_config
    if config is None:
        raise RenderError(
            context.component, "eppConfig", "an endpoint picker needs its configuration", "set config or configMapRef"
        )
    reference = config.config_map_ref
    config_map = reference.name if reference is not None else names.epp_config_map(context.graph)
    key = (reference.key if reference is not None else "") or CONFIG_FILE
    return {
        **common.pod(context),
        "terminationGracePeriodSeconds": _GRACE_PERIOD,
        "serviceAccountName": names.EPP_ACCOUNT,
        "volumes": [
            {
                "name": _CONFIG_VOLUME,
                "configMap": {"name": config_map, "items": [{"key": key, "path": CONFIG_FILE}]},
            },
            {"name": _CACHE_VOLUME, "emptyDir": {}},
        ],
    }
