"""YAML as kubectl reads it: only JSON values, no duplicate keys. Size, depth and count are limited while it is read.

Values are built from the parser's events, so that reading stops at the first value over a limit. Aliases and merge keys
count as copies of their values: a few lines with anchors can represent billions of values.
"""

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import yaml

from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.untrusted.limits import MANIFEST, ReadLimits, is_of_json, refusal

# Limit of the objects in one merge key (`<<`), because merge keys multiply values fast.
_MAX_MERGED = 16
_MAX_KEYS = 10_000
#: Length limit of numbers; longer scalars are strings. Parsing of numbers takes quadratic time. Characters.
_MAX_DIGITS = 400
#: Limit of directives, because the parser compares each %TAG with all earlier ones.
_MAX_DIRECTIVES = 16
_DIRECTIVE = re.compile(r"^%", re.MULTILINE)
_QUOTED = 200

_TAG = "tag:yaml.org,2002:"
_MERGE, _STRING = _TAG + "merge", _TAG + "str"
#: libyaml's parser is 20 times as fast; PyYAML may be installed without it.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Scalars(yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """The value of a scalar: string, number, boolean or null. Times are strings, as in JSON."""

    def __init__(self) -> None:
        yaml.constructor.SafeConstructor.__init__(self)
        yaml.resolver.Resolver.__init__(self)

    def read(self, event: yaml.ScalarEvent) -> tuple[str, Any]:
        """Tag and value of a scalar."""
        value, tag = event.value, event.tag
        if tag is None and event.implicit[0] and len(value) <= _MAX_DIGITS:
            return _plain(value)
        if tag in (None, "!", _STRING):
            return _STRING, value
        if tag not in _CONSTRUCTORS:
            raise _problem(f"could not determine a constructor for the tag {tag[:_QUOTED]!r}", event)
        if len(value) > _MAX_DIGITS:
            raise _problem(f"a number of more than {_MAX_DIGITS} characters", event)
        try:
            return tag, _CONSTRUCTORS[tag](self, yaml.ScalarNode(tag, value))
        except (ValueError, KeyError, IndexError, OverflowError) as error:
            raise _problem(f"{value[:40]!r} is not a value of {tag.removeprefix(_TAG)}", event) from error


_CONSTRUCTORS = {
    f"{_TAG}{name}": getattr(yaml.constructor.SafeConstructor, f"construct_yaml_{name}")
    for name in ("int", "float", "bool", "null")
} | {f"{_TAG}value": lambda _self, node: node.value}

_Scalars.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != f"{_TAG}timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_scalars = _Scalars()

# Scalars that kubectl's parser (go.yaml.in/yaml/v2, resolve.go) reads as other values, and PyYAML as strings.
_BOOLEANS = {"y": True, "Y": True, "n": False, "N": False}
_OCTAL = re.compile(r"[-+]?0o_*[0-7][0-7_]*")
_LARGEST_WHOLE = 1e21
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@lru_cache(maxsize=4096)
def _plain(value: str) -> tuple[str, Any]:
    """Tag and value of an unquoted scalar. Cached, because most scalars are repeated."""
    if ":" in value:
        # YAML 1.1 reads `22:22` as 1342, in base 60; Kubernetes' parser does not. No other value has a colon.
        return _STRING, value
    tag = str(_scalars.resolve(yaml.ScalarNode, value, (True, False)))  # type: ignore[no-untyped-call]
    if tag == _STRING:
        return _of_go(value)
    return tag, value if tag == _MERGE else _CONSTRUCTORS[tag](_scalars, yaml.ScalarNode(tag, value))


def _of_go(value: str) -> tuple[str, Any]:
    """Tag and value of a scalar that PyYAML reads as a string."""
    if (boolean := _BOOLEANS.get(value)) is not None:
        return f"{_TAG}bool", boolean
    digits = value.replace("_", "")
    if _OCTAL.fullmatch(value):
        return f"{_TAG}int", int(digits, 8)
    if _FLOAT.fullmatch(digits) and math.isfinite(number := float(digits)):
        # Go writes a float without a fraction as an integer.
        return f"{_TAG}float", int(number) if number.is_integer() and abs(number) < _LARGEST_WHOLE else number
    return _STRING, value


