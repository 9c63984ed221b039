"""Carrying a value to another version without loss, for any pair of conversions that each leave something out.

`forward` and `backward` say what both versions can say. What the target can say and the source cannot comes from the
pieces that were kept at the source; what the source says and the target cannot is handed back, to be kept at the target.

Nothing is lost if converting there, back and there again gives what converting there once gives; tests hold that.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.conversion.pieces import KEYS, Keys, Pieces, difference, put

#: Trials to make kept pieces fit a value that was edited, in conversions; a made-up annotation shall not burn time.
MAX_TRIALS = 100


def of_parts(
    body: dict[str, Any], spec: Callable[[dict[str, Any]], Any], status: Callable[[dict[str, Any]], Any]
) -> dict[str, Any]:
    """What becomes of an object's spec and of its status, each where it is an object itself."""
    converters = {"spec": spec, "status": status}
    return {name: convert(body[name]) for name, convert in converters.items() if isinstance(body.get(name), dict)}


def by_place(piece: list[Any]) -> str:
    """Pieces at nearly the same place belong together."""
    return repr(piece[0][:5])


def whole(piece: list[Any]) -> Pieces:
    """A piece is not taken apart."""
    return [piece]


def anything(_target: Any) -> bool:
    """No demand on a target."""
    return True


@dataclass(frozen=True, slots=True)
class Lens:
    """How a value gets to the other version and back."""

    forward: Callable[[Any], Any]
    backward: Callable[[Any], Any]
    keys: Keys = field(default_factory=lambda: KEYS)
    #: Smaller pieces that say the same as one, for a target that takes a part of it only.
    split: Callable[[list[Any]], Pieces] = whole
    #: Which pieces of the target hang together: they are put back together, or not at all if need be.
    group: Callable[[list[Any]], str] = by_place
    #: Whether a target is one that people would write; asked where only a part of what was kept still fits.
    tidy: Callable[[Any], bool] = anything


def carry(lens: Lens, live: Any, kept: Pieces) -> tuple[Any, Pieces]:
    """A value in the other version, and what that version cannot say of it.

    A kept piece counts only as far as it changes nothing that the source says by itself: live fields win.
    """
    target = lens.forward(live)
    shown = lens.backward(target)
    if kept:
        fitting = _Fitting(lens, live, target, shown)
        fitting.fit(kept)
        target, shown = fitting.target, fitting.shown
    return target, difference(shown, live, lens.keys)


class _Fitting:
    """A target on its way: pieces are tried on it, and stay where the source would look the same."""

    def __init__(self, lens: Lens, live: Any, target: Any, shown: Any) -> None:
        self.target = target
        self.shown = shown
        self._lens = lens
        self._live = live
        self._trials = MAX_TRIALS

    def fit(self, kept: Pieces) -> None:
        """Put on all pieces; where the source was edited, those groups that still fit, and then single ones."""
        if self._takes(kept):
            return
        kept = [part for piece in kept for part in self._lens.split(piece)]
        left = [piece for group in self._groups(kept) if not self._takes(group) for piece in group]
        if len(left) < len(kept) and self._takes(left):
            return
        for piece in left:
            self._takes([piece], tidy=True)

    def _groups(self, pieces: Pieces) -> Iterable[Pieces]:
        groups: dict[str, Pieces] = {}
        for piece in pieces:
            groups.setdefault(self._lens.group(piece), []).append(piece)
        return groups.values()

    def _takes(self, pieces: Pieces, *, tidy: bool = False) -> bool:
        if self._trials <= 0:
            return False
        self._trials -= 1
        candidate = put(self.target, pieces)
        shown = self._lens.backward(candidate)
        if shown not in (self.shown, self._live) or (tidy and not self._lens.tidy(candidate)):
            return False
        self.target, self.shown = candidate, shown
        return True
