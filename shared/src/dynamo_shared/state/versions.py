"""What distinguishes versions of one name.

Which of two versions counts is not a matter of comparing them: the order of the stream decides (`cache`). A data store
that was set back counts its resourceVersions again from a lower number, a clock may be wrong, and a forged number may be
as large as its author likes.
"""

from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject


class Version(NamedTuple):
    """What distinguishes versions of one name."""

    uid: str
    resource_version: int
    created: str
    """metadata.creationTimestamp, empty where unknown"""


def resource_version(text: str | None) -> int:
    """A resourceVersion as the integer that it is since Kubernetes 1.35; 0 where it is missing or not an integer."""
    try:
        return int(text or 0)
    except ValueError:
        return 0


def version_of(obj: KubeObject) -> Version:
    """Version of a Kubernetes object."""
    metadata = obj["metadata"]
    return Version(
        metadata.get("uid", ""),
        resource_version(metadata.get("resourceVersion")),
        metadata.get("creationTimestamp") or "",
    )
