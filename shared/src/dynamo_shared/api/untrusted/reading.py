"""Reads values of unknown type: a value of the wrong type counts as empty, because the schema's check reports it."""

from collections.abc import Iterable, Sequence
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def is_being_deleted(obj: Any) -> bool:
    """Whether the deletion of an object was requested. Accepts any value."""
    return bool(mapping(mapping(obj).get("metadata")).get("deletionTimestamp"))


def below(value: Any, path: Iterable[int | str]) -> Any:
    """The value at a path of nested objects; None if a step is missing or its parent is not an object."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(str(step))
    return value


def items(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


def entries(value: Any) -> Sequence[tuple[int, dict[str, Any]]]:
    """The objects in a list, each with its index; other items of it are left out."""
    if not isinstance(value, list):
        return ()
    return [(index, each) for index, each in enumerate(value) if isinstance(each, dict)]


def names_in(value: Any) -> list[str]:
    """The names of the objects in a list, without empty ones."""
    return [name for _, each in entries(value) if (name := text(each.get("name")))]


def text(value: Any) -> str:
    """The value if it is a string, otherwise an empty one."""
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    """The value if it is an integer (not a boolean), otherwise None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def nodes(multinode: Any) -> int:
    """Nodes of one replica, from `multinode` of a component; 1 without it."""
    count = multinode.get("nodeCount", 2) if isinstance(multinode, dict) else 1
    return integer(count) or 1


def annotation(annotations: dict[str, Any], name: str) -> str | None:
    """The value of an annotation; None if it is missing or not a string."""
    value = annotations.get(name)
    return value if isinstance(value, str) else None
