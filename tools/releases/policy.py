"""The deprecation policy: no API is removed or changed without notice in two earlier releases."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dynamo_shared.api.deprecations import DEPRECATIONS, Deprecation
from dynamo_shared.api.semver import at_least

from tools.releases.compare import Change
from tools.releases.snapshot import Snapshot

NOTICE_RELEASES = 2
"""Releases that must have announced a change before it is made (formalization proposal, deprecation policy)."""

REGISTRY = "dynamo_shared/api/deprecations.py"


def violations(
    changes: Iterable[Change], history: Sequence[Snapshot], version: str, registry: Sequence[Deprecation] = DEPRECATIONS
) -> Iterator[str]:
    """The policy violations among breaking changes, each as a sentence with the remedy.

    `history`: the past releases, oldest first; `version`: the version of the checkout.
    """
    for change in changes:
        if change.breaking and (problem := _problem(change, history, version, registry)):
            yield f"{change}. {problem}"


def _problem(change: Change, history: Sequence[Snapshot], version: str, registry: Sequence[Deprecation]) -> str:
    notice = next((each for each in registry if _covers(each, change)), None)
    last = history[-1]["release"]
    if notice is None:
        return (
            f"It differs from release {last}, and {REGISTRY} does not announce the change: restore it, add an entry, and make "
            f"the change when {NOTICE_RELEASES} releases have had that entry."
        )
    announced = [str(snapshot["release"]) for snapshot in history if _is_announced(snapshot, change)]
    if len(announced) < NOTICE_RELEASES:
        announced_in = f"of {', '.join(announced)}" if announced else "of no release"
        return (
            f"{REGISTRY} has an entry, which is in the file {announced_in}: restore the old state until {NOTICE_RELEASES} "
            "releases have announced the change."
        )
    if not at_least(version, _full(notice.removed_in)):
        return f"{REGISTRY} promises it until {notice.removed_in}, but this is {version}: restore it until then."
    return ""


def _covers(notice: Deprecation, change: Change) -> bool:
    return change.subject in notice.kinds and _matches(notice.version, notice.path, change)


def _is_announced(snapshot: Snapshot, change: Change) -> bool:
    entries: list[dict[str, Any]] = snapshot["deprecations"]
    return any(each["kind"] == change.subject and _matches(each["version"], each["path"], change) for each in entries)


def _matches(version: str, path: str, change: Change) -> bool:
    """Whether an entry covers the change: the same field, a parent of it, or the whole version."""
    below = change.path.startswith((f"{path}.", f"{path}[]", f"{path}{{}}"))
    return change.version == version and (not path or change.path == path or below)


def _full(version: str) -> str:
    """`v1.0` as a semantic version: v1.0.0."""
    return version if version.count(".") > 1 else f"{version}.0"
