"""Converts the legacy kinds to a v1alpha1 DynamoGraphDeployment. Pure.

Commands are those of the operator of that time: it ran `dynamo serve` in the folder `src` of the image that it had
built.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from dynamo_shared.api.dynamo_namespace import GLOBAL
from dynamo_shared.api.legacy.deployment import DynamoDeployment
from dynamo_shared.api.legacy.nim_deployment import DynamoNimDeployment
from dynamo_shared.api.model import to_dict
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

#: Fields with the same meaning in a service of a graph.
_SAME = ("replicas", "envs", "envFromSecret", "resources", "ingress", "livenessProbe", "readinessProbe")
#: Prefix of kubectl's annotations, which describe the legacy object, not the graph.
_KUBECTL = "kubectl.kubernetes.io/"
_CONFIGURATION = "DYNAMO_CONFIG_PATH"
#: A shell word for the entry of an artifact (module:class), which `bento.yaml` next to `src` names.
_ENTRY_OF_ARTIFACT = """"$(sed -n 's/^service: *//p' ../bento.yaml)\""""
_NO_IMAGE = "component {service} has no image: write the image that was built from {artifact}"
_NO_COMMAND = (
    "component {service} has no command: write the command with which {artifact} starts it, unless the image has it"
)
_OTHER_NAMESPACE = (
    "component {service}: dynamoNamespace {namespace} is left out, because the name of a graph determines its "
    "Dynamo namespace"
)
_DEPENDENCIES = "component {service}: externalServices is left out, because components of a graph discover each other"


class Successor(NamedTuple):
    """A graph, and remarks for its author, each one sentence: what to complete, and what was omitted."""

    graph: KubeObject
    remarks: tuple[str, ...]


def graph_of_deployment(deployment: DynamoDeployment) -> Successor:
    """The graph with all services of a deployment. Its author must add what only the artifact contains."""
    spec = to_dict(deployment).get("spec", {})
    artifact = spec.get("dynamoNim", "")
    services: KubeObject = {}
    remarks: list[str] = []
    for name, service in (spec.get("services") or {}).items():
        services[name] = _service(name, {**service, "envs": _merged(spec.get("envs"), service.get("envs"))})
        remarks += _missing(name, services[name], artifact)
    return Successor(_graph(to_dict(deployment)["metadata"], services, spec.get("services") or {}), tuple(remarks))


def graph_of_services(deployments: Sequence[DynamoNimDeployment]) -> Successor:
    """The graph of the services of one artifact. It has the name of the service, or of the artifact if there are several."""
    objects = [to_dict(each) for each in deployments]
    written = {each["spec"]["serviceName"]: each["spec"] for each in objects}
    services: KubeObject = {}
    remarks: list[str] = []
    for name, spec in written.items():
        services[name] = _service(name, spec, command=_command(spec))
        remarks += _missing(name, services[name], spec["dynamoNim"])
        if spec["dynamoNamespace"] != GLOBAL:
            remarks.append(_OTHER_NAMESPACE.format(service=name, namespace=spec["dynamoNamespace"]))
        if spec.get("externalServices"):
            remarks.append(_DEPENDENCIES.format(service=name))
    metadata = objects[0]["metadata"]
    if len(objects) > 1:
        metadata = {**metadata, "name": objects[0]["spec"]["dynamoNim"]}
    return Successor(_graph(metadata, services, written), tuple(remarks))


def command_of_artifact(service: str, variables: Sequence[KubeObject] = ()) -> KubeObject:
    """The command with which an image of an artifact starts one of its services; the entry is read from the artifact."""
    return _serve(service, _ENTRY_OF_ARTIFACT, variables)


def _graph(metadata: KubeObject, services: KubeObject, written: Mapping[str, Any]) -> KubeObject:
    claims = {claim["name"]: claim for claim in (_claim(name, each) for name, each in written.items()) if claim}
    annotations = {key: text for key, text in metadata.get("annotations", {}).items() if not key.startswith(_KUBECTL)}
    metadata = {**metadata, "annotations": annotations}
    kept = {key: metadata[key] for key in ("name", "namespace", "labels", "annotations") if metadata.get(key)}
    head = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")
    return {
        **head.type_meta,
        "metadata": kept,
        "spec": {"services": services, **({"pvcs": list(claims.values())} if claims else {})},
    }


def _service(name: str, spec: KubeObject, command: KubeObject | None = None) -> KubeObject:
    service = {key: spec[key] for key in _SAME if spec.get(key) not in (None, [])}
    if name == "Frontend" or spec.get("ingress", {}).get("enabled"):
        service["componentType"] = "frontend"
    if spec.get("dynamoNamespace") == GLOBAL:
        service["globalDynamoNamespace"] = True
    extra = spec.get("extraPodMetadata", {})
    for_pods = {
        key: merged
        for key in ("labels", "annotations")
        if (merged := {**(spec.get(key) or {}), **(extra.get(key) or {})})
    }
    if for_pods:
        service["extraPodMetadata"] = for_pods
    pod = dict(spec.get("extraPodSpec", {}))
    main = pod.get("mainContainer") or {}
    if command and not {"command", "args"} & main.keys():
        main = {**command, **main}
    if main or pod:
        service["extraPodSpec"] = {**pod, **({"mainContainer": main} if main else {})}
    if spec.get("autoscaling", {}).get("enabled"):
        service |= {"autoscaling": spec["autoscaling"], "scalingAdapter": {"enabled": True}}
        # The adapter owns the replicas.
        service.pop("replicas", None)
    if mount := spec.get("pvc"):
        at = {"mountPoint": mount["mountPoint"]} if "mountPoint" in mount else {}
        service["volumeMounts"] = [{"name": mount.get("name") or _claim_name(name), **at}]
    return service


def _claim(service: str, spec: KubeObject) -> KubeObject | None:
    """The volume claim that a service creates; None without one."""
    claim = spec.get("pvc") or {}
    if not claim.get("create"):
        return None
    fields = {key: claim[key] for key in ("create", "size", "storageClass", "volumeAccessMode") if key in claim}
    return {"name": claim.get("name") or _claim_name(service), **fields}


def _claim_name(service: str) -> str:
    return service.lower()


def _command(spec: KubeObject) -> KubeObject:
    return _serve(spec["serviceName"], shlex.quote(spec["dynamoTag"]), spec.get("envs", ()))


def _serve(service: str, entry: str, variables: Sequence[KubeObject]) -> KubeObject:
    """The command for a service; `entry` is a word in shell syntax."""
    words = ["uv", "run", "dynamo", "serve", "--service-name", shlex.quote(service), entry]
    files = [each["value"] for each in variables if each["name"] == _CONFIGURATION and "value" in each]
    for file in files:
        words += ["-f", shlex.quote(file)]
    return {"command": ["sh", "-c"], "args": [f"cd src && {' '.join(words)}"]}


def _merged(first: list[KubeObject] | None, last: list[KubeObject] | None) -> list[KubeObject]:
    """The variables of both lists; those of `last` have priority."""
    return list({each["name"]: each for each in (*(first or ()), *(last or ()))}.values())


def _missing(name: str, service: KubeObject, artifact: str) -> Iterator[str]:
    main = service.get("extraPodSpec", {}).get("mainContainer", {})
    for field, note in (("image", _NO_IMAGE), ("command", _NO_COMMAND)):
        if field not in main:
            yield note.format(service=name, artifact=artifact)
