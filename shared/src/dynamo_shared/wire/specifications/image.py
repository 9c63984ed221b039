"""Events of images that DynamoNimRequests ask for."""

from __future__ import annotations

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventIdentity, EventSpec, Int64

NIM_REQUEST = "dynamonimrequest"


class ImageData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoNimRequest as it was when the event happened."""

    name: str
    namespace: str
    bento_tag: str = ""
    phase: str = ""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    image: str = ""
    digest: str = ""
    archive_digest: str = ""
    cached: bool = False
    duration_seconds: Count = 0
    job: str = ""


def _image(event: str, description: str, *, phase: str, reason: str, message: str, digest: str = "") -> EventSpec:
    sample = ImageData(
        name="frontend--jh2o6dqzpsgfued4",
        namespace="prod",
        bento_tag="frontend:jh2o6dqzpsgfued4",
        phase=phase,
        reason=reason,
        message=message,
        generation="1",
        image="registry.example.com/yatai-bentos:yatai.frontend.jh2o6dqzpsgfued4",
        digest=digest,
        archive_digest=f"sha256:{'1f' * 32}",
        duration_seconds=94 if digest else 0,
        job="dynamo-builds/dynamo-build-96429b2725761a09",
    )
    return EventSpec(
        family="image",
        event=event,
        kind=NIM_REQUEST,
        publisher="image-builder",
        data=ImageData,
        identity=EventIdentity.VERSION,
        description=description,
        sample=sample,
    )


_DIGEST = f"sha256:{'c4' * 32}"
EVENTS: tuple[EventSpec, ...] = (
    _image(
        "building",
        "A Job builds it.",
        phase="Building",
        reason="Building",
        message="Job dynamo-build-96429b2725761a09 in namespace dynamo-builds builds the image",
    ),
    _image(
        "ready",
        "It is pushed; or it was before.",
        phase="Ready",
        reason="Built",
        message=f"the image is pushed, as {_DIGEST}",
        digest=_DIGEST,
    ),
    _image(
        "failed",
        "It could not be built; reason and message say why.",
        phase="Failed",
        reason="ArchiveNotFound",
        message="dynamo-store has no archive frontend:jh2o6dqzpsgfued4: upload it, or correct spec.bentoTag",
    ),
)
