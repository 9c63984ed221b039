"""Defaults that are set when an object is created, in the version of the request (reference behaviour, 9.8).

Replicas of roles, and targets of overrides, are set at each write, because roles and overrides may be added later.

The API server sets the defaults of the schema; these defaults depend on other fields or on the platform.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

from dynamo_shared.api.component_names import is_name
from dynamo_shared.api.engines.images import REPOSITORY, profiler_image
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import OPERATOR_ORIGIN_VERSION
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.untrusted.reading import mapping, nodes
from dynamo_shared.api.validation.provider_override import API_VERSION, CLIQUE, FIELD, SET, target_of
from dynamo_shared.api.validation.roles import pods_of_role

#: Replicas of a component without a number, also of one whose adapter will own the number.
DEFAULT_REPLICAS = 1
#: Fields of a graph with its components: a map in v1alpha1, a list in v1beta1.
_SERVICES, _COMPONENTS = "services", "components"


def default(obj: KubeObject, *, platform_version: str, repository: str = REPOSITORY) -> KubeObject:
    """The object with defaults: a copy of the changed parts, or the same object if nothing is added.

    `platform_version` is the Dynamo version of the platform, "" if unknown. `repository` has the images of Dynamo.
    Accepts any value.
    """
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str):
        return obj
    group, _, version = api_version.partition("/")
    defaulter = _DEFAULTERS.get((kind, version)) if group == GROUP else None
    return at_each_write(defaulter(obj, platform_version, repository) if defaulter else obj)


def at_each_write(obj: KubeObject) -> KubeObject:
    """The object with the defaults that are set at each write; like `default`."""
    return with_targets(with_roles(obj))


def with_targets(obj: KubeObject) -> KubeObject:
    """A v1beta1 graph with the `target` (the type of Grove) of its provider overrides; like `default`."""
    if (obj.get("kind"), obj.get("apiVersion")) != ("DynamoGraphDeployment", f"{GROUP}/v1beta1"):
        return obj
    spec = obj.get("spec")
    targeted = _with_target(spec, SET)
    return _with_each(obj if targeted is spec else {**obj, "spec": targeted}, _COMPONENTS, _with_targets_of)


def with_roles(obj: KubeObject) -> KubeObject:
    """The object with the replicas of its components' roles, which depend on `multinode`; like `default`."""
    kind, api_version, spec = obj.get("kind"), obj.get("apiVersion"), obj.get("spec")
    group, _, version = api_version.partition("/") if isinstance(api_version, str) else ("", "", "")
    if group != GROUP:
        return obj
    if kind == "DynamoComponentDeployment":
        filled = _with_role_replicas(spec)
        return obj if filled is spec else {**obj, "spec": filled}
    if kind == "DynamoGraphDeployment":
        return _with_each(obj, _SERVICES if version == "v1alpha1" else _COMPONENTS, _with_role_replicas)
    return obj


def _graph(obj: KubeObject, platform_version: str, _repository: str, *, components: str) -> KubeObject:
    return _with_origin(_with_each(obj, components, _with_replicas), platform_version)


def _component_v1beta1(obj: KubeObject, _platform_version: str, _repository: str) -> KubeObject:
    name, spec = mapping(obj.get("metadata")).get("name"), obj.get("spec")
    if not isinstance(spec, dict) or spec.get("name") or not isinstance(name, str):
        return obj
    return _with_spec(obj, "name", name) if is_name(name) else obj


def _request_v1alpha1(obj: KubeObject, platform_version: str, repository: str) -> KubeObject:
    """Sets the required field `profilerImage` if it is empty and no image of workers, which is the default, is set."""
    spec = mapping(obj.get("spec"))
    profiling = mapping(spec.get("profilingConfig"))
    if profiling.get("profilerImage") != "" or not platform_version:
        return obj
    if mapping(spec.get("deploymentOverrides")).get("workersImage"):
        return obj
    image = profiler_image(repository=repository, version=platform_version)
    return _with_spec(obj, "profilingConfig", {**profiling, "profilerImage": image})


