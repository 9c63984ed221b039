"""The API server of a story with a clock, whose time stored objects get."""

from datetime import timedelta

from dynamo_shared.api.conditions import timestamp
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey, Resource

from tests.building.clock import ManualClock
from tests.building.memory_kube import NOW

from .process import BASE
from .world import World


class TimedWorld(World):
    """`moment` is its time, `ahead` seconds later than the clock."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock

    def moment(self, ahead: float = 0.0) -> str:
        return timestamp(BASE + timedelta(seconds=self.clock.now + ahead))

    def _store(self, resource: Resource, key: ObjectKey, obj: KubeObject) -> KubeObject:
        metadata = obj["metadata"]
        for name in ("creationTimestamp", "deletionTimestamp"):
            if metadata.get(name) == NOW:
                metadata[name] = self.moment()
        return super()._store(resource, key, obj)
