"""DynamoNimRequest: requests an image of an archive, which the image-builder builds."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from dynamo_shared.api.legacy.service import LegacyStatus
from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel, Bool, Int32, Int64


class BuildPhase(StrEnum):
    """Phase of a build."""

    PENDING = "Pending"
    BUILDING = "Building"
    READY = "Ready"
    FAILED = "Failed"


class DynamoNimRequestSpec(ApiModel):
    """Archive from which an image is built."""

    bento_tag: str
    """The archive, as name:version."""


class DynamoNimRequestStatus(LegacyStatus):
    """State of a build."""

    phase: BuildPhase | None = None
    """Pending (the archive or a place for the build is not available yet), Building, Ready (the image is pushed), Failed."""
    observed_generation: Int64 | None = Field(default=None, ge=0)
    """metadata.generation that this status describes."""
    image: str | None = None
    """The image, by its tag."""
    image_ref: str | None = None
    """The image by tag and digest, for pods. Set in phase Ready."""
    digest: str | None = None
    """Digest of the image: sha256:..."""
    archive_digest: str | None = None
    """Digest of the archive of the image: sha256:..."""
    cached: Bool | None = None
    """Whether the registry already had an image of the same archive, so that nothing was built."""
    duration_seconds: Int32 | None = Field(default=None, ge=0)
    """Duration of the build in seconds."""
    job: str | None = None
    """Job of the build, as namespace/name; requests for the same archive share it."""
    log: str | None = None
    """The end of the build's log."""


class DynamoNimRequest(ApiModel):
    """Requests an image of an archive."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoNimRequest"] = "DynamoNimRequest"
    metadata: ObjectMeta
    spec: DynamoNimRequestSpec | None = None
    """Archive from which an image is built."""
    status: DynamoNimRequestStatus | None = None
    """State of the build."""
