"""Objects of kinds that the API server stores unchanged, normalized like Kubernetes' Go types write them.

The reference passes everything through these types: quantities get one form, and an empty field that is held by value
is omitted. A field that is held by a pointer stays with every value: `replicas: 0`, `runAsUser: 0`, `emptyDir: {}`. So
do the author's own maps. The hash of workers covers what the author wrote, so no name depends on this.
"""

from collections.abc import Set
from functools import partial
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    POD_CLIQUE_SETS,
)

_KINDS = {each.kind for each in (DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_CHECKPOINTS, LEADER_WORKER_SETS, POD_CLIQUE_SETS)}
#: What Go writes if a resourceFieldRef has no divisor.
NO_DIVISOR = "0"
#: Fields that are a quantity, and maps of quantities.
_AMOUNT = frozenset({"divisor", "sharedMemorySize", "sizeLimit"})
_AMOUNTS = frozenset({"limits", "overhead", "requests"})
#: Fields whose content belongs to the author.
_FREE = frozenset(
    {
        *("annotations", "eppConfig", "extraParameters", "labels", "matchLabels", "nodeSelector", "options"),
        *("userAnnotations", "volumeAttributes"),
    }
)
#: Fields without a pointer and with omitempty, everywhere in a PodSpec of k8s.io/api 0.35 and in a component.
_BY_VALUE = frozenset(
    {
        *("annotations", "labels", "limits", "matchLabels", "nodeSelector", "options", "overhead", "requests"),
        *("userAnnotations", "volumeAttributes"),
        *(
            "dnsPolicy",
            "hostIPC",
            "hostNetwork",
            "hostPID",
            "hostname",
            "nodeName",
            "priorityClassName",
            "schedulerName",
        ),
        *("serviceAccount", "serviceAccountName", "subdomain", "effect", "podGroupReplicaKey"),
        *("imagePullPolicy", "stdin", "stdinOnce", "terminationMessagePath", "terminationMessagePolicy", "tty"),
        *("workingDir", "hostIP", "hostPort", "protocol", "prefix", "containerName", "request", "action"),
        *("failureThreshold", "initialDelaySeconds", "periodSeconds", "successThreshold", "timeoutSeconds"),
        *("host", "scheme", "subPath", "subPathExpr", "medium", "readOnly", "fsType", "partition", "audience"),
        *("pullPolicy", "reference", "level", "role", "user", "directory", "group", "tenant", "pool", "keyring"),
        *("chapAuthDiscovery", "chapAuthSession", "iscsiInterface", "datasetName", "datasetUUID", "secretFile"),
        *("protectionDomain", "sslEnabled", "storageMode", "storagePool", "storagePolicyID", "storagePolicyName"),
        *("volumeNamespace", "certificateChainPath", "credentialBundlePath", "keyPath", "keyType"),
        *("globalDynamoNamespace", "revision", "targetContainerName"),
    }
)
#: Fields whose names are by value only in these parents; elsewhere they are pointers, or written even if empty.
_BY_VALUE_IN = frozenset(
    {
        *(("env", "value"), ("tolerations", "key"), ("tolerations", "operator"), ("tolerations", "value")),
        *(("httpGet", "path"), ("ports", "name"), ("podSpec", "restartPolicy"), ("seLinuxOptions", "type")),
        *(("secret", "secretName"), ("spec", "restartPolicy"), ("spec", "volumeName")),
    }
)
#: Lists that are written even if they are empty.
_LISTS = frozenset({"containers", "monitors", "nodeSelectorTerms", "sources"})
#: Volume sources that have only pointers.
_OF_POINTERS = frozenset({"azureDisk", "csi"})
#: Structs by value, which Go writes even if they are empty, but the types of v1beta1 do not.
_STRUCTS = frozenset({("containers", "resources"), ("initContainers", "resources"), ("podTemplate", "metadata")})
_NONE: frozenset[tuple[str, str]] = frozenset()


def typed(child: KubeObject) -> KubeObject:
    """An object in its written form; the same object if the API server normalizes its kind anyway."""
    if child["kind"] not in _KINDS:
        return child
    if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        return {**child, "spec": typed_component(child["spec"])}
    return {**child, "spec": _written(child["spec"], "spec", _NONE)}


def typed_component(spec: KubeObject) -> KubeObject:
    """The spec of a component deployment in its written form."""
    written: KubeObject = _written(spec, "spec", _STRUCTS)
    return written


def _written(node: Any, field: str, structs: Set[tuple[str, str]]) -> Any:
    """The value of a field in its written form."""
    within = partial(_written, structs=structs)
    if isinstance(node, list):
        # Device requests are a list.
        return [within(each, "" if field in _AMOUNTS else field) for each in node]
    if field in _AMOUNT:
        return _amount(node)
    if not isinstance(node, dict) or field in _FREE:
        return node
    if field in _AMOUNTS:
        return {name: _amount(value) for name, value in node.items()}
    made = {name: within(value, name) for name, value in node.items()}
    if field == "resourceFieldRef":
        # A struct by value, which has its own form.
        made.setdefault("divisor", NO_DIVISOR)
    return {
        name: value
        for name, value in made.items()
        if value or not (_is_by_value(field, name, value) or (value == {} and (field, name) in structs))
    }


def _is_by_value(parent: str, field: str, value: Any) -> bool:
    if value == [] and field not in _LISTS:
        return True
    return (field in _BY_VALUE and parent not in _OF_POINTERS) or (parent, field) in _BY_VALUE_IN


def _amount(value: Any) -> Any:
    """A quantity in its canonical form; an invalid one is left for the API server to refuse."""
    try:
        return quantity.canonical(value) if isinstance(value, int | float | str) else value
    except quantity.InvalidQuantity:
        return value
