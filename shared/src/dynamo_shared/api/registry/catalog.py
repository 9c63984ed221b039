"""What an entry of a registry says, and the catalogue that collects entries while a module defines its constants."""

from dataclasses import dataclass, field
from enum import StrEnum


class Stability(StrEnum):
    """What of a name may be counted on."""

    STABLE = "stable"
    """It stays, or goes with notice, as the deprecation policy says."""
    EVOLVING = "evolving"
    """It belongs to a feature that is still on its way (failover, checkpoints, profiling), and may change with it."""
    COMPATIBILITY = "compatibility"
    """Other control planes wrote it, and it is read for their sake."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One public name: `values` gives its format or possible values, `where` the kind of object that carries it."""

    name: str
    purpose: str
    set_by: str
    read_by: str
    values: str
    where: str
    stability: Stability = Stability.STABLE


@dataclass(slots=True)
class Catalog:
    """One registry. `add` files an entry and gives the name back, a plain str that any serialiser takes.

    `set_by` and `read_by` are of entries that say nothing else.
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
        """File a name; ValueError where it stands already: two meanings for one name is what a registry prevents."""
        if any(entry.name == name and entry.where == where for entry in self.entries):
            raise ValueError(f"{self.title}: {name} is registered twice")
        set_by, read_by = set_by or self.set_by, read_by or self.read_by
        self.entries.append(CatalogEntry(name, purpose, set_by, read_by, values, where, stability))
        return name
