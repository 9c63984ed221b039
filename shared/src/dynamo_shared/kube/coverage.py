"""Whether an object from the API server has everything that was applied. Pure.

A comparison for equality would always report a difference: the server adds defaults, controllers and people add labels,
and amounts return in another notation. So the comparison is one-sided: all desired content must exist.

- Objects: each desired key is covered; other keys may exist, except in a selector, where each key excludes pods or nodes.
- Lists of plain values: equal. Lists of objects: equally long, and covered pairwise, matched by the key of an entry
  (`mountPath`, `name`, ...), otherwise by position. The order of entries with a key does not count: the server keeps
  its own.
- finalizers and ownerReferences are shared by all managers: they must include the desired entries.
- A desired None requires nothing. Empty, false and zero values equal absent ones, because the server omits them from
  its answers, except in the few fields in which absent has another meaning.
- Amounts (`1000m` and `1`, `1Gi` and `1073741824`) are compared by value in fields for amounts. A number equals the
  string of its digits (int-or-string), but not in `value`: environment variables are strings.
"""

from collections.abc import Callable, Hashable
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.objects import KubeObject

# Strings below these keys are amounts.
_AMOUNTS = frozenset({"divisor", "overhead", "resources", "sizeLimit", "storage", "target", "tolerance"})

# Lists in metadata to which other managers add entries, which must stay.
_SHARED_LISTS = frozenset({"finalizers", "ownerReferences"})

# Maps that belong to one manager as a whole. Kubernetes calls them atomic.
_SELECTORS = frozenset({"nodeSelector", "selector"})

# Fields in which {}, false or 0 differs from absent: pointers in Kubernetes' types for which nil has another meaning.
_EMPTY_COUNTS = frozenset(
    {
        "allowPrivilegeEscalation",
        "automountServiceAccountToken",
        "emptyDir",
        "enableServiceLinks",
        "fsGroup",
        "hostUsers",
        "replicas",
        "runAsGroup",
        "runAsUser",
        "terminationGracePeriodSeconds",
        "tolerationSeconds",
    }
)

_MarkOf = Callable[[dict[str, Any]], Hashable]
_Index = dict[Hashable, dict[str, Any]]

# Keys of list entries, tried in this order. The `name` of a volumeMount is the name of its volume, so `mountPath` comes
# first; the default protocol is TCP.
_IDENTITIES: tuple[tuple[str, _MarkOf], ...] = (
    ("mountPath", lambda entry: entry.get("mountPath")),
    ("devicePath", lambda entry: entry.get("devicePath")),
    ("uid", lambda entry: entry.get("uid")),
    ("containerPort", lambda entry: _port(entry, "containerPort")),
    ("port", lambda entry: _port(entry, "port")),
    ("name", lambda entry: entry.get("name")),
)


def missing(desired: KubeObject, observed: KubeObject) -> str:
    """Path of the first desired value that `observed` lacks, or of a foreign key of a selector; empty if nothing differs.

    Example of a path: `spec.template.spec.containers[name=main].image`.
    """
    return _missing(desired, observed, "", "", amounts=False)


def drop_foreign(desired: KubeObject, observed: KubeObject) -> KubeObject:
    """A copy of `observed` without the undesired entries of lists and selectors that `desired` has.

    For a replace after an apply: an apply removes only entries that this manager added, so entries of another manager
    stay, even in a list that this manager owns. Missing entries are not added, nothing else changes, and shared lists
    (finalizers, owner references) stay as they are.
    """
    result: KubeObject = _drop(desired, observed, "")
    return result


def _missing(desired: Any, observed: Any, path: str, key: str, *, amounts: bool) -> str:
    if isinstance(desired, dict) and isinstance(observed, dict):
        foreign = _foreign(desired, observed, key)
        return f"{path}.{foreign[0]}" if foreign else _missing_in_object(desired, observed, path, amounts=amounts)
    if isinstance(desired, list) and isinstance(observed, list):
        return _missing_in_list(desired, observed, path, key, amounts=amounts)
    return "" if _same_value(desired, observed, key, amounts=amounts) else path


def _missing_in_object(desired: dict[str, Any], observed: dict[str, Any], path: str, *, amounts: bool) -> str:
    for key, value in desired.items():
        actual = observed.get(key)
        if value is None or (type(actual) is type(value) and actual == value):
            # Usual case. As in lists: only Python considers 1 and true in them equal.
            continue
        inner = f"{path}.{key}" if path else key
        if actual is None:
            if key in _EMPTY_COUNTS or not _is_nothing(value):
                return inner
        elif missing := _missing(value, actual, inner, key, amounts=amounts or key in _AMOUNTS):
            return missing
    return ""


