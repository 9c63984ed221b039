"""Converts ownership from create to apply: server-side apply takes over the fields that this manager wrote with POST.

Children are created, because a create fails if the name is in use, unlike an apply. But fields from a create count as
an "Update", and apply removes only fields that the same manager applied. So before the first apply this rewrites the
entry, like client-go's csaupgrade.
"""

from collections.abc import Collection
from typing import Any

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.client import KubeClient

Entry = dict[str, Any]


async def claim_fields(client: KubeClient, resource: Resource, key: ObjectKey, *, of_predecessor: str = "") -> None:
    """Rewrite this manager's "Update" entries in managedFields to "Apply"; writes nothing if there is no such entry.

    `of_predecessor`: an annotation that an earlier operator wrote. Takes over the fields of the annotation's managers,
    so that the next apply removes fields that are no longer desired.

    Raises KubeError: NotFound if the object does not exist, Conflict if it changed meanwhile.
    """
    metadata = (await client.get(resource, key))["metadata"]
    present = metadata.get("managedFields", [])
    before = predecessors(present, of_predecessor, resource.api_version) if of_predecessor else ()
    entries = applied(present, client.field_manager, before)
    if entries is None:
        return
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
    await client.merge_patch(resource, key, patch)


def predecessors(entries: list[Entry], annotation: str, api_version: str) -> list[Entry]:
    """All entries with this API version of the managers that own an annotation."""
    managers = {
        entry["manager"]
        for entry in entries
        if f"f:{annotation}" in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})
    }
    return [entry for entry in entries if entry["manager"] in managers and entry.get("apiVersion") == api_version]


def applied(entries: list[Entry], manager: str, before: Collection[Entry] = ()) -> list[Entry] | None:
    """The entries, with those of `manager` and those in `before` merged into one "Apply" entry of `manager`.

    None if nothing has to change.
    """
    mine = [
        entry
        for entry in entries
        if not entry.get("subresource") and (entry.get("manager") == manager or entry in before)
    ]
    if all(entry["operation"] == "Apply" and entry["manager"] == manager for entry in mine):
        return None
    fields: dict[str, Any] = {}
    for entry in mine:
        fields = _union(fields, entry.get("fieldsV1", {}))
    merged = {**mine[-1], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return [entry for entry in entries if entry not in mine] + [merged]


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    merged = dict(left)
    for name, value in right.items():
        merged[name] = _union(merged[name], value) if name in merged else value
    return merged
