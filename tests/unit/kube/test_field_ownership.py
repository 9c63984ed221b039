"""Fields owned by create become fields owned by apply, in one entry, and entries of other managers do not change."""

from dynamo_shared.kube.field_ownership import applied, predecessors

OTHER = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {"f:paused": {}}}}
STATUS = {"manager": "us", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}}


def entry(operation: str, **fields):
    fields_v1 = {f"f:{k}": v for k, v in fields.items()}
    return {"manager": "us", "operation": operation, "apiVersion": "v1", "fieldsV1": fields_v1}


def test_created_fields_become_applied_fields():
    assert applied([OTHER, entry("Update", spec={"f:replicas": {}}), STATUS], "us") == [
        OTHER,
        STATUS,
        entry("Apply", spec={"f:replicas": {}}),
    ]


def test_both_entries_are_merged():
    old = [entry("Apply", spec={"f:a": {}}), entry("Update", spec={"f:b": {}}, metadata={"f:labels": {}})]
    assert applied(old, "us") == [entry("Apply", spec={"f:a": {}, "f:b": {}}, metadata={"f:labels": {}})]


def test_no_change_is_needed():
    assert applied([OTHER, entry("Apply", spec={}), STATUS], "us") is None
    assert applied([OTHER], "us") is None


def test_fields_of_a_predecessor_become_fields_of_this_manager():
    mark = "example.com/generation"
    fields_v1 = {"f:metadata": {"f:annotations": {f"f:{mark}": {}}}, "f:spec": {"f:a": {}}}
    theirs = {"manager": "old", "operation": "Update", "apiVersion": "v1", "fieldsV1": fields_v1}
    of_another_version = {"manager": "old", "operation": "Update", "apiVersion": "v0", "fieldsV1": {"f:x": {}}}
    of_status = {**theirs, "subresource": "status", "fieldsV1": {"f:status": {}}}
    entries = [OTHER, theirs, of_another_version, of_status]
    before = predecessors(entries, mark, "v1")
    assert before == [theirs, of_status]
    assert predecessors(entries, "example.com/other", "v1") == []
    own = {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsV1": theirs["fieldsV1"]}
    assert applied(entries, "us", before) == [OTHER, of_another_version, of_status, own]


def test_lists_of_a_predecessor_are_owned_as_a_whole_if_its_definitions_had_them_by_key():
    """Otherwise, the first apply would remove the entries that it writes: no field of it has the path of an entry."""
    containers: dict[str, dict[str, object]] = {".": {}, 'k:{"name":"main"}': {".": {}, "f:image": {}}}
    theirs = entry("Update", metadata={"f:finalizers": {'v:"x"': {}}}, spec={"f:containers": containers, "f:a": {}})
    own = entry("Apply", metadata={"f:finalizers": {'v:"x"': {}}}, spec={"f:containers": {}, "f:a": {}})
    assert applied([theirs], "us", [theirs], whole_lists=True) == [own]
    assert applied([theirs], "us", [theirs]) == [{**theirs, "operation": "Apply"}]
