"""Fields written by create become fields owned by apply, in one entry, and nobody else's entries change."""

from __future__ import annotations

from dynamo_shared.kube.field_ownership import applied

OTHER = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}}
STATUS = {"manager": "us", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}


def entry(operation: str, **fields):
    return {
        "manager": "us",
        "operation": operation,
        "apiVersion": "v1",
        "fieldsV1": {f"f:{k}": v for k, v in fields.items()},
    }


def test_what_was_created_becomes_applied():
    assert applied([OTHER, entry("Update", spec={"f:replicas": {}}), STATUS], "us") == [
        OTHER,
        STATUS,
        entry("Apply", spec={"f:replicas": {}}),
    ]


def test_both_kinds_are_united():
    old = [entry("Apply", spec={"f:a": {}}), entry("Update", spec={"f:b": {}}, metadata={"f:labels": {}})]
    assert applied(old, "us") == [entry("Apply", spec={"f:a": {}, "f:b": {}}, metadata={"f:labels": {}})]


def test_nothing_to_do():
    assert applied([OTHER, entry("Apply", spec={}), STATUS], "us") is None
    assert applied([OTHER], "us") is None
