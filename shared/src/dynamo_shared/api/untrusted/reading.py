"""Reading what may be anything: a value of the wrong type says nothing here, the schema's check reports it."""

from collections.abc import Iterable
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one: what cannot be read says nothing."""
    return value if isinstance(value, dict) else {}


def is_being_deleted(obj: Any) -> bool:
    """Whether the deletion of an object was requested, in whatever form it is sent."""
    return bool(mapping(mapping(obj).get("metadata")).get("deletionTimestamp"))


def below(value: Any, path: Iterable[int | str]) -> Any:
    """What stands in nested objects at a path; None where one of them is missing or is not an object."""
    for step in path:
        value = mapping(value).get(str(step))
    return value


def items(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value where it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def integer(value: Any) -> int | None:
    """The value where it is an integer, else None. JSON's true is not an integer."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def nodes(multinode: Any) -> int:
    """Nodes of one replica, given `multinode` of a component; 1 without it."""
    count = multinode.get("nodeCount", 2) if isinstance(multinode, dict) else 1
    return integer(count) or 1


def annotation(annotations: dict[str, Any], name: str) -> str | None:
    """Text of an annotation, None where it is absent or no text."""
    value = annotations.get(name)
    return value if isinstance(value, str) else None
