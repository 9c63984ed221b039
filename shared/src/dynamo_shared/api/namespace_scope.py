"""Who looks after a namespace: the lease by which a platform that serves one namespace is known to those that serve all.

The reference's name and fields (operator behaviour, section 10), so that its operators and ours respect each other.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import LEASES

NAME = "dynamo-operator-namespace-scope"


def lease(namespace: str, version: str, duration: float, now: datetime) -> KubeObject:
    """The lease of a platform of this version, renewed now. `duration` in seconds."""
    moment = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": NAME, "namespace": namespace},
        "spec": {
            "holderIdentity": f"namespace-restricted-operator-{version}",
            "leaseDurationSeconds": round(duration),
            "renewTime": moment,
        },
    }


def is_live(found: KubeObject, now: datetime) -> bool:
    """Whether somebody holds a lease: it was renewed, or made, not too long ago.

    One that was never renewed counts from when it was made: the reference makes it so, and renews it only 10 s later.
    """
    spec = found.get("spec") or {}
    seconds = spec.get("leaseDurationSeconds")
    since = spec.get("renewTime") or spec.get("acquireTime") or found["metadata"].get("creationTimestamp")
    if not (seconds and since):
        return False
    return datetime.fromisoformat(since) + timedelta(seconds=seconds) > now
