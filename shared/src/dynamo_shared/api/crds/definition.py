"""Content of a CustomResourceDefinition: names, and for each version its type and its columns in kubectl."""

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from pydantic import BaseModel, create_model

from dynamo_shared.api.resources import UNCHANGED_IN_V1BETA1, Resource


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`."""

    name: str
    json_path: str
    description: str
    type: str = "string"
    #: Whether only `kubectl get -o wide` shows it.
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Scale:
    """Paths of the desired replicas, the current replicas and the pods' selector, for `kubectl scale` and autoscalers."""

    desired: str
    present: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class VersionDefinition:
    """One version of a kind."""

    resource: Resource
    model: type[BaseModel]
    columns: tuple[Column, ...]
    #: Whether objects are stored in this version; exactly one version of a kind is stored.
    storage: bool = True
    scale: Scale | None = None
    #: Whether the status is a subresource.
    status: bool = True

    def unchanged_in(self, version: str) -> Self:
        """The same with the name of another version, in which objects are not stored."""
        resource = self.resource.at(version)
        only: Any = Literal[resource.api_version]
        model = create_model(
            resource.kind, __base__=self.model, __doc__=self.model.__doc__, api_version=(only, resource.api_version)
        )
        return replace(self, resource=resource, model=model, storage=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """A kind: its short names, and its versions, the newest last."""

    short_names: tuple[str, ...]
    versions: tuple[VersionDefinition, ...]

    @property
    def resource(self) -> Resource:
        """The kind in its stored version."""
        return next(version.resource for version in self.versions if version.storage)

    @property
    def is_converted(self) -> bool:
        """Whether its versions differ in more than their names, so that a webhook converts them."""
        return len(self.versions) > 1 and self.resource not in UNCHANGED_IN_V1BETA1

    @property
    def kind(self) -> str:
        """Name of the kind."""
        return self.resource.kind

    def at(self, version: str) -> VersionDefinition:
        """One version by its name; KeyError if the kind does not have it."""
        return {each.resource.version: each for each in self.versions}[version]
