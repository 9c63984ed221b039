"""Records in Dynamo's own etcd: `v1/instances/` and `v1/mdc/`, each key bound to its process's lease."""

from collections.abc import Callable, Mapping, Sequence

from dynamo_shared.aio import either, endless
from dynamo_shared.leases.follow import EtcdOptions, PrefixFollower

from dynamo_model_discovery.workers.assembly import ETCD
from dynamo_model_discovery.workers.records import CARDS, INSTANCES
from dynamo_model_discovery.workers.sources.base import RecordTable

ROOT = "v1/"


class EtcdSource(RecordTable):
    """Watches the two prefixes, read-only. This etcd is usually not the platform's own."""

    name = ETCD

    def __init__(self, options: EtcdOptions, changed: Callable[[], None]) -> None:
        super().__init__(ETCD)
        self._changed = changed
        self._followers: Sequence[PrefixFollower] = [
            PrefixFollower(options, f"{ROOT}{kind}/", self._take) for kind in (INSTANCES, CARDS)
        ]

    @property
    def ready(self) -> bool:
        """Whether both prefixes have been read."""
        return all(follower.complete for follower in self._followers)

    @property
    def error(self) -> str:
        """Why etcd cannot be read at the moment."""
        return next((follower.trouble for follower in self._followers if follower.trouble), "")

    async def run(self) -> None:
        """Watch until cancelled."""
        await endless(either(*(follower.run() for follower in self._followers)))

    def _take(self, changes: Mapping[str, bytes | None]) -> None:
        self.take({key.removeprefix(ROOT): value for key, value in changes.items()})
        self._changed()
