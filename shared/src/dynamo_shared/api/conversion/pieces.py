"""What one value has and another one has not, as a short list of pieces that can be stored and put back.

A piece is a JSON array, its first item a path: keys of objects, `{"name": "main"}` for the item of a list, numbers where
items have no name. `[path, value]` puts a value there, `[path]` takes it away, `[path, key, values]` sorts a list.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

Pieces = list[list[Any]]
Keys = Mapping[str, tuple[str, ...]]
#: Objects and lists that were made here and so may be changed in place, by identity.
Copies = dict[int, Any]

#: Names of lists and what identifies their items; () for lists where the place does. Other lists are one value.
KEYS: Keys = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "envs": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath", "mountPoint"),
    "conditions": ("type",),
}
#: Pieces of one value; where more are needed they are taken nearer to the root.
MAX_PIECES = 500
_GONE: Any = object()


def difference(base: Any, desired: Any, keys: Keys = KEYS) -> Pieces:
    """Pieces that make `desired` of `base`, each as near to the root as there is nothing else below it."""
    if base == desired:
        return []
    comparison = _Comparison(keys)
    comparison.compare(base, desired, [])
    differences = comparison.differences
    if len(differences) <= MAX_PIECES:
        return differences
    # Counted before any is made: making one looks for its place, and there may be thousands of them.
    depths = (
        depth for depth in range(6, 1, -1) if len({repr(piece[0][:depth]) for piece in differences}) <= MAX_PIECES
    )
    return _coarser(differences, desired, next(depths, 1))


def put(base: Any, pieces: Pieces) -> Any:
    """`base` with pieces; those whose place is gone are passed over. What is changed is copied first."""
    copies: Copies = {}
    for piece in pieces:
        changed = _put(base, piece, 0, copies)
        if changed is not _GONE:
            base = changed
    return base


def well_formed(pieces: Any) -> bool:
    """Whether a value that was read somewhere is a list of pieces, and none that is made to burn time."""
    return isinstance(pieces, list) and len(pieces) <= MAX_PIECES and all(_is_piece(piece) for piece in pieces)


def _is_piece(piece: Any) -> bool:
    if not isinstance(piece, list) or not 1 <= len(piece) <= 3 or not isinstance(piece[0], list):
        return False
    if len(piece) == 3 and not (isinstance(piece[1], str) and isinstance(piece[2], list)):
        return False
    if len(piece) != 2 and not piece[0]:
        return False
    return all(_is_step(step) for step in piece[0])


def _is_step(step: Any) -> bool:
    if isinstance(step, dict):
        return len(step) == 1 and all(isinstance(value, str) for value in step.values())
    return isinstance(step, str) or (type(step) is int and step >= 0)


class _Comparison:
    """Walks two values side by side and records where they part."""

    def __init__(self, keys: Keys) -> None:
        self.differences: Pieces = []
        self._keys = keys

    def compare(self, base: Any, desired: Any, path: list[Any]) -> None:
        if isinstance(base, dict) and isinstance(desired, dict):
            for key in sorted(base.keys() | desired.keys()):
                self._entry(base.get(key, _GONE), desired.get(key, _GONE), [*path, key])
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
        if desired is _GONE:
            self.differences.append([path])
        elif base is _GONE:
            self.differences.append([path, desired])
        elif base != desired:
            self.compare(base, desired, path)

    def _by_name(self, base: dict[str, Any], desired: dict[str, Any], key: str, path: list[Any]) -> None:
        added = [name for name in desired if name not in base]
        for name in [*base, *added]:
            self._entry(base.get(name, _GONE), desired.get(name, _GONE), [*path, {key: name}])
        if [*(name for name in base if name in desired), *added] != list(desired):
            self.differences.append([path, key, list(desired)])

    def _by_place(self, base: list[Any], desired: list[Any], path: list[Any]) -> None:
        for place in range(min(len(base), len(desired))):
            self._entry(base[place], desired[place], [*path, place])
        self.differences += [[[*path, place], desired[place]] for place in range(len(base), len(desired))]
        self.differences += [[[*path, place]] for place in reversed(range(len(desired), len(base)))]


def _by_key(items: list[Any], key: str) -> dict[str, Any] | None:
    """Items by name, in order; None where one has none, or two the same."""
    named = {item[key]: item for item in items if isinstance(item, dict) and isinstance(item.get(key), str)}
    return named if len(named) == len(items) else None


def _coarser(pieces: Pieces, desired: Any, depth: int) -> Pieces:
    """Pieces that say the same, with paths of so many steps where most of them are, until they are few enough.

    What is noted by itself stays so where it can: a place as a whole does not say what the other version added to it.
    """
    places = Counter(name for piece in pieces if (name := _above(piece, depth)) is not None)
    left, coarse = len(pieces), set()
    for name, count in places.most_common():
        if left <= MAX_PIECES:
            break
        coarse.add(name)
        left -= count - 1
    differences: Pieces = []
    done: set[str] = set()
    for piece in pieces:
        name = _above(piece, depth)
        if name is None or name not in coarse:
            differences.append(piece)
        elif name not in done:
            done.add(name)
            value = _at(desired, piece[0][:depth])
            differences.append([piece[0][:depth]] if value is _GONE else [piece[0][:depth], value])
    return differences


def _above(piece: list[Any], depth: int) -> str | None:
    """The place of so many steps above a piece; None where it is as near to the root itself."""
    path = piece[0]
    return None if len(path) < depth or (len(path) == depth and len(piece) == 2) else repr(path[:depth])


def _at(node: Any, path: list[Any]) -> Any:
    for step in path:
        at = _place(node, step)
        if at is None or at == -1:
            return _GONE
        node = node[at]
    return node


def _put(node: Any, piece: list[Any], depth: int, copies: Copies) -> Any:
    """The node with the piece below it; _GONE where it has no place there."""
    path = piece[0]
    if depth == len(path):
        return _leaf(node, piece)
    step = path[depth]
    at = _place(node, step)
    if at is None:
        return _GONE
    last = depth + 1 == len(path)
    existing = _GONE if at == -1 else node[at]
    if existing is _GONE and not (last and len(piece) == 2):
        return _GONE
    if last and len(piece) == 1:
        changed = _GONE
    else:
        changed = _put(existing, piece, depth + 1, copies)
        if changed is _GONE:
            return _GONE
    return _with(node, step, at, changed, copies)


def _place(node: Any, step: Any) -> Any:
    """Where a step leads: key or index; -1 where it could be added; None where it leads nowhere."""
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
    if value is _GONE:
        del node[at]
    elif at == -1 and isinstance(node, list):
        node.append(value)
    else:
        node[step if at == -1 else at] = value
    return node


def _leaf(node: Any, piece: list[Any]) -> Any:
    if len(piece) == 3:
        return _sorted(node, piece[1], piece[2])
    value = piece[1]
    # Noted where there was nothing; what has come to be there since then stays.
    if isinstance(value, dict) and isinstance(node, dict):
        return _merged(node, value)
    return value


def _merged(live: dict[str, Any], kept: dict[str, Any]) -> dict[str, Any]:
    result = dict(live)
    for key, value in kept.items():
        existing = live.get(key, _GONE)
        if existing is _GONE:
            result[key] = value
        elif isinstance(existing, dict) and isinstance(value, dict):
            result[key] = _merged(existing, value)
        elif isinstance(existing, str) and type(value) in (int, float) and str(value) == existing:
            # A quantity, which one version writes as text and the other as its author did.
            result[key] = value
    return result


def _sorted(items: Any, key: str, order: list[Any]) -> Any:
    named = _by_key(items, key) if isinstance(items, list) else None
    if named is None:
        return _GONE
    first = {name: named[name] for name in order if isinstance(name, str) and name in named}
    return list((first | named).values())
