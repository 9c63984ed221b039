"""Operations on the etcd of a control plane, through etcd's JSON gateway."""

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.probe import LocalHttp
from dynamo_shared.api.resources import Resource


async def compact(plane: ControlPlane, revision: int) -> None:
    """Drop the history before a revision: watches from there get status 410."""
    await _request(plane, "compaction", {"revision": str(revision), "physical": True})


async def stored(plane: ControlPlane, namespace: str, candidates: Sequence[Resource]) -> list[Resource]:
    """Those of the resources that have objects in a namespace: one request, and none to the API server."""
    counted = await _request(plane, "txn", {"success": [_count(each, namespace) for each in candidates]})
    pairs = zip(candidates, counted["responses"], strict=True)
    return [resource for resource, answer in pairs if "count" in answer["response_range"]]


def _count(resource: Resource, namespace: str) -> dict[str, Any]:
    """The number of a resource's objects. The keys of Kubernetes' own kinds have no group."""
    place = f"{resource.group}/{resource.plural}" if "." in resource.group else resource.plural
    key, end = f"/registry/{place}/{namespace}/", f"/registry/{place}/{namespace}0"
    encoded = {name: b64encode(value.encode()).decode() for name, value in (("key", key), ("range_end", end))}
    return {"request_range": {**encoded, "count_only": True}}


async def _request(plane: ControlPlane, method: str, body: dict[str, Any]) -> Any:
    status, answer = await LocalHttp(plane.etcd.port).request("POST", f"/v3/kv/{method}", body)
    assert status == 200, answer
    return json.loads(answer)
