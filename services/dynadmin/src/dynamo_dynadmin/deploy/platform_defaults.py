"""What the platform's settings give an intent that names none."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlatformDefaults:
    """Where images are, their version, and the Secret with the model's token."""

    image_repository: str = "nvcr.io/nvidia/ai-dynamo"
    version: str = "1.2.0"
    model_secret: str = "hf-token-secret"  # noqa: S105 - a name
