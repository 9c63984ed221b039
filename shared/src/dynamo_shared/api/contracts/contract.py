"""A contract: a format on which programs have agreed, with its documentation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel


@dataclass(frozen=True, slots=True)
class Contract:
    """`name` is the name of the field or variable; `place` is its location and format."""

    name: str
    model: type[BaseModel]
    place: str
    description: str
    examples: tuple[Mapping[str, Any], ...]
