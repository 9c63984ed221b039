"""The Lease by which a platform of one namespace informs cluster-wide platforms that it serves the namespace.

It has the reference's name and fields (operator behaviour, section 10), so that its operators and this platform respect
each other's leases.

Every user with the ClusterRole `edit` in the namespace can write the Lease. Therefore it affects only the namespace: the
services of cluster-wide platforms ignore it. Webhooks ignore only the namespaces in the setting `trustedNamespaces`.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import LEASES
from dynamo_shared.api.untrusted import times
from dynamo_shared.api.untrusted.reading import mapping

NAME = "dynamo-operator-namespace-scope"


def lease(namespace: str, version: str, duration: float, now: datetime) -> KubeObject:
    """The Lease of a platform of this version, renewed now, for `duration` seconds."""
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        **LEASES.type_meta,
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "holderIdentity": f"namespace-restricted-operator-{version}",
            "leaseDurationSeconds": round(duration),
            "renewTime": moment,
        },
    }


def is_live(lease: KubeObject, now: datetime) -> bool:
    """Whether a Lease has not expired. Accepts any content.

    The reference renews a Lease 10 s after its creation: until then the time of the creation counts.
    """
    metadata, spec = lease.get("metadata"), lease.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return False
    since = spec.get("renewTime") or spec.get("acquireTime") or metadata.get("creationTimestamp")
    return times.is_current(since, spec.get("leaseDurationSeconds"), now)


def duration_of(lease: KubeObject) -> float:
    """The duration of a Lease in seconds; 0 if it is invalid. Accepts any content."""
    duration = times.span(mapping(lease.get("spec")).get("leaseDurationSeconds"), times.LONGEST_LEASE)
    return duration.total_seconds() if duration is not None else 0.0


def is_trusted(namespace: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern (such as `team-*`) of the setting allows the Lease of this namespace to disable webhooks."""
    return any(fnmatchcase(namespace, pattern) for pattern in patterns)
