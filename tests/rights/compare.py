"""Compares requests with rights: requests that are not covered, and rights that are never used."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dynamo_shared.api.rights import LEASES_PREFIX, Right

from tests.rights.audit import Request


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of the comparison.

    `lacking`: a line for each kind of request that no right covers. `idle`: one for each unused verb of a right without
    a reason. `spoken_for`: one for each unused verb with a reason. `covered`: requests; `used`: verbs.
    """

    lacking: tuple[str, ...]
    idle: tuple[str, ...]
    spoken_for: tuple[str, ...]
    covered: int
    used: int


def allows(right: Right, verb: str, group: str, plural: str, name: str) -> bool:
    """Whether a right covers a verb, API group, resource (with subresource) and object name."""
    return (
        verb in right.verbs
        and (group, plural) == (right.resource.group, right.plural)
        and (not right.names or any(_names(each, name) for each in right.names))
    )


def _names(declared: str, name: str) -> bool:
    """Whether a declared name, which may begin with the placeholder for Leases, is the name of an object."""
    _, placeholder, service = declared.rpartition(LEASES_PREFIX)
    return name.endswith(service) if placeholder else name == declared


def compare(observed: Counter[Request], rights: Mapping[str, Iterable[Right]]) -> Verdict:
    """Compare requests with rights, by service."""
    used: set[tuple[str, Right, str]] = set()
    lacking: Counter[str] = Counter()
    covered = 0
    held = {service: tuple(each) for service, each in rights.items()}
    for request, times in observed.items():
        if request.service not in held:
            continue
        fitting = [
            right
            for right in held[request.service]
            if allows(right, request.verb, request.group, request.plural, request.name)
        ]
        used |= {(request.service, right, request.verb) for right in fitting}
        if fitting:
            covered += times
        else:
            lacking[f"{request.service}: {request.verb} {request.plural} {request.group or 'core'}"] += times
    idle: list[str] = []
    spoken_for: list[str] = []
    for service, each in held.items():
        for right in each:
            for verb in right.verbs:
                if (service, right, verb) not in used:
                    line = f"{service}: {verb} {right.plural} {right.resource.group or 'core'}"
                    (spoken_for if right.unused else idle).append(f"{line}: {right.unused}" if right.unused else line)
    return Verdict(
        tuple(f"{line} ({times} times)" for line, times in sorted(lacking.items())),
        tuple(sorted(idle)),
        tuple(sorted(spoken_for)),
        covered,
        len(used),
    )
