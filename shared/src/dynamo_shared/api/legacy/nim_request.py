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
    """Archive to build an image of."""

    bento_tag: str
    """The archive, as name:version."""


class DynamoNimRequestStatus(LegacyStatus):
    """State of a build."""

    phase: BuildPhase | None = None
    """Pending (the archive or the build cannot be had yet), Building, Ready (the image is pushed), Failed."""
    observed_generation: Int64 | None = Field(default=None, ge=0)
    """metadata.generation that the status is about."""
    image: str | None = None
    """The image, by its tag."""
    image_ref: str | None = None
    """The image that was built, by tag and digest: what pods run. Set in phase Ready."""
    digest: str | None = None
    """Digest of the image: sha256:..."""
    archive_digest: str | None = None
    """Digest of the archive that the image is of: sha256:..."""
    cached: Bool | None = None
    """Whether an image of the same archive was there already, so that nothing was built."""
    duration_seconds: Int32 | None = Field(default=None, ge=0)
    """How long the build took."""
    job: str | None = None
    """Job of the build, as namespace/name; requests for the same archive share it."""
    log: str | None = None
    """The end of the build's log."""


class DynamoNimRequest(ApiModel):
    """Asks for the image of an archive."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoNimRequest"] = "DynamoNimRequest"
    metadata: ObjectMeta
    spec: DynamoNimRequestSpec | None = None
    """Archive to build an image of."""
    status: DynamoNimRequestStatus | None = None
    """State of the build."""
