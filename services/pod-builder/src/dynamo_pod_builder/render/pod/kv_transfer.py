"""Workers that know their topology domain, so that routers keep KV caches in it (the reference's 1.3 to 1.5).

The node of a pod is known only after scheduling: then its label is copied to the pod, and the kubelet writes it into
the file for which the worker waits.
"""

from decimal import Decimal

from dynamo_shared.api.containers import is_main
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env
from dynamo_shared.api.registry.annotations import TOPOLOGY_LABEL_KEY
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment
from dynamo_shared.api.v1beta1.kv_transfer import KvTransferPolicy

from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod.env import EnvVar, var, with_vars, without_vars
from dynamo_pod_builder.render.pod.template import containers_with_main, with_annotations, with_runtime

VOLUME, DIRECTORY = "topology-labels", "/etc/dynamo/topology"
_NAMES = (
    env.DYN_TOPOLOGY_ENABLED,
    env.DYN_TOPOLOGY_MOUNT_PATH,
    env.DYN_KV_TRANSFER_DOMAIN,
    env.DYN_KV_TRANSFER_ENFORCEMENT,
    env.DYN_KV_TRANSFER_PREFERRED_WEIGHT,
)


def policy_of(graph: DynamoGraphDeployment) -> KvTransferPolicy | None:
    """The policy of a graph, or None. Raises RenderError if it names no node label."""
    policy = graph.spec.experimental.kv_transfer_policy if graph.spec.experimental is not None else None
    if policy is not None and not policy.label_key:
        raise RenderError(
            "",
            "spec.experimental.kvTransferPolicy.labelKey",
            f"is required: the platform reads the {policy.domain} of a node from this label",
            "name the label of the nodes",
        )
    return policy


def with_topology(template: KubeObject, policy: KvTransferPolicy | None) -> KubeObject:
    """A worker's pod template with what a policy needs, replacing the user's volumes and variables of the same names."""
    if policy is None:
        return template
    pod = template.get("spec") or {}
    field = {"fieldPath": f"metadata.labels['{policy.label_key}']"}
    volume = {"name": VOLUME, "downwardAPI": {"items": [{"path": policy.domain, "fieldRef": field}]}}
    others = [each for each in pod.get("volumes") or () if each["name"] != VOLUME]
    annotated = with_annotations(template, {TOPOLOGY_LABEL_KEY: policy.label_key or ""})
    return {**annotated, "spec": {**_of_runtime(pod, policy), "volumes": [*others, volume]}}


def _of_runtime(pod: KubeObject, policy: KvTransferPolicy) -> KubeObject:
    """A pod spec in which the container with the Dynamo runtime reads the policy."""
    if (changed := with_runtime(pod, lambda runtime: _reading(runtime, policy))) is not pod:
        return changed
    containers = [_reading(each, policy) if is_main(each) else each for each in containers_with_main(pod)]
    return {**pod, "containers": containers}


def _reading(container: KubeObject, policy: KvTransferPolicy) -> KubeObject:
    mounts = [
        each
        for each in container.get("volumeMounts") or ()
        if each.get("name") != VOLUME and each.get("mountPath") != DIRECTORY
    ]
    return {
        **container,
        "env": with_vars(without_vars(container.get("env") or (), *_NAMES), *_variables(policy)),
        "volumeMounts": [*mounts, {"name": VOLUME, "mountPath": DIRECTORY, "readOnly": True}],
    }


def _variables(policy: KvTransferPolicy) -> list[EnvVar]:
    variables = [
        var(env.DYN_TOPOLOGY_ENABLED, "true"),
        var(env.DYN_TOPOLOGY_MOUNT_PATH, DIRECTORY),
        var(env.DYN_KV_TRANSFER_DOMAIN, policy.domain),
        var(env.DYN_KV_TRANSFER_ENFORCEMENT, policy.enforcement.value),
    ]
    if policy.preferred_weight is not None:
        weight = format(Decimal(str(policy.preferred_weight)).normalize(), "f")
        variables.append(var(env.DYN_KV_TRANSFER_PREFERRED_WEIGHT, weight))
    return variables
