"""Which pods have registered with Dynamo, if its discovery is Kubernetes: read while several worker generations exist.

A DynamoWorkerMetadata has the name of its pod, which owns it. If each container registers separately, the names differ,
and if workers register elsewhere, there is none: then no pod counts as registered.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from dynamo_shared.aio import all_of
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import registers
from dynamo_shared.api.resources import DYNAMO_WORKER_METADATAS, key_of
from dynamo_shared.api.untrusted.times import moment
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import Forbidden, NotFound, NotServed
from dynamo_shared.lru import LruCache

#: How many pods of a workload are read while none is known to have registered: its other pods register in the same way.
SAMPLE = 3
REMEMBERED = 10_000


class Registrations:
    """Reads registrations from the API server and remembers them: a pod that has registered is not read again."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._since: LruCache[str, datetime] = LruCache(REMEMBERED)

    async def of(self, workloads: Iterable[Sequence[KubeObject]]) -> dict[str, datetime]:
        """When pods of these workloads registered, by uid. Raises KubeError if the API server is unavailable."""
        pods = [[pod for pod in each if registers(pod)] for each in workloads]
        await self._ask(pod for each in pods for pod in each[:SAMPLE])
        if self._known(pods):
            await self._ask(pod for each in pods for pod in each[SAMPLE:])
        return self._known(pods)

    def _known(self, workloads: Iterable[Sequence[KubeObject]]) -> dict[str, datetime]:
        uids = [objects.uid(pod) for each in workloads for pod in each]
        return {uid: since for uid in uids if (since := self._since.touch(uid)) is not None}

    async def _ask(self, pods: Iterable[KubeObject]) -> None:
        await all_of(self._read(pod) for pod in pods if objects.uid(pod) not in self._since)

    async def _read(self, pod: KubeObject) -> None:
        try:
            # Only the metadata: the rest may be large (a card of each adapter), and a tenant may write it.
            metadata = await self._kube.get_metadata(DYNAMO_WORKER_METADATAS, key_of(pod))
        except (NotFound, Forbidden, NotServed):
            return
        owners = metadata.get("ownerReferences") or ()
        since = moment(metadata.get("creationTimestamp"))
        if since is not None and any(owner.get("uid") == objects.uid(pod) for owner in owners):
            self._since[objects.uid(pod)] = since
