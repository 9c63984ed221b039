"""The differences between two surfaces, and which of them break users of the older one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tools.releases.fields import BOUNDS, Fact
from tools.releases.snapshot import Snapshot

_NAMES = ("labels", "annotations", "environment")
_DOCUMENTS = ("contracts", "events", "commands", "state", "envelope")
SORTS = (*_NAMES, "ports", *_DOCUMENTS, "settings")
"""Sections in addition to kinds."""

_RAISED = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems"})
#: Facts of which any change is breaking, including a new fact.
_FIXED = {
    "type": "type",
    "default": "default",
    "const": "value",
    "pattern": "pattern",
    "listType": "list type",
    "listKeys": "list keys",
    "mapType": "map type",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    `subject` is a kind, `version` its version, `path` a field. For other sections, `subject` is the section: for
    labels, annotations, environment, ports and settings, `path` is the name; for contracts, events and commands,
    `version` is.
    """

    subject: str
    version: str
    path: str
    what: str
    breaking: bool

    def __str__(self) -> str:
        return f"{' '.join(part for part in (self.subject, self.version, self.path) if part)}: {self.what}"


def compare(last: Snapshot, today: Snapshot) -> list[Change]:
    """Every difference, in the order of the older surface; additions come last in each part."""
    return [
        *_kinds(last["kinds"], today["kinds"]),
        *(change for section in _NAMES for change in _names(section, last, today)),
        *_ports(last["ports"], today["ports"]),
        *(change for section in _DOCUMENTS for change in _documents(section, last[section], today[section])),
        *fields("settings", "", last["settings"], today["settings"]),
    ]


def breaking(changes: list[Change]) -> list[Change]:
    """The breaking changes."""
    return [change for change in changes if change.breaking]