def _request_v1beta1(obj: KubeObject, platform_version: str, repository: str) -> KubeObject:
    spec = obj.get("spec")
    if not isinstance(spec, dict) or spec.get("image") or not platform_version:
        return obj
    return _with_spec(obj, "image", profiler_image(repository=repository, version=platform_version))


_DEFAULTERS: dict[tuple[str, str], Callable[[KubeObject, str, str], KubeObject]] = {
    ("DynamoGraphDeployment", "v1alpha1"): partial(_graph, components=_SERVICES),
    ("DynamoGraphDeployment", "v1beta1"): partial(_graph, components=_COMPONENTS),
    ("DynamoComponentDeployment", "v1beta1"): _component_v1beta1,
    ("DynamoGraphDeploymentRequest", "v1alpha1"): _request_v1alpha1,
    ("DynamoGraphDeploymentRequest", "v1beta1"): _request_v1beta1,
}


def _with_replicas(component: Any) -> Any:
    if isinstance(component, dict) and component.get("replicas") is None:
        return {**component, "replicas": DEFAULT_REPLICAS}
    return component


def _with_role_replicas(component: Any) -> Any:
    roles = mapping(component).get("roles")
    if not isinstance(roles, list) or not isinstance(component.get("multinode"), dict):
        return component
    count = nodes(component["multinode"])
    filled = [_with_replicas_of(role, count) for role in roles]
    return {**component, "roles": filled} if any(map(operator.is_not, filled, roles)) else component


def _with_replicas_of(role: Any, count: int) -> Any:
    pods = pods_of_role(role.get("name"), count) if isinstance(role, dict) and role.get("replicas") is None else None
    return role if pods is None or pods < 1 else {**role, "replicas": pods}


def _with_target(owner: Any, target: str) -> Any:
    override = mapping(owner).get(FIELD)
    if not isinstance(override, dict) or override.get("target") or override.get("apiVersion") != API_VERSION:
        return owner
    return {**owner, FIELD: {**override, "target": target}}


def _with_targets_of(component: Any) -> Any:
    if not isinstance(component, dict):
        return component
    targeted, roles = _with_target(component, target_of(component)), component.get("roles")
    if not isinstance(roles, list):
        return targeted
    filled = [_with_target(role, CLIQUE) for role in roles]
    return {**targeted, "roles": filled} if any(map(operator.is_not, filled, roles)) else targeted


def _with_each(obj: KubeObject, field: str, fill: Callable[[Any], Any]) -> KubeObject:
    """A graph with `fill` applied to each of its components in `spec.<field>`; the same object if none changes."""
    given = mapping(obj.get("spec")).get(field)
    if field == _SERVICES and isinstance(given, dict):
        named = {name: fill(each) for name, each in given.items()}
        return _with_spec(obj, field, named) if any(map(operator.is_not, named.values(), given.values())) else obj
    if field == _COMPONENTS and isinstance(given, list):
        listed = [fill(each) for each in given]
        return _with_spec(obj, field, listed) if any(map(operator.is_not, listed, given)) else obj
    return obj


def _with_spec(obj: KubeObject, field: str, value: Any) -> KubeObject:
    return {**obj, "spec": {**obj["spec"], field: value}}


def _with_origin(obj: KubeObject, platform_version: str) -> KubeObject:
    """Adds the version of the platform at the creation of a graph, by which later platforms select defaults."""
    metadata = obj.get("metadata")
    if not platform_version or not isinstance(metadata, dict):
        return obj
    annotations = metadata.get("annotations")
    if annotations is None:
        annotations = {}
    if not isinstance(annotations, dict) or annotations.get(OPERATOR_ORIGIN_VERSION) is not None:
        return obj
    stamped = {**annotations, OPERATOR_ORIGIN_VERSION: platform_version}
    return {**obj, "metadata": {**metadata, "annotations": stamped}}
