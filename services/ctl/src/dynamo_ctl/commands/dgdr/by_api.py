"""`dynamoctl dgdr --server`: the same commands over the REST API."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.yaml_output import to_yaml

from dynamo_ctl.output import Print
from dynamo_ctl.remote import COLLECTIONS, Remote


async def request_object(remote: Remote, name: str) -> KubeObject:
    """Read a DynamoGraphDeploymentRequest."""
    request: KubeObject = await remote.request("GET", remote.path(COLLECTIONS["dgdr"], name))
    return request


async def promote(remote: Remote, name: str, number: int | None, out: Print, *, dry_run: bool) -> None:
    """Deploy a point of a request; without a number, the selected point."""
    if number is None:
        candidates = await remote.listed(remote.path(COLLECTIONS["dgdr"], name, "candidates"), "point", "selected")
        number = next((each["point"] for each in candidates["items"] if each["selected"]), 1)
    path = remote.path(COLLECTIONS["dgdr"], name, "promote", dryRun="true" if dry_run else "")
    graph = await remote.request("POST", path, {"point": number})
    if dry_run:
        out(to_yaml(graph).rstrip())
    else:
        out(f"{graph['kind']} {graph['metadata']['name']} deployed in namespace {remote.namespace}")
