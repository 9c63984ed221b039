"""Defaults from the platform's settings for an intent that names no value."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlatformDefaults:
    """The image repository and version, and the Secret with the model's token."""

    image_repository: str = "nvcr.io/nvidia/ai-dynamo"
    version: str = "1.2.0"
    model_secret: str = "hf-token-secret"  # noqa: S105 - a name
