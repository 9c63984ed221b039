"""The autoscaler that a graph requests, in either version, and the object that the scaler renders from it."""

from typing import Any

import pytest
import yaml
from dynamo_scaler.autoscaling.desired import InvalidAutoscalingError, desired_autoscaling
from dynamo_scaler.autoscaling.render import CPU, autoscaler, described
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.registry.annotations import AUTOSCALING
from dynamo_shared.kube.stamps import stamped

ADAPTER = {
    "metadata": {"name": "g-w", "namespace": "n", "uid": "u"},
    "spec": {"dgdRef": {"name": "g", "componentName": "W"}, "replicas": 1},
}


def graph(document: Any) -> dict[str, Any]:
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    metadata = {"name": "g", "namespace": "n", "annotations": {AUTOSCALING: text}}
    spec = {"components": [{"name": "W", "scalingAdapter": {}}]}
    return {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}


def of_alpha(**section: Any) -> dict[str, Any]:
    service = {"componentType": "worker", "scalingAdapter": {"enabled": True}, "autoscaling": section}
    metadata = {"name": "g", "namespace": "n"}
    spec = {"services": {"W": service}}
    written = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "metadata": metadata, "spec": spec}
    return convert(written, "nvidia.com/v1beta1")


def made(of: dict[str, Any]) -> dict[str, Any]:
    desired = desired_autoscaling(of, "W")
    assert desired is not None
    return autoscaler(ADAPTER, desired)


def test_rules_without_metrics_scale_on_cpu_at_80_percent():
    hpa = made(graph({"W": {"minReplicas": 2, "maxReplicas": 8}}))
    assert (hpa["apiVersion"], hpa["kind"], hpa["metadata"]["name"]) == (
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "g-w",
    )
    assert hpa["spec"] == {
        "scaleTargetRef": {
            "apiVersion": "nvidia.com/v1beta1",
            "kind": "DynamoGraphDeploymentScalingAdapter",
            "name": "g-w",
        },
        "minReplicas": 2,
        "maxReplicas": 8,
        "metrics": [CPU],
    }
    assert hpa["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert described(hpa) == "HorizontalPodAutoscaler g-w between 2 and 8 replicas"


def test_triggers_render_a_scaled_object_that_may_scale_from_zero():
    triggers = [{"type": "cron", "metadata": {"timezone": "UTC"}}]
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60}}
    rules = {"minReplicas": 0, "maxReplicas": 4, "triggers": triggers, "pollingInterval": 5, "behavior": behavior}
    result = made(graph({"W": rules}))
    assert (result["apiVersion"], result["kind"]) == ("keda.sh/v1alpha1", "ScaledObject")
    assert result["spec"] == {
        "scaleTargetRef": result["spec"]["scaleTargetRef"],
        "minReplicaCount": 0,
        "maxReplicaCount": 4,
        "triggers": rules["triggers"],
        "pollingInterval": 5,
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": rules["behavior"]}},
    }


def test_the_autoscaling_section_of_v1alpha1_survives_conversion():
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 1}}
    hpa = made(of_alpha(enabled=True, minReplicas=2, maxReplicas=5, behavior=behavior))
    assert (hpa["spec"]["minReplicas"], hpa["spec"]["maxReplicas"], hpa["spec"]["behavior"]) == (2, 5, behavior)
    assert hpa["spec"]["metrics"] == [CPU]
    assert desired_autoscaling(of_alpha(enabled=False, maxReplicas=5), "W") is None
    assert desired_autoscaling(of_alpha(maxReplicas=5), "W") is None


def test_the_annotation_has_precedence_over_the_v1alpha1_section():
    both = of_alpha(enabled=True, maxReplicas=5)
    both["metadata"]["annotations"][AUTOSCALING] = "W: {maxReplicas: 9}"
    assert made(both)["spec"]["maxReplicas"] == 9


def test_a_graph_without_rules_requests_no_autoscaler():
    assert desired_autoscaling(graph({"Other": {"maxReplicas": 2}}), "W") is None
    assert desired_autoscaling({"metadata": {}, "spec": {}}, "W") is None
    assert desired_autoscaling(graph(""), "W") is None


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("on: [", "is not valid YAML"),
        ("[]", "must be a map"),
        ("V: {maxReplicas: 2}\n---\nW: {maxReplicas: 2}", "has 2 YAML documents, but only one is allowed"),
        ({"W": {"minReplicas": 3, "maxReplicas": 2}}, "W.maxReplicas: must be at least minReplicas, which is 3"),
        (
            {"W": {"maxReplicas": 2, "pollingInterval": 5}},
            "W.pollingInterval: is a setting of KEDA, and needs triggers",
        ),
        ({"W": {"maxReplicas": 2, "metrics": [CPU], "triggers": [{"type": "cpu"}]}}, "W.triggers: cannot be combined"),
        ({"W": {"minReplicas": 1}}, "W.maxReplicas"),
    ],
)
def test_invalid_rules_are_reported_with_their_place(document, words):
    with pytest.raises(InvalidAutoscalingError, match="dynamo-autoscaling") as caught:
        desired_autoscaling(graph(document), "W")
    assert words in str(caught.value)


def test_the_section_of_v1alpha1_needs_its_bounds_too():
    with pytest.raises(InvalidAutoscalingError, match=r"spec\.services\.W\.autoscaling\.maxReplicas"):
        desired_autoscaling(of_alpha(enabled=True), "W")


def test_removed_rules_change_the_hash():
    with_behavior = made(graph({"W": {"maxReplicas": 2, "behavior": {"scaleUp": {}}}}))
    without = made(graph({"W": {"maxReplicas": 2}}))
    hashes = {next(iter(stamped(each)["metadata"]["annotations"].values())) for each in (with_behavior, without)}
    assert len(hashes) == 2
    assert stamped(without) == stamped(made(graph({"W": {"maxReplicas": 2}})))
