"""The registry of deprecated parts of the API, with their replacements: for warnings, CRD descriptions and documents.

A field has an entry if another field replaces it. The entry of v1alpha1 covers fields that v1beta1 only renamed. Notice
is at least two releases; removal comes with the next major release.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.rules import Location

GRAPH, COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
ADAPTER, REQUEST = "DynamoGraphDeploymentScalingAdapter", "DynamoGraphDeploymentRequest"
_ALPHA = "v1alpha1"
# The release that introduced v1beta1, and deprecated everything that v1beta1 replaces.
_SINCE_BETA = "v0.11.0"
_NEXT_MAJOR = "v1.0"


@dataclass(frozen=True, slots=True)
class Deprecation:
    """A deprecated version, kind or field.

    `path` is in inventory form (`spec.services{}.autoscaling`), "" for all of `kinds` in `version`. `replacement` is a
    phrase that says what to write instead. `silent` is a value that gives no warning, because a server sets it by
    default.

    Entries for names and documents have as `kinds` their category in the file of a release (`labels`, `settings`,
    `events`), as `path` the name or field, and as `version` the document's version, or "".
    """

    kinds: tuple[str, ...]
    version: str
    path: str
    since: str
    replacement: str
    removed_in: str = _NEXT_MAJOR
    ignored: bool = False
    silent: bool | None = None

    @property
    def effect(self) -> str:
        """The state for messages: deprecated, or also without effect."""
        return "deprecated and ignored" if self.ignored else "deprecated"


def _of_component(name: str, since: str, replacement: str, *, ignored: bool = False) -> tuple[Deprecation, ...]:
    """A field of both the services of a graph and component deployments."""
    return (
        Deprecation((GRAPH,), _ALPHA, f"spec.services{{}}.{name}", since, replacement, ignored=ignored),
        Deprecation((COMPONENT,), _ALPHA, f"spec.{name}", since, replacement, ignored=ignored),
    )


def _of_request(name: str, replacement: str, silent: bool | None = None) -> Deprecation:
    return Deprecation((REQUEST,), _ALPHA, f"spec.{name}", _SINCE_BETA, replacement, silent=silent)


def _legacy(kind: str, replacement: str) -> Deprecation:
    return Deprecation((kind,), _ALPHA, "", "v0.3.0", replacement)


DEPRECATIONS: tuple[Deprecation, ...] = (
    Deprecation((GRAPH, COMPONENT, ADAPTER, REQUEST), _ALPHA, "", _SINCE_BETA, "write apiVersion: nvidia.com/v1beta1"),
    _legacy("DynamoDeployment", "write a DynamoGraphDeployment (dynamoctl convert creates one)"),
    _legacy(
        "DynamoNimDeployment",
        "write a DynamoGraphDeployment (dynamoctl convert creates one), or a DynamoComponentDeployment for one component",
    ),
    _legacy("DynamoNimRequest", "write the built image in the pod template of a DynamoGraphDeployment"),
    Deprecation(
        (GRAPH,),
        _ALPHA,
        "spec.services{}.autoscaling",
        "v0.7.0",
        "enable scalingAdapter, without which this field has no effect, and write the autoscaler in the annotation "
        "nvidia.com/dynamo-autoscaling",
    ),
    Deprecation(
        (COMPONENT,),
        _ALPHA,
        "spec.autoscaling",
        "v0.7.0",
        "point an HPA or KEDA at the DynamoComponentDeployment, or write a graph with scalingAdapter",
        ignored=True,
    ),
    *_of_component(
        "dynamoNamespace",
        "v0.8.0",
        "leave it out: it follows from the namespace and the name of the graph",
        ignored=True,
    ),
    *_of_component("ingress", _SINCE_BETA, "write an Ingress or an HTTPRoute to the component's Service"),
    *_of_component("labels", _SINCE_BETA, "write extraPodMetadata.labels, or podTemplate.metadata.labels in v1beta1"),
    *_of_component(
        "annotations", _SINCE_BETA, "write extraPodMetadata.annotations, or podTemplate.metadata.annotations in v1beta1"
    ),
    Deprecation(
        (GRAPH,),
        _ALPHA,
        "spec.pvcs",
        _SINCE_BETA,
        "create the PersistentVolumeClaim yourself, and mount it by its name",
    ),
    _of_request("useMocker", "v1beta1 has features.mocker.enabled", silent=False),
    _of_request("enableGpuDiscovery", "v1beta1 discovers values that hardware omits: leave it out", silent=True),
    _of_request("profilingConfig.profilerImage", "v1beta1 has image"),
    _of_request("profilingConfig.config", "v1beta1 has sla, workload, modelCache and features.planner"),
    _of_request("profilingConfig.configMapRef", "v1beta1 has overrides.dgd"),
    _of_request("profilingConfig.outputPVC", "the results are in the ConfigMap dgdr-output-<name>: leave it out"),
    _of_request(
        "profilingConfig.resources", "v1beta1 has overrides.profilingJob.template.spec.containers[0].resources"
    ),
    _of_request("profilingConfig.tolerations", "v1beta1 has overrides.profilingJob.template.spec.tolerations"),
    _of_request("profilingConfig.nodeSelector", "v1beta1 has overrides.profilingJob.template.spec.nodeSelector"),
    _of_request("deploymentOverrides", "v1beta1 has overrides.dgd"),
)


#: Kinds and versions with entries: the trees of others are not cached, because an object may name any kind.
_COVERED = frozenset((kind, each.version) for each in DEPRECATIONS for kind in each.kinds)


def of(kind: str, version: str) -> tuple[Deprecation, ...]:
    """Entries of a kind in a version: first the entry for the whole version, then fields in the order of the registry."""
    return tuple(each for each in DEPRECATIONS if each.version == version and kind in each.kinds)


def used(obj: Any) -> Iterator[tuple[str, Deprecation]]:
    """Deprecated parts that an object uses, each with its path in the object; "" for the kind and version. Accepts any value."""
    if not isinstance(obj, dict):
        return
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(api_version, str) or not api_version.startswith("nvidia.com/"):
        return
    version = api_version.removeprefix("nvidia.com/")
    if (kind, version) in _COVERED:
        yield from _used(obj, _tree(kind, version), ())


def note(deprecation: Deprecation) -> str:
    """One sentence for the description of a field, a version or a kind."""
    text = f"{deprecation.effect}: {deprecation.replacement}. Removed in {deprecation.removed_in}."
    return text[0].upper() + text[1:]


def warning(path: str, deprecation: Deprecation, kind: str = "") -> str:
    """The warning for a client. `path` is that of `used`; if it is "", the warning is about the version of `kind`."""
    subject = path or f"nvidia.com/{deprecation.version} {kind or ', '.join(deprecation.kinds)}"
    return (
        f"{subject} is {deprecation.effect} since {deprecation.since}, and is removed in {deprecation.removed_in}: "
        f"{deprecation.replacement}"
    )


@dataclass(slots=True)
class _Step:
    """The deprecations at a location, and the steps to deprecations below it; "{}" stands for every key of a map."""

    deprecation: Deprecation | None = None
    below: dict[str, _Step] = field(default_factory=dict)


@cache
def _tree(kind: str, version: str) -> _Step:
    """Entries of a kind as a tree of locations, so that one traversal of the object checks all of them."""
    root = _Step()
    for each in of(kind, version):
        step = root
        for part in filter(None, each.path.replace("{}", ".{}").split(".")):
            step = step.below.setdefault(part, _Step())
        step.deprecation = each
    return root


def _used(value: Any, step: _Step, location: Location) -> Iterator[tuple[str, Deprecation]]:
    deprecation = step.deprecation
    if (
        deprecation is not None
        and value is not None
        and (deprecation.silent is None or value is not deprecation.silent)
    ):
        yield path_of(location), deprecation
    if not step.below or not isinstance(value, dict):
        return
    for part, below in step.below.items():
        if part == "{}":
            for key, item in value.items():
                yield from _used(item, below, (*location, str(key)))
        elif part in value:
            yield from _used(value[part], below, (*location, part))
