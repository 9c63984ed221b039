"""The hash of a base model's name, as the value of a label: names may have characters that labels cannot have."""

import hashlib


def base_model_hash(model: str) -> str:
    """Hash of a model's name, eight hex digits (operator behaviour, section 6)."""
    return hashlib.sha256(model.encode()).hexdigest()[:8]
