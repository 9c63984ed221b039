"""Converts ownership from create to apply: server-side apply takes over the fields that this manager wrote with POST.

Children are created, because a create fails if the name is in use, unlike an apply. But fields from a create count as
an "Update", and apply removes only fields that the same manager applied. So before the first apply this rewrites the
entry, like client-go's csaupgrade.
"""

from collections.abc import Collection
from typing import Any

from dynamo_shared.api.resources import GROUP, ObjectKey, Resource
from dynamo_shared.kube.client import KubeClient

Entry = dict[str, Any]
#: How managedFields names the entries of a list: by key, by value, by position.
_ENTRIES = ("k:", "v:", "i:")


async def claim_fields(client: KubeClient, resource: Resource, key: ObjectKey, *, of_predecessor: str = "") -> None:
    """Rewrite this manager's "Update" entries in managedFields to "Apply"; writes nothing if there is no such entry.

    `of_predecessor`: an annotation that an earlier operator wrote. Takes over the fields of the annotation's managers,
    so that the next apply removes fields that are no longer desired. The fields of Dynamo's own kinds are recorded by
    the operator's definitions, in which lists such as containers have keys; in the platform's they have none.

    Raises KubeError: NotFound if the object does not exist, Conflict if it changed meanwhile.
    """
    metadata = (await client.get(resource, key))["metadata"]
    present = metadata.get("managedFields", [])
    before = predecessors(present, of_predecessor, resource.api_version) if of_predecessor else ()
    entries = applied(present, client.field_manager, before, whole_lists=resource.group == GROUP)
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


def applied(
    entries: list[Entry], manager: str, before: Collection[Entry] = (), *, whole_lists: bool = False
) -> list[Entry] | None:
    """The entries, with those of `manager` and those in `before` merged into one "Apply" entry of `manager`.

    None if nothing has to change. With `whole_lists`, the entries in `before` own lists of the spec as a whole. If a
    list has no keys, the next apply would otherwise remove fields from its entries, also those that it contains.
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
        owned = entry.get("fieldsV1", {})
        if whole_lists and entry in before and "f:spec" in owned:
            owned = {**owned, "f:spec": _with_whole_lists(owned["f:spec"])}
        fields = _union(fields, owned)
    merged = {**mine[-1], "manager": manager, "operation": "Apply", "fieldsV1": fields}
    return [entry for entry in entries if entry not in mine] + [merged]


def _with_whole_lists(fields: dict[str, Any]) -> dict[str, Any]:
    if any(name.startswith(_ENTRIES) for name in fields):
        return {}
    return {name: _with_whole_lists(value) for name, value in fields.items()}


def _union(left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    merged = dict(left)
    for name, value in right.items():
        merged[name] = _union(merged[name], value) if name in merged else value
    return merged
