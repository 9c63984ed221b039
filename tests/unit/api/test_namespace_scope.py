"""The Lease that announces a platform of one namespace."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from dynamo_shared.api import namespace_scope

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def lease(created: str = "2025-12-01T00:00:00Z", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": namespace_scope.NAME, "namespace": "team", "creationTimestamp": created}, "spec": spec}


@pytest.mark.parametrize(
    ("observed", "live"),
    [
        (lease(leaseDurationSeconds=30, renewTime="2025-12-31T23:59:40.000000Z"), True),
        (lease(leaseDurationSeconds=30, renewTime="2025-12-31T23:59:20.000000Z"), False),
        (lease(leaseDurationSeconds=30), False),
        (lease(renewTime="2025-12-31T23:59:59Z"), False),
        (lease(), False),
        # Like the reference creates it: the first renewal follows later.
        (lease("2025-12-31T23:59:50Z", leaseDurationSeconds=30), True),
        (lease(leaseDurationSeconds=30, acquireTime="2025-12-31T23:59:50Z"), True),
        # A clock that is a little ahead.
        (lease(leaseDurationSeconds=30, renewTime="2026-01-01T00:04:59Z"), True),
        # A tenant may store these to keep the namespace, or to crash readers of the Lease.
        (lease(leaseDurationSeconds=30, renewTime="9999-12-31T23:59:59.000000Z"), False),
        (lease(leaseDurationSeconds=30, renewTime="2026-01-01T00:06:00Z"), False),
        (lease(leaseDurationSeconds=2**31 - 1, renewTime="2025-12-31T22:59:00Z"), False),
        (lease(leaseDurationSeconds=2**31 - 1, renewTime="2025-12-31T23:59:00Z"), True),
        (lease(leaseDurationSeconds=-30, renewTime="2026-01-01T00:00:00Z"), False),
        (lease(leaseDurationSeconds=30, renewTime="0001-01-01T00:00:00+01:00"), False),
        (lease(leaseDurationSeconds=30, renewTime="2026-01-01T00:00:00"), False),
        (lease(leaseDurationSeconds=10**400, renewTime="junk"), False),
        ({"metadata": "x", "spec": {}}, False),
        ({"metadata": {}, "spec": []}, False),
        ({}, False),
    ],
)
def test_a_lease_is_live_for_its_duration_after_its_renewal_or_creation(observed, live) -> None:
    assert namespace_scope.is_live(observed, NOW) is live


def test_a_new_lease_is_live_at_once_and_until_its_duration_ends() -> None:
    made = namespace_scope.lease("team", "1.2.0", 30.0, NOW)
    assert made["spec"]["holderIdentity"] == "namespace-restricted-operator-1.2.0"
    assert namespace_scope.is_live(made, NOW + timedelta(seconds=29))
    assert not namespace_scope.is_live(made, NOW + timedelta(seconds=31))


@pytest.mark.parametrize(
    ("patterns", "trusted"), [((), False), (("team",), True), (("te*", "x"), True), (("teams", "TEAM"), False)]
)
def test_the_configuration_trusts_the_namespaces_in_which_a_lease_disables_webhooks(patterns, trusted) -> None:
    assert namespace_scope.is_trusted("team", patterns) is trusted
