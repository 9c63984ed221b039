"""PodEvents: the Events that explain why a pod does not start."""

import json

from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.status.pods import troubles
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube import ResponseTooLarge

from tests.building.clock import ManualClock

from .test_troubles import NOW, SCHEDULED, ago, pod

NOTE = 'MountVolume.SetUp failed for volume "v": secret "models" not found'
NOT_PREPARED = {"type": "PodReadyToStartContainers", "status": "False", "lastTransitionTime": ago(240)}


class EventServer:
    """An API server with an Event about the first pod named g-0."""

    async def list(self, _resource: object, _namespace: str, *, field_selector: str, most: int) -> list[KubeObject]:
        event = {"regarding.kind": "Pod", "regarding.name": "g-0", "regarding.uid": "first", "type": "Warning"}
        selected = dict(each.split("=") for each in field_selector.split(","))
        if not selected.items() <= event.items():
            return []
        return [{"type": "Warning", "reason": "FailedMount", "note": NOTE}]


def of(uid: str) -> KubeObject:
    return pod("g-0", conditions=[SCHEDULED, NOT_PREPARED], metadata={"uid": uid})


async def test_events_of_a_former_pod_do_not_explain_a_pod_of_the_same_name():
    events = PodEvents(EventServer(), ManualClock())  # type: ignore[arg-type]
    (before,) = await events.explain("ns", troubles([of("first")], NOW))
    assert (before.reason, NOTE in before.message) == ("VolumeNotMounted", True)
    # A StatefulSet reuses the names of its pods, and Events stay for an hour.
    (after,) = await events.explain("ns", troubles([of("second")], NOW))
    assert (after.reason, NOTE in after.message) == ("PodNotStarted", False)


class FloodedServer:
    """An API server on which a tenant wrote a megabyte of Events about each pod."""

    async def list(self, _resource: object, _namespace: str, *, field_selector: str, most: int = 1 << 30) -> object:
        if most < 1 << 20:
            raise ResponseTooLarge(0, "ResponseTooLarge", field_selector)
        return [{"type": "Warning", "reason": "FailedMount", "note": NOTE}]


async def test_a_megabyte_of_events_is_not_read():
    events = PodEvents(FloodedServer(), ManualClock())  # type: ignore[arg-type]
    (trouble,) = await events.explain("ns", troubles([of("first")], NOW))
    assert (trouble.reason, NOTE in trouble.message) == ("PodNotStarted", False)


class LargeServer:
    """An API server on which a tenant wrote 240 KB of Events about each pod."""

    async def list(self, *_: object, **_selected: object) -> list[KubeObject]:
        own = {"type": "Warning", "reason": "FailedMount", "note": NOTE, "eventTime": ago(1)}
        return [own, *({**own, "note": "x" * 2000, "action": "y" * 1000, "eventTime": ago(2)} for _ in range(80))]


async def test_only_what_is_read_of_the_newest_events_is_kept() -> None:
    """A thousand pods of a tenant made the pod-builder keep 400 MB of Events."""
    events = PodEvents(LargeServer(), ManualClock())  # type: ignore[arg-type]
    for number in range(100):
        (trouble,) = await events.explain("ns", troubles([of(f"u-{number}")], NOW))
        assert NOTE in trouble.message
    assert len(json.dumps(list(events._known.values()))) < 100 * 20_000