def documents(text: str, limits: ReadLimits = MANIFEST) -> list[Any]:
    """The values of a text's documents, without empty documents.

    Raises InvalidManifest if it is not YAML, or if all documents together exceed `limits`.
    """
    if len(text) > limits.characters:
        raise refusal(f"longer than {limits.characters} characters")
    if sum(1 for _ in zip(range(_MAX_DIRECTIVES + 1), _DIRECTIVE.finditer(text), strict=False)) > _MAX_DIRECTIVES:
        raise refusal(f"is not valid YAML: more than {_MAX_DIRECTIVES} lines that begin with %")
    loader = None
    try:
        loader = _Parser(text)
        reader = _Reader(_events(loader), limits)
        return [document for document in reader.documents() if document is not None]
    except (yaml.YAMLError, ValueError) as error:
        if isinstance(error, InvalidManifest):
            raise
        raise refusal(mistake(error)) from error
    finally:
        if loader is not None:
            loader.dispose()


def mistake(error: Exception) -> str:
    """Where and why a text is not YAML. The text of a parser's error quotes the lines, which may have a password."""
    where, problem = "", str(error)
    if isinstance(error, yaml.MarkedYAMLError):
        mark, problem = error.problem_mark, str(error.problem)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"is not valid YAML: {where}{' '.join(problem.split())[:_QUOTED]}"


def _events(loader: Any) -> Iterator[yaml.Event]:
    while loader.check_event():
        yield loader.get_event()


@dataclass(slots=True)
class _Open:
    """A list or an object whose items are being read."""

    value: Any
    anchor: str | None
    count: int = 1
    depth: int = 1
    """levels of nesting, including itself"""
    keys: set[str] = field(default_factory=set)
    key: str | None = None
    merged: list[dict[str, Any]] = field(default_factory=list)
    is_merge: bool = False
    """whether the next value is that of a merge key"""


class _Complete(NamedTuple):
    """A complete value, the number of values in it, and its levels of nesting."""

    value: Any
    size: int
    depth: int


