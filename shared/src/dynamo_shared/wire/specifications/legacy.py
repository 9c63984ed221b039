"""Events of the kinds before graphs. What they become reports itself, as a DynamoGraphDeployment of the same name."""

from __future__ import annotations

import msgspec

from dynamo_shared.wire.specifications.base import EventIdentity, EventSpec, Int64


class LegacyDeploymentData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoDeployment or DynamoNimDeployment as it was when the event happened."""

    name: str
    namespace: str
    artifact: str = ""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"


def _failed(kind: str) -> EventSpec:
    return EventSpec(
        family=kind,
        event="failed",
        kind=kind,
        publisher="pod-builder",
        data=LegacyDeploymentData,
        identity=EventIdentity.VERSION,
        description="It cannot become a graph, or its image cannot be built; reason and message say why.",
        sample=LegacyDeploymentData(
            name="disagg",
            namespace="prod",
            artifact="frontend:jh2o6dqzpsgfued4",
            reason="ImageFailed",
            message="the image of frontend:jh2o6dqzpsgfued4 is not built: DynamoNimRequest frontend--jh2o6dqzpsgfued4 reports "
            "ArchiveNotFound: dynamo-store has no archive frontend:jh2o6dqzpsgfued4",
            generation="1",
        ),
    )


EVENTS: tuple[EventSpec, ...] = (_failed("dynamodeployment"), _failed("dynamonimdeployment"))
