"""Rules of the sources of variables and volumes. Objects may have fields of any type."""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.rules import names, scheduling
from dynamo_shared.api.embedded.scalars import parsed
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.rules import Location, Violations
from dynamo_shared.api.untrusted.reading import items, mapping

ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_ALONE = "ReadWriteOncePod"
#: Prefixes of the paths of pod fields; the allowed fields differ between versions of Kubernetes.
_PARTS_OF_A_POD = ("metadata.", "spec.", "status.")
_LABELS, _ANNOTATIONS = "metadata.labels", "metadata.annotations"
_RESOURCE = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.*)", re.DOTALL)
_CPU = (Decimal(1), Decimal("0.001"))
_BYTES = (Decimal(1), *(Decimal(base) ** power for base in (1000, 1024) for power in range(1, 7)))
_OF_FILES = ("fieldRef", "resourceFieldRef")
#: Sources with `items`, which map keys to files.
_WITH_ITEMS = ("secret", "configMap", "downwardAPI")


def field(value: dict[str, Any]) -> Violations:
    """A field of the pod, as the source of a variable or a file."""
    version, path = value.get("apiVersion"), value.get("fieldPath")
    if isinstance(version, str) and version not in ("", "v1"):
        yield ("apiVersion",), f"must be v1, not {shown(version)}: leave it out"
    if not isinstance(path, str) or not path:
        return
    # Like Kubernetes, up to the first bracket.
    whole, bracket, key = path.removesuffix("']").partition("['") if path.endswith("']") else (path, "", "")
    if not whole or not bracket:
        if not path.startswith(_PARTS_OF_A_POD):
            yield ("fieldPath",), f"{shown(path)} is not a field of a pod; examples: metadata.name, status.podIP"
    elif whole not in (_LABELS, _ANNOTATIONS):
        yield ("fieldPath",), f"{shown(whole)} has no keys; only {_LABELS} and {_ANNOTATIONS} have keys"
    elif problem := names.wrong_key(key.lower() if whole == _ANNOTATIONS else key):
        yield ("fieldPath",), f"{shown(key)} {problem}"


def variable(value: dict[str, Any]) -> Violations:
    """A variable refers to one label or annotation, not to all of them."""
    path = mapping(value.get("fieldRef")).get("fieldPath")
    if path in (_LABELS, _ANNOTATIONS):
        yield ("fieldRef", "fieldPath"), f"selects all keys, but a variable has one value; write {path}['KEY']"


def resource(value: dict[str, Any]) -> Violations:
    """A container resource, as the source of a variable or a file, and its divisor."""
    name, divisor = value.get("resource"), value.get("divisor")
    if not isinstance(name, str) or not name:
        return
    if (known := _RESOURCE.fullmatch(name)) is None:
        yield (
            ("resource",),
            f"{shown(name)} is not allowed; limits. or requests. and one of cpu, memory, ephemeral-storage, hugepages-SIZE",
        )
        return
    try:
        unit = parsed(divisor) if divisor is not None else Decimal(0)
    except quantity.InvalidQuantity:
        return
    units, words = (_CPU, "1 or 1m") if known[2] == "cpu" else (_BYTES, "1, or 1 with one of k, M, G, Ki, Mi, Gi, ...")
    if unit and unit not in units:
        yield ("divisor",), f"must be {words} for {known[2]}, not {shown(divisor)}"


def file(value: dict[str, Any]) -> Violations:
    """A file has one source: a field of the pod, or a resource of a container, which must be named."""
    given = [name for name in _OF_FILES if value.get(name) is not None]
    if len(given) != 1:
        yield (), "must have one source: fieldRef or resourceFieldRef"
    elif isinstance(source := value.get("resourceFieldRef"), dict) and not source.get("containerName"):
        yield ("resourceFieldRef", "containerName"), "required: the container with the resource"


def projected(value: dict[str, Any]) -> Violations:
    """Each item has one source, and no two files have the same path."""
    first: dict[str, int] = {}
    for index, source in enumerate(items(value.get("sources"))):
        given = [name for name, item in mapping(source).items() if isinstance(item, dict)]
        if len(given) > 1:
            yield ("sources", index), f"must have one source, not {' and '.join(given)}: add an item for each"
        for at, path in _paths(mapping(source)):
            if path in first:
                yield (
                    ("sources", index, *at),
                    f"{shown(path)} is already the path of another file (sources[{first[path]}])",
                )
            first.setdefault(path, index)


def _paths(source: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    for kind in _WITH_ITEMS:
        for index, each in enumerate(items(mapping(source.get(kind)).get("items"))):
            path = mapping(each).get("path")
            if isinstance(path, str) and path:
                yield (kind, "items", index, "path"), path


def ephemeral(value: dict[str, Any]) -> Violations:
    """The claim template of an ephemeral volume has access modes and a size."""
    template = value.get("volumeClaimTemplate")
    if template is None:
        yield ("volumeClaimTemplate",), "required: the claim for each pod"
        return
    spec = mapping(template).get("spec")
    if not isinstance(spec, dict):
        return
    at = ("volumeClaimTemplate", "spec")
    modes = spec.get("accessModes")
    if not modes:
        yield (*at, "accessModes"), f"required: one of {', '.join(ACCESS_MODES)}"
    if _ALONE in items(modes) and any(mode in ACCESS_MODES and mode != _ALONE for mode in items(modes)):
        yield (*at, "accessModes"), f"must be only {_ALONE}, or only other modes"
    for place, problem in scheduling.selector(mapping(spec.get("selector"))):
        yield (*at, "selector", *place), problem
    yield from _storage(spec, at)


def _storage(spec: dict[str, Any], at: Location) -> Violations:
    place = (*at, "resources", "requests", "storage")
    resources = spec.get("resources")
    requests = mapping(resources).get("requests")
    if not isinstance(resources, dict | None) or not isinstance(requests, dict | None):
        return
    size = mapping(requests).get("storage")
    if size is None:
        yield place, "required: the size of the claim"
        return
    try:
        amount = parsed(size)
    except quantity.InvalidQuantity:
        return
    if amount <= 0:
        yield place, f"must be above 0, not {shown(size)}"
