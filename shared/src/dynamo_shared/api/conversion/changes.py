"""The differences of two JSON values, as a short list of changes that can be stored and applied.

A change is a JSON array that begins with a path. A step of a path is the key of an object, `{"name": "main"}` for an
item of a list, or a number for an item without a name. `[path, value]` sets a value, `[path]` removes it, `[path, key,
values]` sorts a list by a key of its items.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

Changes = list[list[Any]]
Keys = Mapping[str, tuple[str, ...]]
#: Objects and lists that were copied and may be modified in place, by `id`.
Copies = dict[int, Any]

#: Keys that identify the items of a list, by the name of the list; () for lists whose items are identified by position.
#: Any other list is compared as one value.
KEYS: Keys = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "envs": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath", "mountPoint"),
    "conditions": ("type",),
}
#: Limit of the changes of one value. If there are more, changes are combined into changes of values above them.
MAX_CHANGES = 500
_ABSENT: Any = object()


def diff(base: Any, desired: Any, keys: Keys = KEYS) -> Changes:
    """The changes that turn `base` into `desired`, each as close to the root as possible without touching equal values."""
    if base == desired:
        return []
    comparison = _Comparison(keys)
    comparison.compare(base, desired, [])
    differences = comparison.differences
    if len(differences) <= MAX_CHANGES:
        return differences
    # Counted first, because a change is expensive to create, and there may be thousands.
    depths = (
        depth for depth in range(6, 1, -1) if len({repr(change[0][:depth]) for change in differences}) <= MAX_CHANGES
    )
    return _coarser(differences, desired, next(depths, 1))


def apply_changes(base: Any, changes: Changes) -> Any:
    """`base` after the changes, without changes whose location does not exist. `base` is not modified."""
    copies: Copies = {}
    for change in changes:
        changed = _applied(base, change, 0, copies)
        if changed is not _ABSENT:
            base = changed
    return base


def well_formed(changes: Any) -> bool:
    """Whether an untrusted value is a valid list of changes, and not too long."""
    return isinstance(changes, list) and len(changes) <= MAX_CHANGES and all(_is_change(change) for change in changes)


def _is_change(change: Any) -> bool:
    if not isinstance(change, list) or not 1 <= len(change) <= 3 or not isinstance(change[0], list):
        return False
    if len(change) == 3 and not (isinstance(change[1], str) and isinstance(change[2], list)):
        return False
    if len(change) != 2 and not change[0]:
        return False
    return all(_is_step(step) for step in change[0])


def _is_step(step: Any) -> bool:
    if isinstance(step, dict):
        return len(step) == 1 and all(isinstance(value, str) for value in step.values())
    return isinstance(step, str) or (type(step) is int and step >= 0)


class _Comparison:
    """Compares two values recursively, and records their differences."""

    def __init__(self, keys: Keys) -> None:
        self.differences: Changes = []
        self._keys = keys

    def compare(self, base: Any, desired: Any, path: list[Any]) -> None:
        if isinstance(base, dict) and isinstance(desired, dict):
            for key in sorted(base.keys() | desired.keys()):
                self._entry(base.get(key, _ABSENT), desired.get(key, _ABSENT), [*path, key])
            return
        if isinstance(base, list) and isinstance(desired, list) and base and desired:
            keys = self._keys.get(path[-1]) if path and isinstance(path[-1], str) else None
            if keys == ():
                self._by_place(base, desired, path)
                return
            for key in keys or ():
                before, after = _by_key(base, key), _by_key(desired, key)
                if before is not None and after is not None:
                    self._by_name(before, after, key, path)
                    return
        self.differences.append([path, desired])

    def _entry(self, base: Any, desired: Any, path: list[Any]) -> None:
        if desired is _ABSENT:
            self.differences.append([path])
        elif base is _ABSENT:
            self.differences.append([path, desired])
        elif base != desired:
            self.compare(base, desired, path)

    def _by_name(self, base: dict[str, Any], desired: dict[str, Any], key: str, path: list[Any]) -> None:
        added = [name for name in desired if name not in base]
        for name in [*base, *added]:
            self._entry(base.get(name, _ABSENT), desired.get(name, _ABSENT), [*path, {key: name}])
        if [*(name for name in base if name in desired), *added] != list(desired):
            self.differences.append([path, key, list(desired)])

    def _by_place(self, base: list[Any], desired: list[Any], path: list[Any]) -> None:
        for index in range(min(len(base), len(desired))):
            self._entry(base[index], desired[index], [*path, index])
        self.differences += [[[*path, index], desired[index]] for index in range(len(base), len(desired))]
        self.differences += [[[*path, index]] for index in reversed(range(len(desired), len(base)))]


def _by_key(items: list[Any], key: str) -> dict[str, Any] | None:
    """Items by the value of a key, in order; None if an item has no such value, or two have the same."""
    named = {item[key]: item for item in items if isinstance(item, dict) and isinstance(item.get(key), str)}
    return named if len(named) == len(items) else None


def _coarser(changes: Changes, desired: Any, depth: int) -> Changes:
    """Equivalent changes, of which the ones in the locations (of depth `depth`) with the most changes are combined,
    until there are at most MAX_CHANGES.

    Changes are combined only where necessary: a combined change also replaces values that another version added there.
    """
    places = Counter(name for change in changes if (name := _above(change, depth)) is not None)
    remaining, coarse = len(changes), set()
    for name, count in places.most_common():
        if remaining <= MAX_CHANGES:
            break
        coarse.add(name)
        remaining -= count - 1
    differences: Changes = []
    done: set[str] = set()
    for change in changes:
        name = _above(change, depth)
        if name is None or name not in coarse:
            differences.append(change)
        elif name not in done:
            done.add(name)
            value = _at(desired, change[0][:depth])
            differences.append([change[0][:depth]] if value is _ABSENT else [change[0][:depth], value])
    return differences


def _above(change: list[Any], depth: int) -> str | None:
    """The location of the given depth that contains a change; None for a change that is not below that depth."""
    path = change[0]
    return None if len(path) < depth or (len(path) == depth and len(change) == 2) else repr(path[:depth])


def _at(node: Any, path: list[Any]) -> Any:
    for step in path:
        at = _place(node, step)
        if at is None or at == -1:
            return _ABSENT
        node = node[at]
    return node


def _applied(node: Any, change: list[Any], depth: int, copies: Copies) -> Any:
    """The node after the change; _ABSENT if the location of the change does not exist."""
    path = change[0]
    if depth == len(path):
        return _leaf(node, change)
    step = path[depth]
    at = _place(node, step)
    if at is None:
        return _ABSENT
    last = depth + 1 == len(path)
    existing = _ABSENT if at == -1 else node[at]
    if existing is _ABSENT and not (last and len(change) == 2):
        return _ABSENT
    if last and len(change) == 1:
        changed = _ABSENT
    else:
        changed = _applied(existing, change, depth + 1, copies)
        if changed is _ABSENT:
            return _ABSENT
    return _with(node, step, at, changed, copies)


def _place(node: Any, step: Any) -> Any:
    """The key or index of a step in a node; -1 if it could be added there; None if the node has no such child."""
    if isinstance(step, str):
        if not isinstance(node, dict):
            return None
        return step if step in node else -1
    if not isinstance(node, list):
        return None
    if isinstance(step, int):
        return step if step < len(node) else (-1 if step == len(node) else None)
    ((key, name),) = step.items()
    for index, item in enumerate(node):
        if isinstance(item, dict) and item.get(key) == name:
            return index
    return -1


def _with(node: Any, step: Any, at: Any, value: Any, copies: Copies) -> Any:
    if id(node) not in copies:
        node = node.copy()
        copies[id(node)] = node
    if value is _ABSENT:
        del node[at]
    elif at == -1 and isinstance(node, list):
        node.append(value)
    else:
        node[step if at == -1 else at] = value
    return node


def _leaf(node: Any, change: list[Any]) -> Any:
    if len(change) == 3:
        return _sorted(node, change[1], change[2])
    value = change[1]
    # The change was recorded when there was no value; a value that was added since then has priority.
    if isinstance(value, dict) and isinstance(node, dict):
        return _merged(node, value)
    return value


def _merged(live: dict[str, Any], preserved: dict[str, Any]) -> dict[str, Any]:
    result = dict(live)
    for key, value in preserved.items():
        existing = live.get(key, _ABSENT)
        if existing is _ABSENT:
            result[key] = value
        elif isinstance(existing, dict) and isinstance(value, dict):
            result[key] = _merged(existing, value)
        elif isinstance(existing, str) and type(value) in (int, float) and str(value) == existing:
            # A quantity: one version stores it as a string, the other as its author wrote it.
            result[key] = value
    return result


def _sorted(items: Any, key: str, order: list[Any]) -> Any:
    named = _by_key(items, key) if isinstance(items, list) else None
    if named is None:
        return _ABSENT
    first = {name: named[name] for name in order if isinstance(name, str) and name in named}
    return list((first | named).values())
