"""Endpoint picker: chooses the worker of a request for the gateway."""

from dynamo_shared.api.containers import main_container
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import GRACE_PERIOD_OF_PICKER
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.resources import INFERENCE_POOLS
from dynamo_shared.api.runtime_version import has_native_picker

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod import probes
from dynamo_pod_builder.render.pod.containers import common
from dynamo_pod_builder.render.pod.env import var

CONFIG_FILE = "epp-config-dynamo.yaml"
_CONFIG_DIRECTORY = "/etc/epp"
_CONFIG_VOLUME, _CACHE_VOLUME = "epp-config", "hf-cache"
#: Home directory in the image of the frontend. If another image has a different one, the variable overrides it.
_NATIVE_HOME = "/home/dynamo"


def container(context: PodContext) -> KubeObject:
    """Main container of an endpoint picker; its image has the entry point."""
    base = {key: value for key, value in common.container(context).items() if key != "command"}
    native = _is_native(context)
    own = _native(context) if native else _of_configuration(context)
    return {
        **base,
        "ports": [
            ports.EPP_GRPC.container_port(),
            ports.EPP_HEALTH.container_port(),
            ports.EPP_METRICS.container_port(),
        ],
        **probes.EPP,
        **own,
        "env": [
            *base["env"],
            var(env.USE_STREAMING, "true"),
            var(env.RUST_LOG, "info" if native else "debug,dynamo_llm::kv_router=trace"),
            var(env.DYN_ENFORCE_DISAGG, "false"),
            *(
                [*common.namespaces(context), var(env.HOME, _NATIVE_HOME)]
                if native
                else [var(env.DYN_NAMESPACE_PREFIX, context.dynamo_namespace)]
            ),
        ],
    }


def _is_native(context: PodContext) -> bool:
    """Whether it is the picker of 1.5.0 and later. With a configuration it is the earlier one, which its pods keep."""
    return context.spec.epp_config is None


def _of_configuration(context: PodContext) -> KubeObject:
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
    return {
        "args": [part for pair in arguments.items() for part in pair],
        "volumeMounts": [
            {"name": _CONFIG_VOLUME, "mountPath": _CONFIG_DIRECTORY, "readOnly": True},
            {"name": _CACHE_VOLUME, "mountPath": "/home/nonroot/.cache"},
        ],
    }


def _native(context: PodContext) -> KubeObject:
    """The picker in the image of the frontend. It accepts no arguments: its ports are fixed, variables configure it."""
    image = (main_container(context.template) or {}).get("image") or ""
    if not has_native_picker(image, context.spec.runtime_version_override):
        raise RenderError(
            context.component,
            "eppConfig",
            "an endpoint picker of a runtime before 1.5.0 requires a configuration",
            "set config or configMapRef, or set runtimeVersionOverride to a later version",
        )
    return {"volumeMounts": [{"name": _CACHE_VOLUME, "mountPath": f"{_NATIVE_HOME}/.cache"}]}


def pod(context: PodContext) -> KubeObject:
    """Fields of the pod spec, with volumes for the configuration and for downloaded model files."""
    return {
        **common.pod(context),
        "terminationGracePeriodSeconds": GRACE_PERIOD_OF_PICKER,
        "serviceAccountName": names.EPP_ACCOUNT,
        "volumes": [*_configuration(context), {"name": _CACHE_VOLUME, "emptyDir": {}}],
    }


def _configuration(context: PodContext) -> list[KubeObject]:
    """Volume of the user's ConfigMap, or of the one created for the graph."""
    config = context.spec.epp_config
    if config is None:
        return []
    reference = config.config_map_ref
    config_map = reference.name if reference is not None else names.epp_config_map(context.graph)
    key = (reference.key if reference is not None else "") or CONFIG_FILE
    return [
        {"name": _CONFIG_VOLUME, "configMap": {"name": config_map, "items": [{"key": key, "path": CONFIG_FILE}]}},
    ]
