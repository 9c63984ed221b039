"""Errors of a manifest, each with the path of its field."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error of one field: `path` as in the manifest (`spec.components[1].type`), `message` with the allowed values.

    `manifest` names the object (`DynamoGraphDeployment my-graph`, or `document 3`) if a text contains several.
    """

    path: str
    message: str
    manifest: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.manifest, self.path, self.message) if part)


class InvalidManifest(ValueError):
    """A manifest is invalid; `errors` has all its errors."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        super().__init__("\n".join(str(error) for error in errors))
        self.errors = tuple(errors)
