"""The objects that are published."""

from typing import Any

import pytest
from dynamo_shared.api.resources import (
    HORIZONTAL_POD_AUTOSCALERS,
    KAI_QUEUES,
    NODES,
    PODS,
    RESOURCE_SLICES,
    SCALED_OBJECTS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from dynamo_shared.runtime.settings import Settings
from dynamo_watcher.app import left_out
from dynamo_watcher.resources import WATCHED, Watched


def watched(resource: Resource) -> Watched:
    (result,) = [entry for entry in WATCHED if entry.resource == resource]
    return result


@pytest.mark.parametrize(
    ("object_labels", "published"),
    [
        ({}, False),
        ({"app.kubernetes.io/managed-by": "dynamo-operator"}, True),
        ({"app.kubernetes.io/managed-by": "Helm"}, False),
        ({"nvidia.com/dynamo-component-pod": "true"}, True),
        ({"nvidia.com/dynamo-component-pod": "false"}, False),
        ({"app.kubernetes.io/managed-by": "Helm", "nvidia.com/dynamo-component-pod": "true"}, True),
    ],
)
def test_accounts_of_the_platform_and_accounts_labelled_for_component_pods_are_watched(
    object_labels: dict[str, str], published: bool
) -> None:
    account: dict[str, Any] = {"metadata": {"name": "a", "labels": object_labels}}
    assert watched(SERVICE_ACCOUNTS).includes(account) is published


@pytest.mark.parametrize("resource", [HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS])
@pytest.mark.parametrize(
    ("object_labels", "target", "published"),
    [
        ({"nvidia.com/dynamo-graph-deployment-name": "g"}, None, True),
        ({}, {"kind": "DynamoGraphDeploymentScalingAdapter", "name": "g-w"}, True),
        ({}, {"kind": "Deployment", "name": "g-w"}, False),
        ({}, "nonsense", False),
        ({}, None, False),
    ],
)
def test_autoscalers_with_a_label_or_an_adapter_as_their_target_are_watched(
    resource: Resource, object_labels: dict[str, str], target: Any, published: bool
) -> None:
    autoscaler = {"metadata": {"name": "a", "labels": object_labels}, "spec": {"scaleTargetRef": target}}
    assert watched(resource).includes(autoscaler) is published


def test_pods_of_components_are_watched_and_secrets_never() -> None:
    assert watched(PODS).label_selector == "nvidia.com/dynamo-component"
    assert all(entry.resource != SECRETS for entry in WATCHED)


def test_cluster_scoped_objects_are_not_watched_if_the_settings_exclude_them() -> None:
    """A platform of some namespaces may lack the right to read them, and would wait for a first list without end."""
    assert left_out(Settings()) == set()
    without = {"gpu": {"discoveryEnabled": False}, "orchestrators": {"kaiScheduler": {"enabled": False}}}
    assert left_out(Settings.model_validate(without)) == {NODES, RESOURCE_SLICES, KAI_QUEUES}
    clusterwide = {entry.resource for entry in WATCHED if not entry.resource.namespaced}
    assert clusterwide == {NODES, RESOURCE_SLICES, KAI_QUEUES}
