"""How workers of a base model are selected: by a hash of its name, since names may hold what labels and object names cannot."""

import hashlib


def base_model_hash(model: str) -> str:
    """Eight hex digits that stand for a model's name (operator behaviour, section 6)."""
    return hashlib.sha256(model.encode()).hexdigest()[:8]
