"""Identifies versions of one name.

Versions are not compared to decide which one counts: the order of the stream decides (`cache`). A data store that was
set back counts its resourceVersions again from a lower number, a clock may be wrong, and a forged number may be
arbitrarily large.
"""

from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject


class Version(NamedTuple):
    """Distinguishes versions of one name."""

    uid: str
    resource_version: int
    created: str
    """metadata.creationTimestamp, empty if unknown"""


def resource_version(text: str | None) -> int:
    """A resourceVersion as an integer, which it always is since Kubernetes 1.35; 0 if it is missing or not an integer."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def version_of(obj: KubeObject) -> Version:
    """The version of a Kubernetes object."""
    metadata = obj["metadata"]
    return Version(
        metadata.get("uid", ""),
        resource_version(metadata.get("resourceVersion")),
        metadata.get("creationTimestamp") or "",
    )
