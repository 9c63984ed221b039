"""What is wrong with an intent, as JSON pointers into what the caller sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong value: `pointer` (RFC 6901) into what the caller sent, `detail` with what is allowed.

    `source` is the field of the object that was refused, where the caller did not write that object.
    """

    pointer: str
    detail: str
    source: str = ""


class InvalidIntent(ValueError):
    """An intent is refused; `problems` holds every reason."""

    def __init__(self, problems: Sequence[FieldProblem]) -> None:
        super().__init__("\n".join(f"{each.pointer}: {each.detail}" for each in problems))
        self.problems = tuple(problems)


def pointer(parts: Iterable[str | int]) -> str:
    """RFC 6901: `("serving", "replicas", 0)` as `/serving/replicas/0`."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)
