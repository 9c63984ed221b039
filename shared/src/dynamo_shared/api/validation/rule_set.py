"""Rules and their registration: each rule has its messages, so that docs and code cannot differ."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.rules import Location

ALPHA, BETA = "v1alpha1", "v1beta1"
BOTH = (ALPHA, BETA)

GRAPH, COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
ADAPTER = "DynamoGraphDeploymentScalingAdapter"
REQUEST, MODEL, CHECKPOINT = "DynamoGraphDeploymentRequest", "DynamoModel", "DynamoCheckpoint"

ALWAYS, CREATED, UPDATED = "always", "when created", "when updated"

Violations = Iterable[tuple[Location, str | dict[str, object]]]
"""Violations of a rule: a location with a message, or with the values for the rule's only message (`broken`)."""
Check = Callable[..., Violations]

#: Names in one message: a graph has at most as many components.
_LISTED = 25


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: `about` states it in a sentence, `says` are its messages with `{...}` for the variable parts.

    `added` is set for rules that the reference does not have: what they refuse would fail later, or have no effect.
    With `of`, only components that have this field are checked.
    """

    name: str
    about: str
    kinds: tuple[str, ...]
    versions: tuple[str, ...]
    when: str
    says: tuple[str, ...]
    check: Check
    added: bool
    of: str

    def message(self, problem: str | dict[str, object]) -> str:
        """The message about a violation: as its check yields it, or the rule's only one with these values."""
        return problem if isinstance(problem, str) else self.says[0].format(**problem)


class RuleSet:
    """Rules that check the same subject at the same time, in the order of their reports.

    A rule gets its subject and the facts; with UPDATED, also the subject before the update, in between.
    """

    def __init__(
        self, title: str, kinds: tuple[str, ...], when: str = ALWAYS, versions: tuple[str, ...] = BOTH
    ) -> None:
        self.title = title
        self.kinds = kinds
        self.when = when
        self.versions = versions
        self.rules: list[Rule] = []

    def rule(
        self, *says: str, versions: tuple[str, ...] | None = None, added: bool = False, of: str = ""
    ) -> Callable[[Check], Check]:
        """Decorator: the function becomes a rule. Its docstring is its line in the docs."""

        def register(check: Check) -> Check:
            held_in = versions or self.versions
            about = " ".join((check.__doc__ or "").split())
            name = check.__name__.replace("_", " ")
            self.rules.append(Rule(name, about, self.kinds, held_in, self.when, says, check, added, of))
            return check

        return register


def broken(at: Location, **words: object) -> tuple[Location, dict[str, object]]:
    """What a rule with one message yields: the location, and the values for the message."""
    return at, words


def listed(names: Iterable[str]) -> str:
    """Names for a message, in the given order, and the number of those left out; `none` without names."""
    given = list(names)
    more = f" and {len(given) - _LISTED} more" if len(given) > _LISTED else ""
    return f"{', '.join(given[:_LISTED])}{more}" or "none"


def path(location: Location) -> str:
    """The path of a field, for use inside a message."""
    return path_of(location)
