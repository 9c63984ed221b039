"""Events of images that DynamoNimRequests request."""

import msgspec

from dynamo_shared.wire.specifications.base import Count, EventFamily, EventSpec, Int64

NIM_REQUEST = "dynamonimrequest"


class ImageData(msgspec.Struct, kw_only=True, frozen=True, rename="camel"):
    """A DynamoNimRequest as it was when the event happened."""

    name: str
    namespace: str
    bento_tag: str = ""
    """the archive, as name:version"""
    phase: str = ""
    """as in its status"""
    reason: str = ""
    message: str = ""
    generation: Int64 = "0"
    image: str = ""
    """tag of the image"""
    digest: str = ""
    """digest of the image, once it is pushed"""
    archive_digest: str = ""
    """digest of the archive from which the image is built"""
    cached: bool = False
    """whether an image of the same archive existed already, so that nothing was built"""
    duration_seconds: Count = 0
    """duration of the build"""
    job: str = ""
    """Job that builds it"""


_image = EventFamily("image", NIM_REQUEST, "image-builder", ImageData)

EVENTS: tuple[EventSpec, ...] = (
    _image("building", "A Job builds the image."),
    _image("ready", "The image is in the registry, newly built or from an earlier build."),
    _image("failed", "The build failed; see reason and message."),
)
