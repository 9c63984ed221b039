"""Operations on the etcd of a control plane."""

import aiohttp
from dynamo_devcluster.controlplane import ControlPlane


async def compact(plane: ControlPlane, revision: int) -> None:
    """Drop the history before a revision: watches from there get status 410."""
    # etcd's JSON gateway.
    async with aiohttp.ClientSession() as session:
        body = {"revision": str(revision), "physical": True}
        async with session.post(f"{plane.etcd.url}/v3/kv/compaction", json=body) as response:
            assert response.status == 200, await response.text()