def _paired(last: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Each name with its old and its new value, None where the name is missing; new names come last."""
    for name in (*last, *(name for name in today if name not in last)):
        yield name, last.get(name), today.get(name)


def _kinds(last: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[Change]:
    for kind, old, new in _paired(last, today):
        if old is None:
            yield Change(kind, "", "", "the kind is new", False)
        elif new is None:
            yield from (Change(kind, version, "", "the kind was removed", True) for version in old["versions"])
        else:
            for key in ("plural", "scope", "storage"):
                if old[key] != new[key]:
                    yield Change(kind, "", key, f"{old[key]} became {new[key]}", True)
            short_names = (dict.fromkeys(each["shortNames"], True) for each in (old, new))
            for name, known, kept in _paired(*short_names):
                if not (known and kept):
                    yield Change(kind, "", "shortNames", f"{name} {'was removed' if known else 'is new'}", bool(known))
            yield from _versions(kind, old["versions"], new["versions"])


def _versions(kind: str, last: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[Change]:
    for version, old, new in _paired(last, today):
        if old is None:
            yield Change(kind, version, "", "the version is new", False)
        elif new is None:
            yield Change(kind, version, "", "the version is no longer served", True)
        else:
            for name, before, after in _paired(old["subresources"], new["subresources"]):
                if before is None:
                    yield Change(kind, version, "", f"the subresource /{name} is new", False)
                elif after is None:
                    yield Change(kind, version, "", f"the subresource /{name} was removed", True)
                elif before != after:
                    yield Change(kind, version, "", f"the paths of the subresource /{name} changed", True)
            yield from fields(kind, version, old["fields"], new["fields"])


def _names(section: str, last: Snapshot, today: Snapshot) -> Iterator[Change]:
    for name, old, new in _paired(last[section], today[section]):
        if old is None:
            yield Change(section, "", name, "the name is new", False)
        elif new != old:
            what = f"the name was removed ({old})" if new is None else f"{old} became {new}"
            yield Change(section, "", name, what, old == "stable")


def _ports(last: Mapping[str, str], today: Mapping[str, str]) -> Iterator[Change]:
    for name, old, new in _paired(last, today):
        if old is None:
            yield Change("ports", "", name, f"the port {new} is new", False)
        elif new != old:
            what = f"the port {old} was removed" if new is None else f"{old} became {new}"
            yield Change("ports", "", name, what, True)


def _documents(section: str, last: Mapping[str, Any], today: Mapping[str, Any]) -> Iterator[Change]:
    for name, old, new in _paired(last, today):
        if old is None or new is None:
            yield Change(section, name, "", "new" if old is None else "removed", new is None)
            continue
        if old.get("subject") != new.get("subject"):
            yield Change(section, name, "", f"the subject {old.get('subject')} became {new.get('subject')}", True)
        yield from fields(section, name, old["fields"], new["fields"])


def fields(subject: str, version: str, last: Mapping[str, Fact], today: Mapping[str, Fact]) -> Iterator[Change]:
    """Differences between fields. A new or removed field also covers those below it."""
    for path, old in last.items():
        if path in today:
            yield from _field(subject, version, path, old, today[path])
        elif not path:
            yield Change(subject, version, path, "rules between its fields were removed", False)
        elif _parent(path) in today or not _parent(path):
            yield Change(subject, version, path, "the field was removed", True)
    for path, new in today.items():
        if path in last:
            continue
        if not path:
            yield Change(subject, version, path, "rules between its fields were added", True)
        elif _parent(path) in last or not _parent(path):
            required = new.get("required", False) and "default" not in new
            yield Change(subject, version, path, f"the field is new{', and required' if required else ''}", required)


def _parent(path: str) -> str:
    """The parent of a field: `a.b[]` for `a.b[].c`, `a.b` for `a.b[]`, "" for `a`."""
    return path[:-2] if path.endswith(("[]", "{}")) else path.rpartition(".")[0]


def _field(subject: str, version: str, path: str, old: Fact, new: Fact) -> Iterator[Change]:
    def change(what: str, felt: bool) -> Change:
        return Change(subject, version, path, what, felt)

    for key, name in _FIXED.items():
        if old.get(key) != new.get(key):
            loosened = key in ("pattern", "const") and key not in new
            yield change(_became(name, old.get(key), new.get(key)), not loosened)
    if old.get("required", False) != new.get("required", False):
        yield change("is required now" if new.get("required") else "is optional now", bool(new.get("required")))
    if old.get("nullable", False) != new.get("nullable", False):
        yield change("may be null now" if new.get("nullable") else "may no longer be null", not new.get("nullable"))
    if old.get("open", False) != new.get("open", False):
        opened = bool(new.get("open"))
        yield change("allows unknown fields now" if opened else "no longer allows unknown fields", not opened)
    yield from (change(*each) for each in _choices(old.get("enum"), new.get("enum")))
    yield from (change(*each) for key in BOUNDS for each in _bound(key, old.get(key), new.get(key)))
    for rule in old.get("rules", ()):
        if rule not in new.get("rules", ()):
            yield change(f"the rule {rule} was removed", False)
    for rule in new.get("rules", ()):
        if rule not in old.get("rules", ()):
            yield change(f"the rule {rule} is new", True)


def _became(name: str, old: Any, new: Any) -> str:
    if old is None:
        return f"{name} {new} was added"
    return f"{name} {old} became {new}" if new is not None else f"{name} {old} was removed"


def _choices(old: list[Any] | None, new: list[Any] | None) -> Iterator[tuple[str, bool]]:
    if old is None and new is not None:
        yield f"allows only {', '.join(map(str, new))} now, before any value", True
    elif old is not None and new is None:
        yield "allows any value now", False
    elif old is not None and new is not None:
        yield from ((f"no longer allows {value}", True) for value in old if value not in new)
        yield from ((f"also allows {value}", False) for value in new if value not in old)


def _bound(key: str, old: float | None, new: float | None) -> Iterator[tuple[str, bool]]:
    if old == new:
        return
    if new is None:
        yield f"{key} {old} was removed", False
    elif old is None:
        yield f"{key} {new} is new", True
    else:
        yield f"{key} {old} became {new}", (new > old) is (key in _RAISED)
