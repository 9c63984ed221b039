from typing import Any

from dynamo_dynadmin.api.changes import MOST_FIELDS, changes_of

REPLICAS: Any = {"f:spec": {"f:components": {'k:{"name":"Worker"}': {"f:replicas": {}}}}}


def entry(manager: str, time: str, fields: Any, **more: str) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields, **more}


def changes(*entries: Any) -> list[dict[str, Any]]:
    return changes_of({"metadata": {"name": "a", "managedFields": list(entries)}})


def test_writers_are_named_with_their_fields_the_last_one_first() -> None:
    labels: Any = {"f:metadata": {"f:labels": {".": {}, "f:team": {}}, "f:finalizers": {'v:"a/b"': {}}}}
    assert changes(
        entry("kubectl-edit", "2026-01-01T00:00:00Z", labels),
        entry("dynadmin/ann", "2026-01-02T00:00:00Z", REPLICAS),
        entry("dynamo-pod-builder", "2026-01-03T00:00:00Z", {"f:status": {"f:state": {}}}, subresource="status"),
    ) == [
        {"manager": "dynadmin/ann", "time": "2026-01-02T00:00:00Z", "fields": ["spec.components[Worker].replicas"]},
        {
            "manager": "kubectl-edit",
            "time": "2026-01-01T00:00:00Z",
            "fields": ["metadata.labels.team", "metadata.finalizers[a/b]"],
        },
    ]


def test_many_fields_of_a_writer_are_named_by_where_they_are() -> None:
    items: Any = {f'k:{{"name":"C{number}"}}': {f"f:{name}": {} for name in "ab"} for number in range(2 * MOST_FIELDS)}
    [change] = changes(entry("kubectl", "t", {"f:spec": {"f:backendFramework": {}, "f:components": items}}))
    assert change["fields"][:2] == ["spec.backendFramework", "spec.components[C0]"]
    assert len(change["fields"]) == MOST_FIELDS


def test_a_record_that_is_missing_or_cannot_be_read_names_no_one() -> None:
    assert changes_of({"metadata": {"name": "a"}}) == []
    assert changes(5, {}, entry("a", "t", {"k:{": {}, "": {}})) == [{"manager": "a", "time": "t", "fields": ["[{]"]}]
