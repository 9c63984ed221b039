"""Events of the kinds before graphs. The DynamoGraphDeployment that they become has its own events, under the same name."""

import msgspec

from dynamo_shared.wire.specifications.base import EventFamily, EventSpec, Int64


class LegacyDeploymentData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoDeployment or DynamoNimDeployment as it was when the event happened."""

    name: str
    namespace: str
    artifact: str = ""
    """archive that it deploys"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"


EVENTS: tuple[EventSpec, ...] = tuple(
    EventFamily(kind, kind, "pod-builder", LegacyDeploymentData)(
        "failed", "No graph can be created from the object, or its image cannot be built; see reason and message."
    )
    for kind in ("dynamodeployment", "dynamonimdeployment")
)
