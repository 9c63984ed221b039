"""Lossless conversion of a value to another version, for any pair of conversions that each omit some fields (a lens).

`forward` and `backward` convert the fields that both versions have. Fields of the target that the source does not have
come from the changes that the source preserves; fields of the source that the target does not have are returned, and
the target preserves them.

The conversion is lossless if converting there, back and there again has the same result as converting there once; tests
verify this.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.conversion.changes import KEYS, Changes, Keys, apply_changes, diff

#: Limit of the attempts to apply preserved changes to an edited value, because a tenant may write the annotation.
MAX_TRIALS = 100


def of_parts(
    body: dict[str, Any], spec: Callable[[dict[str, Any]], Any], status: Callable[[dict[str, Any]], Any]
) -> dict[str, Any]:
    """The converted `spec` and `status` of an object, without those that are not objects."""
    converters = {"spec": spec, "status": status}
    return {name: convert(body[name]) for name, convert in converters.items() if isinstance(body.get(name), dict)}


def by_place(change: list[Any]) -> str:
    """The group of a change: its location, up to a depth of 5."""
    return repr(change[0][:5])


def whole(change: list[Any]) -> Changes:
    """The change itself, not split."""
    return [change]


def anything(_target: Any) -> bool:
    """Always true."""
    return True


@dataclass(frozen=True, slots=True)
class Lens:
    """The functions that convert a value to another version and back."""

    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]
    keys: Keys = field(default_factory=lambda: KEYS)
    #: Splits a change, for a target in which only a part of it is valid.
    split: Callable[[list[Any]], Changes] = whole
    #: The group of a change: changes of a group are applied together, if possible.
    group: Callable[[list[Any]], str] = by_place
    #: Whether a target is in the usual form; checked if only some of the preserved changes are still valid.
    tidy: Callable[[Any], bool] = anything


def carry(lens: Lens, source: Any, preserved: Changes) -> tuple[Any, Changes]:
    """The value in the other version, and the changes that this version must preserve.

    A preserved change is applied only if it does not change the fields that both versions have: these have priority.
    """
    target = lens.forward(source)
    round_trip = lens.backward(target)
    if preserved:
        attempt = _Attempt(lens, source, target, round_trip)
        attempt.fit(preserved)
        target, round_trip = attempt.target, attempt.round_trip
    return target, diff(round_trip, source, lens.keys)


class _Attempt:
    """Applies preserved changes to a target: those that do not change the conversion back to the source."""

    def __init__(self, lens: Lens, source: Any, target: Any, round_trip: Any) -> None:
        self.target = target
        self.round_trip = round_trip
        self._lens = lens
        self._source = source
        self._trials = MAX_TRIALS

    def fit(self, preserved: Changes) -> None:
        """Apply all changes; if the source was edited, the groups that are still valid, and then single changes."""
        if self._try(preserved):
            return
        preserved = [part for change in preserved for part in self._lens.split(change)]
        rejected = [change for group in self._groups(preserved) if not self._try(group) for change in group]
        if len(rejected) < len(preserved) and self._try(rejected):
            return
        for change in rejected:
            self._try([change], tidy=True)

    def _groups(self, changes: Changes) -> Iterable[Changes]:
        groups: dict[str, Changes] = {}
        for change in changes:
            groups.setdefault(self._lens.group(change), []).append(change)
        return groups.values()

    def _try(self, changes: Changes, *, tidy: bool = False) -> bool:
        if self._trials <= 0:
            return False
        self._trials -= 1
        candidate = apply_changes(self.target, changes)
        round_trip = self._lens.backward(candidate)
        if round_trip not in (self.round_trip, self._source) or (tidy and not self._lens.tidy(candidate)):
            return False
        self.target, self.round_trip = candidate, round_trip
        return True
