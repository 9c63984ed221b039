"""Which platform serves a namespace: the lease that a platform of one namespace holds for those that serve all.

The reference's name and fields (operator behaviour, section 10), so that its operators and this platform respect each other.

Everyone who may write Leases in that namespace can write the lease; the ClusterRole `edit` is enough. So it only ever
costs that namespace: the services leave it alone. It does not switch off a webhook: see the settings' `trustedNamespaces`.
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
    """The lease of a platform of this version, renewed now. `duration` in seconds."""
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
    """Whether a platform holds a lease: it was renewed, or created, not too long ago. Any content is answered.

    One that was never renewed counts from its creation: the reference creates it so, and renews it only 10 s later.
    """
    metadata, spec = lease.get("metadata"), lease.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        return False
    since = spec.get("renewTime") or spec.get("acquireTime") or metadata.get("creationTimestamp")
    return times.is_current(since, spec.get("leaseDurationSeconds"), now)


def duration_of(lease: KubeObject) -> float:
    """For how many seconds a renewal counts. Any content is answered."""
    duration = times.span(mapping(lease.get("spec")).get("leaseDurationSeconds"), times.LONGEST_LEASE)
    return duration.total_seconds() if duration is not None else 0.0


def is_trusted(namespace: str, patterns: Sequence[str]) -> bool:
    """Whether the configuration lets this namespace's lease switch off webhooks, too. Patterns such as `team-*`."""
    return any(fnmatchcase(namespace, pattern) for pattern in patterns)
