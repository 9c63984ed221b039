"""Which of two versions of an object is the newer one."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

SAME_MOMENT = 2.0
"""Seconds by which creation times must differ to decide. They have a resolution of one second, and the clocks of
several API servers may differ a little; resourceVersions decide below it."""


class Version(NamedTuple):
    """What tells versions of one name apart."""

    uid: str
    resource_version: int
    created: str
    """metadata.creationTimestamp, empty where unknown"""


def resource_version(text: str | None) -> int:
    """A resourceVersion as the integer that it is since Kubernetes 1.35; 0 where there is none or it is none."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def version_of(obj: dict[str, Any]) -> Version:
    """Version of a Kubernetes object."""
    metadata = obj["metadata"]
    return Version(
        metadata.get("uid", ""),
        resource_version(metadata.get("resourceVersion")),
        metadata.get("creationTimestamp") or "",
    )


def is_newer(new: Version, old: Version) -> bool:
    """Whether `new` replaces `old`.

    1. Same uid: the larger resourceVersion.
    2. Other uid, created clearly apart: the later one. Then it does not matter that a cluster which was set up anew
       counts its resourceVersions from the beginning.
    3. Other uid, created at about the same time (deleted and made again at once): the larger resourceVersion.
    """
    if new.uid != old.uid and new.created != old.created:
        apart = _seconds_between(old.created, new.created)
        if abs(apart) > SAME_MOMENT:
            return apart > 0
    return new.resource_version > old.resource_version


def _seconds_between(earlier: str, later: str) -> float:
    try:
        return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds()
    except ValueError:
        return 0.0
