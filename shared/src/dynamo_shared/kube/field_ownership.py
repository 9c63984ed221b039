"""From created to applied: server-side apply takes over the fields that we wrote with POST.

A create is refused where the name is taken, which an apply is not, so children are created. But what a manager wrote by
create counts as an "Update", and apply removes only what the same manager applied. So before the first apply the entry is
rewritten, as client-go's csaupgrade does it.
"""

from collections.abc import Collection
from typing import Any

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.client import KubeClient

Entry = dict[str, Any]


async def claim_fields(client: KubeClient, resource: Resource, key: ObjectKey, *, of_predecessor: str = "") -> None:
    """Rewrite our "Update" entries of an object's managedFields to "Apply"; writes nothing where there is no such entry.

    `of_predecessor` names an annotation that an earlier operator wrote. We take over the fields of its managers, so that the
    next apply removes what is no longer desired, as if we had written it.

    Raises KubeError: NotFound where the object is gone, Conflict where it changed in between.
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
    """All entries, in terms of an API version, of the managers that own an annotation."""
    managers = {
        entry["manager"]
        for entry in entries
        if f"f:{annotation}" in entry.get("fieldsV1", {}).get("f:metadata", {}).get("f:annotations", {})
    }
    return [entry for entry in entries if entry["manager"] in managers and entry.get("apiVersion") == api_version]


def applied(entries: list[Entry], manager: str, before: Collection[Entry] = ()) -> list[Entry] | None:
    """The entries with those of `manager`, and those `before` it, turned into one "Apply" entry of its own.

    None where nothing has to change.
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