def _missing_in_list(desired: list[Any], observed: list[Any], path: str, key: str, *, amounts: bool) -> str:
    if desired == observed:
        # Usual case. Only Python considers 1 and true equal: no field of Kubernetes accepts both.
        return ""
    shared = _is_shared(path, key)
    if not shared and len(desired) != len(observed):
        return path
    identity = _identity(desired, observed)
    if identity is None:
        if shared:
            return "" if all(entry in observed for entry in desired) else path
        for number, (value, actual) in enumerate(zip(desired, observed, strict=True)):
            if missing := _missing(value, actual, f"{path}[{number}]", key, amounts=amounts):
                return missing
        return ""
    name, desired_by, observed_by = identity
    for identifier, value in desired_by.items():
        inner = f"{path}[{name}={identifier[0] if isinstance(identifier, tuple) else identifier}]"
        if identifier not in observed_by:
            return inner
        if missing := _missing(value, observed_by[identifier], inner, "", amounts=amounts):
            return missing
    return ""


def _drop(desired: Any, observed: Any, path: str) -> Any:
    if isinstance(desired, dict) and isinstance(observed, dict):
        foreign = _foreign(desired, observed, path.rpartition(".")[2])
        return {
            key: _drop(desired[key], actual, f"{path}.{key}" if path else key) if key in desired else actual
            for key, actual in observed.items()
            if key not in foreign
        }
    if not (isinstance(desired, list) and isinstance(observed, list)) or _is_shared(path, path.rpartition(".")[2]):
        return observed
    identity = _identity(desired, observed)
    if identity is not None:
        _name, desired_by, observed_by = identity
        return [
            _drop(desired_by[identifier], actual, f"{path}[]")
            for identifier, actual in observed_by.items()
            if identifier in desired_by
        ]
    if all(isinstance(entry, dict) for entry in (*desired, *observed)):
        return [_drop(value, actual, f"{path}[]") for value, actual in zip(desired, observed, strict=False)]
    return [entry for entry in observed if entry in desired]


def _identity(desired: list[Any], observed: list[Any]) -> tuple[str, _Index, _Index] | None:
    """The key of the entries: its name, and both sides indexed by it; None if there is no key."""
    if not desired or not all(isinstance(entry, dict) for entry in (*desired, *observed)):
        return None
    for name, identify in _IDENTITIES:
        desired_by = _indexed(desired, identify)
        if desired_by is None:
            continue
        observed_by = _indexed(observed, identify)
        if observed_by is not None:
            return name, desired_by, observed_by
    return None


def _indexed(entries: list[dict[str, Any]], identify: _MarkOf) -> _Index | None:
    """Entries by key, in their order; None if one has no key, or two have the same."""
    index: _Index = {}
    for entry in entries:
        identifier = identify(entry)
        # Desired content comes from users: a name may have any type until the API server refuses it.
        if not isinstance(identifier, str | int | tuple) or identifier in index:
            return None
        index[identifier] = entry
    return index


def _port(entry: dict[str, Any], field: str) -> tuple[Any, str] | None:
    number = entry.get(field)
    return None if not isinstance(number, str | int) else (number, str(entry.get("protocol") or "TCP"))


def _foreign(desired: dict[str, Any], observed: dict[str, Any], key: str) -> list[str]:
    """Keys of a selector that are not desired. An empty one requires nothing."""
    return sorted(observed.keys() - desired.keys()) if key in _SELECTORS and desired else []


def _is_shared(path: str, key: str) -> bool:
    return key in _SHARED_LISTS and path == f"metadata.{key}"


def _is_nothing(value: Any) -> bool:
    """Whether the API server omits the value: empty, false, zero, or containing only such values."""
    if isinstance(value, dict):
        return all(_is_nothing(inner) for inner in value.values())
    return not value


def _same_value(desired: Any, observed: Any, key: str, *, amounts: bool) -> bool:
    if isinstance(desired, bool) or isinstance(observed, bool):
        return desired is observed
    if desired == observed:
        return True
    if amounts and isinstance(desired, (str, int, float)) and isinstance(observed, (str, int, float)):
        try:
            return quantity.equal(desired, observed)
        except quantity.InvalidQuantity:
            return False
    pair = (desired, observed)
    if key != "value" and any(isinstance(one, int) for one in pair) and any(isinstance(one, str) for one in pair):
        return str(desired) == str(observed)
    return False
