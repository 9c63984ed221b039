"""Manifests of either version, in few words, and the table of cases that the tests of this folder share."""

from collections.abc import Mapping
from typing import Any

import yaml
from dynamo_shared.api.validation import Facts

ALPHA, BETA = "v1alpha1", "v1beta1"
#: A user, and a cluster that can do everything but Grove.
PLAIN = Facts(user="jane", grove=False, inference_pools=True)
GROVE = Facts(user="jane", grove=True, inference_pools=True, topologies={"dc": ("zone", "rack", "host")})


class Case:
    """An object, its old version, and the findings, in order: texts `error: path: message`, then `warning: path: message`."""

    def __init__(self, id_: str, obj: Any, *findings: str, old: Any = None, facts: Facts = PLAIN) -> None:
        self.id, self.obj, self.old, self.facts, self.findings = id_, obj, old, facts, findings


def both(
    id_: str,
    of_alpha: Any,
    of_beta: Any,
    *findings: str,
    at: tuple[str, str] = ("", ""),
    old: tuple[Any, Any] = (None, None),
    facts: Facts = PLAIN,
) -> tuple[Case, Case]:
    """What is said of either version in the same words; `{at}` in them is the place that each has for it."""
    first, second = (tuple(each.replace("{at}", place) for each in findings) for place in at)
    return (
        Case(f"alpha: {id_}", of_alpha, *first, old=old[0], facts=facts),
        Case(f"beta: {id_}", of_beta, *second, old=old[1], facts=facts),
    )


def manifest(kind: str, version: str, spec: Any, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": f"nvidia.com/{version}",
        "kind": kind,
        "metadata": {"name": "graph", "namespace": "team", **metadata},
        "spec": spec,
    }


def services(parts: Mapping[str, Any], *, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A v1alpha1 graph."""
    return manifest("DynamoGraphDeployment", ALPHA, {**spec, "services": dict(parts)}, **(metadata or {}))


def components(*parts: Any, metadata: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """A v1beta1 graph."""
    return manifest("DynamoGraphDeployment", BETA, {**spec, "components": list(parts)}, **(metadata or {}))


def service(kind: str = "worker", gpus: str | None = None, **fields: Any) -> dict[str, Any]:
    """A v1alpha1 service with an image, and GPUs if the arguments say so."""
    made: dict[str, Any] = {"componentType": kind, "extraPodSpec": {"mainContainer": {"image": "engine:1"}}}
    if gpus is not None:
        made["resources"] = {"limits": {"gpu": gpus}}
    return {**made, **fields}


def component(name: str, kind: str = "worker", gpus: str | None = None, **fields: Any) -> dict[str, Any]:
    """A v1beta1 component with an image, and GPUs if the arguments say so."""
    main: dict[str, Any] = {"name": "main", "image": "engine:1"}
    if gpus is not None:
        main["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    return {"name": name, "type": kind, "podTemplate": {"spec": {"containers": [main]}}, **fields}


def alpha(*parts: str, **fields: Any) -> dict[str, Any]:
    """A v1alpha1 graph whose services are texts of YAML: `a: {kind: frontend, replicas: 2}`.

    `main` has fields of the main container, `pod` of the pod, `gpus` is how many, and worker is the kind where none is given.
    """
    return services(
        {name: _service(**given) for part in parts for name, given in yaml.load(part, yaml.CSafeLoader).items()},
        **fields,
    )


def beta(*parts: str, **fields: Any) -> dict[str, Any]:
    """A v1beta1 graph whose components are texts as those of `alpha`.

    `others` of a pod are its containers next to main, `log` says whether one stands before it, `metadata` are those of pods.
    """
    return components(
        *(_component(name, **given) for part in parts for name, given in yaml.load(part, yaml.CSafeLoader).items()),
        **fields,
    )


def _service(*, main: Any = None, pod: Any = None, **given: Any) -> dict[str, Any]:
    made = {key: value for key, value in service(**given).items() if key != "extraPodSpec" or key in given}
    return {**alpha_pod(main, **(pod or {})), **made}


def _component(
    name: str, *, main: Any = None, pod: Any = None, log: bool = False, metadata: Any = None, **given: Any
) -> dict[str, Any]:
    made = component(name, **given)
    (container,) = made["podTemplate"]["spec"]["containers"]
    template = beta_pod(name, {**container, **(main or {})}, **(pod or {}))["podTemplate"]
    if log:
        template["spec"]["containers"].insert(0, {"name": "log", "image": "log:1"})
    made["podTemplate"] = template if metadata is None else {"metadata": metadata, **template}
    return made


def alpha_pod(main: dict[str, Any] | None = None, kind: str = "worker", **pod: Any) -> dict[str, Any]:
    """A v1alpha1 service with a pod."""
    return service(kind, extraPodSpec={"mainContainer": {"image": "engine:1", **(main or {})}, **pod})


def beta_pod(name: str, main: dict[str, Any] | None = None, kind: str = "worker", **pod: Any) -> dict[str, Any]:
    """A v1beta1 component with a pod; `others` are its containers next to main."""
    others = pod.pop("others", [])
    return component(name, kind, podTemplate={"spec": {"containers": [{**MAIN, **(main or {})}, *others], **pod}})


def alone(version: str, **spec: Any) -> dict[str, Any]:
    """A component deployment."""
    return manifest("DynamoComponentDeployment", version, spec)


def annotated(**annotations: str) -> dict[str, Any]:
    """Metadata with annotations of the platform; underscores stand for hyphens."""
    return {"annotations": {f"nvidia.com/{name.replace('_', '-')}": value for name, value in annotations.items()}}


#: The main container of a v1beta1 pod.
MAIN: dict[str, Any] = {"name": "main", "image": "engine:1"}
#: Of a checkpoint, and of a replica that spans nodes.
IDENTITY: dict[str, Any] = {"identity": {"model": "m", "backendFramework": "vllm"}}
MULTINODE: dict[str, Any] = {"nodeCount": 2}
CONTAINER_DISCOVERY = annotated(dynamo_kube_discovery_mode="container")
