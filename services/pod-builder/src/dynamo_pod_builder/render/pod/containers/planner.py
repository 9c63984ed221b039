"""Planner: watches the load and scales the workers, so it needs an account with that right."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod import probes
from dynamo_pod_builder.render.pod.containers import common
from dynamo_pod_builder.render.pod.env import var


def container(context: PodContext) -> KubeObject:
    """Main container of a planner."""
    base = common.container(context)
    return {
        **base,
        "ports": [ports.PLANNER_METRICS.container_port(), ports.SYSTEM.container_port()],
        **probes.WORKER,
        "env": [
            *base["env"],
            var(env.PLANNER_PROMETHEUS_PORT, str(ports.PLANNER_METRICS.number)),
            var(env.DYN_SYSTEM_PORT, str(ports.SYSTEM.number)),
        ],
    }


def pod(context: PodContext) -> KubeObject:
    """Fields of the pod spec."""
    return {**common.pod(context), "serviceAccountName": names.PLANNER_ACCOUNT}
