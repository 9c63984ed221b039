"""YAML as kubectl reads it: JSON values only, no key twice, bounded in size and depth."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import yaml

from dynamo_shared.api.errors import FieldError, InvalidManifest

#: Manifests are a few kilobytes, and etcd stores 1.5 MiB of one object at most.
MAX_CHARACTERS = 1024 * 1024
#: Values in one text, counted as often as they are referred to: a few lines of anchors can stand for billions.
MAX_VALUES = 250_000
MAX_DEPTH = 64
# Merge keys (`<<`) copy, so they multiply faster than anything else.
_MAX_MERGED = 16
_MAX_KEYS = 10_000
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """Safe loader without what JSON has not: times stay strings, keys are strings, and stand once.

    The pure Python one: nested brackets by the million raise RecursionError in it; libyaml's would crash.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if name in seen:
                raise _refusal(f"the key {name!r} stands twice", key)
            if key.tag == _MERGE and isinstance(value, yaml.SequenceNode) and len(value.value) > _MAX_MERGED:
                raise _refusal(f"more than {_MAX_MERGED} objects merged into one", value)
            seen.add(name)
        return node

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > _MAX_KEYS:
            raise _refusal(f"more than {_MAX_KEYS} keys in one object", node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        return {_key(key): value for key, value in super().construct_mapping(node, deep=deep).items()}


def _refusal(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _key(key: Hashable) -> str:
    # YAML reads `on:` and `8000:` as a boolean and a number; JSON has string keys only.
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def documents(text: str) -> list[Any]:
    """Values of a text's documents; empty ones are left out. InvalidManifest where it is no YAML, or too much of it."""
    if len(text) > MAX_CHARACTERS:
        raise InvalidManifest([FieldError("", f"longer than {MAX_CHARACTERS} characters")])
    try:
        found = [document for document in yaml.load_all(text, Loader=_Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidManifest([FieldError("", f"no valid YAML: {where}{error.problem}")]) from error
    except RecursionError as error:
        raise InvalidManifest([FieldError("", "no valid YAML: nested too deeply")]) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidManifest([FieldError("", f"no valid YAML: {error}")]) from error
    for document in found:
        check_bounds(document)
    return found


def check_bounds(value: Any) -> None:
    """InvalidManifest for a value that no manifest is: too large, too deep (one that holds itself), or not of JSON."""
    left = MAX_VALUES
    pending = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        left -= 1
        if depth > MAX_DEPTH:
            raise InvalidManifest([FieldError("", f"nested more than {MAX_DEPTH} levels deep")])
        if left < 0:
            raise InvalidManifest([FieldError("", f"more than {MAX_VALUES} values")])
        if isinstance(current, Mapping):
            pending.extend((item, depth + 1) for item in current.values())
        elif isinstance(current, list):
            pending.extend((item, depth + 1) for item in current)
        elif not isinstance(current, str | int | float | None) or (
            isinstance(current, float) and not math.isfinite(current)
        ):
            raise InvalidManifest([FieldError("", f"JSON has no such value: {str(current)[:80]}")])
