"""From created to applied: making the fields that we wrote with POST ours by server-side apply.

A create is refused where the name is taken, which an apply is not, so children are created. But what a manager wrote by
create counts as an "Update", and apply removes only what the same manager applied. So before the first apply the entry is
rewritten, as client-go's csaupgrade does it.
"""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.resources import ObjectKey, Resource
from dynamo_shared.kube.client import KubeClient

Entry = dict[str, Any]


async def claim_fields(client: KubeClient, resource: Resource, key: ObjectKey) -> None:
    """Rewrite our "Update" entries of an object's managedFields to "Apply"; writes nothing where there are none.

    Raises KubeError: NotFound where the object is gone, Conflict where it changed in between.
    """
    metadata = (await client.get(resource, key))["metadata"]
    entries = applied(metadata.get("managedFields", []), client.field_manager)
    if entries is None:
        return
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"], "managedFields": entries}}
    await client.merge_patch(resource, key, patch)


def applied(entries: list[Entry], manager: str) -> list[Entry] | None:
    """The entries with those of `manager` turned into one "Apply" entry; None where nothing has to change."""
    mine = [entry for entry in entries if entry.get("manager") == manager and not entry.get("subresource")]
    if all(entry["operation"] == "Apply" for entry in mine):
        return None
    fields: dict[str, Any] = {}
    for entry in mine:
        fields = _union(fields, entry.get("fieldsV1", {}))
    ours = {**mine[-1], "operation": "Apply", "fieldsV1": fields}
    return [entry for entry in entries if entry not in mine] + [ours]


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    merged = dict(left)
    for name, value in right.items():
        merged[name] = _union(merged[name], value) if name in merged else value
    return merged
