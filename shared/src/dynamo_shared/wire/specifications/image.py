"""Events of images that DynamoNimRequests ask for."""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventSpec, Int64

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


_image = EventFamily("image", NIM_REQUEST, "image-builder", ImageData)

EVENTS: tuple[EventSpec, ...] = (
    _image("building", "A Job builds it."),
    _image("ready", "It is pushed; or it was before."),
    _image("failed", "It could not be built; reason and message say why."),
)
