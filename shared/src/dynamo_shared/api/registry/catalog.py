"""An entry of a registry, and the catalogue that collects entries while a module defines its constants."""

from dataclasses import dataclass, field
from enum import StrEnum


class Stability(StrEnum):
    """Whether users can rely on a name."""

    STABLE = "stable"
    """It stays, or is removed after a notice, as the deprecation policy says."""
    EVOLVING = "evolving"
    """It belongs to a feature in development (failover, checkpoints, profiling), and may change with that feature."""
    COMPATIBILITY = "compatibility"
    """The platform reads it only because other control planes wrote it."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One public name: `values` is its format or its possible values, `where` the kind of object that has it."""

    name: str
    purpose: str
    set_by: str
    read_by: str
    values: str
    where: str
    stability: Stability = Stability.STABLE


@dataclass(slots=True)
class Catalog:
    """One registry. `add` adds an entry and returns the name, a plain str that any serialiser accepts.

    `set_by` and `read_by` are the defaults for entries.
    """

    title: str
    introduction: str
    name_title: str
    values_title: str
    set_by: str = "pod-builder"
    read_by: str = ""
    entries: list[CatalogEntry] = field(default_factory=list)

    def add(
        self,
        name: str,
        purpose: str,
        *,
        set_by: str = "",
        read_by: str = "",
        values: str = "",
        where: str = "",
        stability: Stability = Stability.STABLE,
    ) -> str:
        """Add a name; ValueError if it is already registered with the same `where`, because a name has only one meaning."""
        if any(entry.name == name and entry.where == where for entry in self.entries):
            raise ValueError(f"{self.title}: {name} is registered twice")
        set_by, read_by = set_by or self.set_by, read_by or self.read_by
        self.entries.append(CatalogEntry(name, purpose, set_by, read_by, values, where, stability))
        return name
