"""Rules between the fields of one object. Each takes the object as it is, and passes over fields of wrong types."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.composites import ObjectRule
from dynamo_shared.api.embedded.rules import names
from dynamo_shared.api.embedded.rules.fields import CORE
from dynamo_shared.api.embedded.scalars import parsed
from dynamo_shared.api.field_errors import did_you_mean, shown
from dynamo_shared.api.rules import Violations

_HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")
_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"


def environment_variable(value: dict[str, Any]) -> Violations:
    """A variable has a value or a source of it."""
    if _given(value, "value") and _given(value, "valueFrom"):
        yield ("valueFrom",), "must not stand next to a value; keep one of them"


def value_source(value: dict[str, Any]) -> Violations:
    """A source of a value is one thing."""
    given = [name for name, item in value.items() if item is not None]
    if len(given) > 1:
        yield (), f"must have one source, not {' and '.join(given)}"
    elif not given:
        yield (), "must say where the value comes from, such as fieldRef or secretKeyRef"


def environment_source(value: dict[str, Any]) -> Violations:
    """Many variables at once come from one place."""
    given = [name for name in ("configMapRef", "secretRef") if value.get(name) is not None]
    if len(given) > 1:
        yield (), "must have one source, not a configMapRef and a secretRef"
    elif not given:
        yield (), "must say where the variables come from: configMapRef or secretRef"


def volume(value: dict[str, Any]) -> Violations:
    """A volume is of one kind; of none, it is an emptyDir."""
    given = [name for name, item in value.items() if name != "name" and isinstance(item, dict)]
    if len(given) > 1:
        yield (), f"must have one source, not {' and '.join(given)}"


def probe(value: dict[str, Any]) -> Violations:
    """A probe asks one question; one that asks none changes the times of a default one."""
    given = [name for name in _HANDLERS if isinstance(value.get(name), dict)]
    if len(given) > 1:
        yield (), f"must ask one question, not {' and '.join(given)}"


def container(value: dict[str, Any]) -> Violations:
    """Names of ports are unique; a probe that restarts the container fails or not, one that does not ends nothing."""
    known: set[str] = set()
    for index, port in _objects(value, "ports"):
        name = port.get("name")
        if isinstance(name, str) and name:
            if name in known:
                yield ("ports", index, "name"), f"another port of the container has the name {shown(name)}"
            known.add(name)
    for field in ("livenessProbe", "startupProbe"):
        given = value.get(field)
        threshold = given.get("successThreshold") if isinstance(given, dict) else None
        if isinstance(threshold, int) and threshold > 1:
            yield (field, "successThreshold"), f"must be 1 in a {field}, not {threshold}"
    readiness = value.get("readinessProbe")
    if isinstance(readiness, dict) and readiness.get("terminationGracePeriodSeconds") is not None:
        yield ("readinessProbe", "terminationGracePeriodSeconds"), "not in a readinessProbe, which ends nothing"


def pod(value: dict[str, Any]) -> Violations:
    """Names of containers are unique over all lists of them, and nodes are chosen by labels that there can be."""
    first = {
        each.get("name")
        for _, each in _objects(value, "containers")
        if isinstance(each.get("name"), str) and each["name"]
    }
    for index, each in _objects(value, "initContainers"):
        name = each.get("name")
        if isinstance(name, str) and name in first:
            yield ("initContainers", index, "name"), f"a container has the name {shown(name)} already"
    yield from _labels(value, "nodeSelector")


def resources(value: dict[str, Any]) -> Violations:
    """Resources have names that exist, amounts that are not negative, and requests within their limits."""
    amounts = {field: dict(_amounts(value, field)) for field in ("limits", "requests")}
    for field, each in amounts.items():
        for name, amount in each.items():
            if problem := _wrong_resource(name):
                yield (field, name), problem
            elif amount < 0:
                yield (field, name), "must not be negative"
            elif _whole(name) and amount != amount.to_integral_value():
                yield (field, name), f"must be a whole number, not {shown(value[field][name])}"
    for name, request in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is None or _wrong_resource(name):
            continue
        if request > limit:
            yield ("requests", name), f"{value['requests'][name]} is more than the limit, {value['limits'][name]}"
        elif request < limit and _exact(name):
            yield ("requests", name), f"must equal the limit, {value['limits'][name]}; {name} cannot be shared out"


def toleration(value: dict[str, Any]) -> Violations:
    """Which fields of a toleration go together."""
    operator = value.get("operator") or "Equal"
    if operator == "Exists" and value.get("value"):
        yield ("value",), "must be empty where the operator is Exists"
    if not value.get("key") and operator != "Exists":
        yield ("operator",), "must be Exists where there is no key"
    if isinstance(key := value.get("key"), str) and key and (problem := names.wrong_key(key)):
        yield ("key",), f"{shown(key)} {problem}"
    if value.get("tolerationSeconds") is not None and value.get("effect") != "NoExecute":
        yield ("effect",), "must be NoExecute where there are tolerationSeconds"


def metadata(value: dict[str, Any]) -> Violations:
    """Labels and annotations have valid keys, and labels valid values."""
    yield from _labels(value, "labels")
    given = value.get("annotations")
    for key in given if isinstance(given, dict) else ():
        # Their keys may be upper-case before the slash, too.
        if problem := names.wrong_key(str(key).lower()):
            yield ("annotations", key), problem


OBJECT_RULES: dict[str, tuple[ObjectRule, ...]] = {
    f"{CORE}Container": (container,),
    f"{CORE}EnvVar": (environment_variable,),
    f"{CORE}EnvFromSource": (environment_source,),
    f"{CORE}EnvVarSource": (value_source,),
    f"{CORE}PodSpec": (pod,),
    f"{CORE}Probe": (probe,),
    f"{CORE}ResourceRequirements": (resources,),
    f"{CORE}Toleration": (toleration,),
    f"{CORE}Volume": (volume,),
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": (metadata,),
}


def _given(value: dict[str, Any], field: str) -> bool:
    return value.get(field) not in (None, "")


def _labels(value: dict[str, Any], field: str) -> Violations:
    given = value.get(field)
    for key, text in given.items() if isinstance(given, dict) else ():
        problem = names.wrong_key(str(key)) or (names.wrong_label_value(text) if isinstance(text, str) else "")
        if problem:
            yield (field, key), problem


def _objects(value: dict[str, Any], field: str) -> Iterator[tuple[int, dict[str, Any]]]:
    items = value.get(field)
    for index, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield index, item


def _amounts(value: dict[str, Any], field: str) -> Iterator[tuple[str, Decimal]]:
    given = value.get(field)
    for name, amount in given.items() if isinstance(given, dict) else ():
        if isinstance(name, str) and amount is not None:
            try:
                yield name, parsed(amount)
            except quantity.InvalidQuantity:
                continue


def _wrong_resource(name: str) -> str:
    if "/" in name:
        return names.wrong_key(name)
    if name in _STANDARD_RESOURCES or name.startswith(_HUGE_PAGES):
        return ""
    if name == "gpu":
        return "no such resource; a GPU is called nvidia.com/gpu here"
    suggestion = did_you_mean(name, _STANDARD_RESOURCES) or "; others have a domain before them, such as nvidia.com/gpu"
    return f"no such resource{suggestion}"


def _whole(name: str) -> bool:
    """Whether pieces are counted, as of GPUs."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def _exact(name: str) -> bool:
    """Whether a request must equal its limit, since nothing of the kind can be promised twice."""
    return _whole(name) or name.startswith(_HUGE_PAGES)
