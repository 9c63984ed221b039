"""What a contract is: a shape that programs have agreed on, and what it is documented with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from dynamo_shared.api.contracts.schema import BASE, DIALECT, Schema, json_schema


@dataclass(frozen=True, slots=True)
class Contract:
    """`name` is the field's or the variable's; `place` says where it stands and what it is written in."""

    name: str
    model: type[BaseModel]
    place: str
    description: str
    examples: tuple[Mapping[str, Any], ...]

    @property
    def file(self) -> str:
        """Name of its schema's file."""
        return f"{self.name}.json"

    def schema(self) -> Schema:
        """The whole JSON Schema document."""
        head = {
            "$schema": DIALECT,
            "$id": f"{BASE}/{self.file}",
            "title": self.name,
            "description": f"{self.description} {self.place}",
        }
        body = json_schema(self.model)
        body.pop("description", None)
        return {**head, **body, "examples": [dict(each) for each in self.examples]}
