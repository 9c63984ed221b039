"""What every main container has, for all component types."""

from dynamo_shared.api.engines.started import SHELL
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.pods import GRACE_PERIOD
from dynamo_shared.api.registry import env
from dynamo_shared.api.runtime_version import features_of

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.discovery import ETCD, KUBERNETES, PER_CONTAINER
from dynamo_pod_builder.render.pod.env import EnvVar, from_field, var

_IDENTITY = (
    from_field(env.POD_NAME, "metadata.name"),
    from_field(env.POD_NAMESPACE, "metadata.namespace"),
    from_field(env.POD_UID, "metadata.uid"),
)


def container(context: PodContext) -> KubeObject:
    """A shell without arguments, ports or probes, and the environment of every Dynamo process."""
    return {"name": MAIN, "command": [*SHELL], "env": environment(context, context.type)}


def pod(_: PodContext) -> KubeObject:
    """Fields of the pod spec."""
    return {"terminationGracePeriodSeconds": GRACE_PERIOD, "restartPolicy": "Always"}


def namespaces(context: PodContext) -> list[EnvVar]:
    """Variables for the workers that a container serves: those of its graph, of all generations.

    Without the second variable, it would also serve those of a graph whose name begins with this graph's name
    (dynamo#10990).
    """
    served = [var(env.DYN_NAMESPACE_PREFIX, context.dynamo_namespace)]
    if features_of(context.spec.runtime_version_override).strict_prefix:
        served.append(var(env.DYN_NAMESPACE_PREFIX_STRICT, "true"))
    return served


def environment(context: PodContext, component_type: str, name: str = MAIN) -> list[EnvVar]:
    """Where a container's process runs and how it finds others. DYN_COMPONENT is the component's type, not its name."""
    variables = [
        var(env.DYN_NAMESPACE, context.dynamo_namespace),
        var(env.DYN_COMPONENT, component_type),
        var(env.DYN_PARENT_DGD_K8S_NAME, context.graph),
        var(env.DYN_PARENT_DGD_K8S_NAMESPACE, context.namespace),
        *_IDENTITY,
    ]
    if context.discovery.backend != ETCD:
        variables.append(var(env.DYN_DISCOVERY_BACKEND, KUBERNETES))
    if context.discovery.per_container:
        variables.append(var(env.CONTAINER_NAME, name))
        variables.append(var(env.DYN_KUBE_DISCOVERY_MODE, PER_CONTAINER))
    return variables
