"""What a contract is: a shape that programs have agreed on, and what it is documented with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Contract:
    """`name` is the field's or the variable's; `place` says where it stands and what it is written in."""

    name: str
    model: type[BaseModel]
    place: str
    description: str
    examples: tuple[Mapping[str, Any], ...]
