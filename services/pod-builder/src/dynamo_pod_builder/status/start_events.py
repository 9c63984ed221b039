"""Why a pod does not start, from its Events: its status does not say for which claim or volume it waits."""

from collections.abc import Iterable
from dataclasses import replace

from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.status.pods import Trouble, quoted

VOLUME = "VolumeNotMounted"
#: The trouble's reason by the reason of an Event, most specific first. Other Events are not causes.
_CAUSES = {
    "FailedResourceClaimCreation": "",
    "FailedAttachVolume": VOLUME,
    "FailedMount": VOLUME,
    "FailedMapVolume": VOLUME,
    "FailedPrepareDynamicResources": "",
    "FailedCreatePodSandBox": "",
}
#: The kubelet's summary, which accompanies the Event with the cause.
_SUMMARY = "Unable to attach or mount volumes"


def explained(trouble: Trouble, events: Iterable[KubeObject]) -> Trouble:
    """The trouble of a pod, worded by its Events (events.k8s.io); unchanged if they have no cause."""
    order = list(_CAUSES)
    causes = [
        (order.index(event["reason"]), str(event.get("note", "")))
        for event in events
        if event.get("type") == "Warning" and event.get("reason") in _CAUSES
    ]
    if not causes:
        return trouble
    # Not the latest Event: they alternate, and the reported message must not.
    rank, note = min(causes, key=lambda each: (each[1].startswith(_SUMMARY), each))
    return replace(trouble, reason=_CAUSES[order[rank]] or trouble.reason, message=f"{trouble.message}: {quoted(note)}")
