"""Failover: engines that share their weights through the GPU memory service; the engine that holds a lock serves.

Within a pod, the engines are copies of the main container; between pods, they are pods of one clique.
"""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import PROBES
from dynamo_shared.api.registry import env, ports

from dynamo_pod_builder.render.backends.base import EngineBackend
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.env import var, with_vars, without_vars
from dynamo_pod_builder.render.sharing.gpu_memory import LOCK_FILE, SOCKETS_WITHIN_POD
from dynamo_pod_builder.render.sharing.spec import ENGINES_WITHIN_POD, engine_name, fails_over_within_pod

_LOCK = f"{SOCKETS_WITHIN_POD}/{LOCK_FILE}"
#: Variables that describe the whole pod, but that each engine decides for itself here.
_OF_ONE_ENGINE = (
    env.DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS,
    env.DYN_HEALTH_CHECK_ENABLED,
)


def stand_by(pod: KubeObject, context: PodContext, backend: EngineBackend) -> None:
    """Replace the main container with several engines, in place. They share its GPUs and the memory on them."""
    if not fails_over_within_pod(context.spec):
        return
    main, *others = pod["containers"]
    engines = []
    for number in range(ENGINES_WITHIN_POD):
        engine = _engine(main, number)
        backend.update_engine(engine, number, context)
        engines.append(engine)
    pod["containers"] = [*engines, *others]


def _engine(main: KubeObject, number: int) -> KubeObject:
    port = {**ports.SYSTEM.container_port(), "containerPort": ports.SYSTEM.number + number}
    port["name"] = f"{ports.SYSTEM.name}-{number}"
    name = engine_name(number)
    engine = {**main, "name": name, "ports": [port]}
    engine["env"] = with_vars(
        without_vars(main["env"], *_OF_ONE_ENGINE),
        var(env.ENGINE_ID, str(number)),
        var(env.CONTAINER_NAME, name),
        var(env.FAILOVER_LOCK_PATH, _LOCK),
        var(env.DYN_SYSTEM_STARTING_HEALTH_STATUS, "notready"),
        var(env.DYN_SYSTEM_PORT, str(port["containerPort"])),
        var(env.DYN_SYSTEM_ENABLED, "true"),
        var(env.DYN_FORWARDPASS_METRIC_PORT, str(ports.FORWARD_PASS_METRICS.number + number)),
    )
    for probe in PROBES:
        if "httpGet" in engine.get(probe, ()):
            engine[probe] = {**engine[probe], "httpGet": {**engine[probe]["httpGet"], "port": port["name"]}}
    return engine
