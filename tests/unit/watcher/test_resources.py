"""Which objects are published."""

from __future__ import annotations

from typing import Any

import pytest
from dynamo_shared.api.resources import PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from dynamo_watcher.resources import WATCHED, Watched


def watched(resource: Resource) -> Watched:
    (found,) = [entry for entry in WATCHED if entry.resource == resource]
    return found


@pytest.mark.parametrize(
    ("marks", "published"),
    [
        ({}, False),
        ({"app.kubernetes.io/managed-by": "dynamo-operator"}, True),
        ({"app.kubernetes.io/managed-by": "Helm"}, False),
        ({"nvidia.com/dynamo-component-pod": "true"}, True),
        ({"nvidia.com/dynamo-component-pod": "false"}, False),
        ({"app.kubernetes.io/managed-by": "Helm", "nvidia.com/dynamo-component-pod": "true"}, True),
    ],
)
def test_accounts_are_ours_or_marked_for_component_pods(marks: dict[str, str], published: bool) -> None:
    account: dict[str, Any] = {"metadata": {"name": "a", "labels": marks}}
    assert watched(SERVICE_ACCOUNTS).includes(account) is published


def test_pods_of_components_are_watched_and_secrets_never() -> None:
    assert watched(PODS).label_selector == "nvidia.com/dynamo-component"
    assert all(entry.resource != SECRETS for entry in WATCHED)
