"""DynamoNimRequest: asked for the build of an image, which happens outside the platform today."""

from __future__ import annotations

from typing import Literal

from dynamo_shared.api.legacy.service import LegacyStatus
from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import ApiModel


class DynamoNimRequestSpec(ApiModel):
    """Artifact to build an image of."""

    bento_tag: str
    """The artifact, as name:tag."""


class DynamoNimRequest(ApiModel):
    """Asks for the image of an artifact. Nothing acts on it."""

    api_version: Literal["nvidia.com/v1alpha1"] = "nvidia.com/v1alpha1"
    kind: Literal["DynamoNimRequest"] = "DynamoNimRequest"
    metadata: ObjectMeta
    spec: DynamoNimRequestSpec | None = None
    """Artifact to build an image of."""
    status: LegacyStatus | None = None
    """State of the build."""
