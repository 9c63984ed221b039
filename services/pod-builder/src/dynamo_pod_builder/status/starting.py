"""What Events tell of a pod that has a node and does not start: its status does not say which volume it waits for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.status.pods import Trouble, quoted

VOLUME = "VolumeNotMounted"
#: By the reason of an Event, that of the trouble; in the order of what says most. Others of the kubelet's are no cause.
_CAUSES = {
    "FailedAttachVolume": VOLUME,
    "FailedMount": VOLUME,
    "FailedMapVolume": VOLUME,
    "FailedPrepareDynamicResources": "",
    "FailedCreatePodSandBox": "",
}
#: The kubelet's summary beside the Event that tells the cause.
_SUMMARY = "Unable to attach or mount volumes"


def explained(trouble: Trouble, events: Iterable[KubeObject]) -> Trouble:
    """The trouble of a pod in the words of its Events (events.k8s.io); as it was where they tell nothing."""
    order = list(_CAUSES)
    found = [
        (order.index(event["reason"]), str(event.get("note", "")))
        for event in events
        if event.get("type") == "Warning" and event.get("reason") in _CAUSES
    ]
    if not found:
        return trouble
    # Not the latest one: they take turns, and what is told should not.
    rank, note = min(found, key=lambda each: (each[1].startswith(_SUMMARY), each))
    return replace(trouble, reason=_CAUSES[order[rank]] or trouble.reason, message=f"{trouble.message}: {quoted(note)}")
