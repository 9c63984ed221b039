"""Why a pod does not start, from its Events: its status does not say which claim or volume it waits for."""

from collections.abc import Iterable
from dataclasses import replace

from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.status.pods import Trouble, quoted

VOLUME = "VolumeNotMounted"
#: By the reason of an Event, that of the trouble; in the order of what says most. Others are not a cause.
_CAUSES = {
    "FailedResourceClaimCreation": "",
    "FailedAttachVolume": VOLUME,
    "FailedMount": VOLUME,
    "FailedMapVolume": VOLUME,
    "FailedPrepareDynamicResources": "",
    "FailedCreatePodSandBox": "",
}
#: The kubelet's summary, next to the Event with the cause.
_SUMMARY = "Unable to attach or mount volumes"


def explained(trouble: Trouble, events: Iterable[KubeObject]) -> Trouble:
    """The trouble of a pod in the words of its Events (events.k8s.io); as it was where they say nothing."""
    order = list(_CAUSES)
    causes = [
        (order.index(event["reason"]), str(event.get("note", "")))
        for event in events
        if event.get("type") == "Warning" and event.get("reason") in _CAUSES
    ]
    if not causes:
        return trouble
    # Not the latest one: they take turns, and the reported message should not.
    rank, note = min(causes, key=lambda each: (each[1].startswith(_SUMMARY), each))
    return replace(trouble, reason=_CAUSES[order[rank]] or trouble.reason, message=f"{trouble.message}: {quoted(note)}")