class _Reader:
    """Builds values from events, without recursion."""

    def __init__(self, events: Iterator[yaml.Event], limits: ReadLimits) -> None:
        self._events = events
        self._limits = limits
        self._work = 0
        """number of values read, and of keys copied by merges"""
        self._open: list[_Open] = []
        self._anchored: dict[str, _Complete] = {}
        self._done: list[Any] = []
        self._count = 0
        """number of values in the complete documents"""

    def documents(self) -> list[Any]:
        """Values of all documents."""
        handlers: dict[type[yaml.Event], Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._start,
            yaml.SequenceStartEvent: self._start,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in self._events:
            if handle := handlers.get(type(event)):
                handle(event)
        return self._done

    def _document(self, _event: yaml.Event) -> None:
        self._anchored = {}

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        self._worked(1)
        tag, value = _scalars.read(event)
        if self._expects_key():
            if tag == _MERGE:
                self._unique("<<", event)
                self._open[-1].is_merge = True
                return
            if event.anchor:
                self._anchored[event.anchor] = _Complete(value, 1, 1)
            self._take_key(value, event)
            return
        if not is_of_json(value):
            raise _problem(f"JSON has no such value: {event.value[:80]}", event)
        self._put(_Complete(value, 1, 1), event.anchor, event)

    def _start(self, event: yaml.CollectionStartEvent) -> None:
        self._worked(1)
        is_map = isinstance(event, yaml.MappingStartEvent)
        if self._expects_key():
            raise _problem("a key must be text, not an object or a list", event)
        if event.tag not in (None, "!", f"{_TAG}map" if is_map else f"{_TAG}seq"):
            raise _problem(f"could not determine a constructor for the tag {str(event.tag)[:_QUOTED]!r}", event)
        if len(self._open) >= self._limits.depth:
            raise self._too_deep()
        if event.anchor:
            # An alias to an incomplete value would be recursive.
            self._anchored.pop(event.anchor, None)
        self._open.append(_Open({} if is_map else [], event.anchor))

    def _end(self, event: yaml.Event) -> None:
        closed = self._open.pop()
        value = self._merged(closed, event) if closed.merged else closed.value
        self._put(_Complete(value, closed.count, closed.depth), closed.anchor, event)

    def _alias(self, event: yaml.AliasEvent) -> None:
        self._worked(1)
        name = event.anchor or ""
        anchored = self._anchored.get(name)
        if anchored is None:
            if any(each.anchor == name for each in self._open):
                raise self._too_deep()
            raise _problem(f"undefined alias {name[:80]!r}", event)
        if not self._expects_key():
            self._put(anchored, None, event)
        elif isinstance(anchored.value, dict | list):
            raise _problem("a key must be text, not an object or a list", event)
        else:
            self._take_key(anchored.value, event)

    def _put(self, complete: _Complete, anchor: str | None, event: yaml.Event) -> None:
        """Add a complete value to the list or object that is being read, or to the documents."""
        if anchor:
            self._anchored[anchor] = complete
        if not self._open:
            self._done.append(complete.value)
            self._count += complete.size
            self._bounded(self._count)
            return
        parent, value = self._open[-1], complete.value
        if len(self._open) + complete.depth > self._limits.depth:
            raise self._too_deep()
        parent.count += complete.size
        self._bounded(parent.count)
        parent.depth = max(parent.depth, complete.depth + 1)
        if isinstance(parent.value, list):
            parent.value.append(value)
        elif parent.is_merge:
            parent.is_merge = False
            parent.merged = self._mergeable(value, event)
        else:
            parent.value[parent.key] = value
            parent.key = None

    def _expects_key(self) -> bool:
        if not self._open:
            return False
        parent = self._open[-1]
        return isinstance(parent.value, dict) and parent.key is None and not parent.is_merge

    def _take_key(self, value: object, event: yaml.Event) -> None:
        name = _key(value)
        self._unique(name, event)
        self._open[-1].key = name

    def _unique(self, name: str, event: yaml.Event) -> None:
        keys = self._open[-1].keys
        if name in keys:
            raise _problem(f"the key {name[:80]!r} is given twice", event)
        if len(keys) >= _MAX_KEYS:
            raise _problem(f"more than {_MAX_KEYS} keys in one object", event)
        keys.add(name)

    def _mergeable(self, value: Any, event: yaml.Event) -> list[dict[str, Any]]:
        merged = value if isinstance(value, list) else [value]
        if len(merged) > _MAX_MERGED:
            raise _problem(f"more than {_MAX_MERGED} objects merged into one", event)
        if not all(isinstance(each, dict) for each in merged):
            raise _problem("expected an object or a list of objects for merging", event)
        return merged

    def _merged(self, closed: _Open, event: yaml.Event) -> dict[str, Any]:
        """The object with the merged ones: its own keys have priority, then those of the first merged object."""
        result: dict[str, Any] = {}
        for each in (*reversed(closed.merged), closed.value):
            self._worked(len(each))
            result.update(each)
        if len(result) > _MAX_KEYS:
            raise _problem(f"more than {_MAX_KEYS} keys in one object", event)
        return result

    def _worked(self, values: int) -> None:
        self._work += values
        # Keys and values are counted separately here.
        self._bounded(self._work // 2)

    def _bounded(self, values: int) -> None:
        if values > self._limits.values:
            raise refusal(f"more than {self._limits.values} values")

    def _too_deep(self) -> InvalidManifest:
        return refusal(f"nested more than {self._limits.depth} levels deep")


def _key(key: object) -> str:
    # YAML reads `on:` and `8000:` as a boolean and a number; keys of JSON are strings.
    if key is None:
        return "null"
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def _problem(problem: str, event: yaml.Event) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark
    return yaml.constructor.ConstructorError(None, None, problem, mark)
