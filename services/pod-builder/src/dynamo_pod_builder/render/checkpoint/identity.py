"""Which checkpoints are the same, as a hash that names them (reference behaviour, section 8)."""

import hashlib
import json
from typing import Any

from dynamo_shared.api.v1beta1 import CheckpointIdentity

#: Hex digits of the hash. Component and model hashes have eight; this one also names files.
LENGTH = 16
# Go's JSON encoder escapes these characters, and the hash covers its output.
_ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def identity_hash(identity: CheckpointIdentity) -> str:
    """First 16 hex digits of the sha256 of the identity, serialized like the reference does.

    Fields have a fixed order, missing fields are omitted, and sizes are 1 by default.
    """
    content: dict[str, Any] = {"model": identity.model, "backendFramework": identity.backend_framework.value}
    if identity.dynamo_version:
        content["dynamoVersion"] = identity.dynamo_version
    content["tensorParallelSize"] = identity.tensor_parallel_size
    content["pipelineParallelSize"] = identity.pipeline_parallel_size
    if identity.dtype:
        content["dtype"] = identity.dtype
    if identity.max_model_len:
        content["maxModelLen"] = identity.max_model_len
    if identity.extra_parameters:
        content["extraParameters"] = dict(sorted(identity.extra_parameters.items()))
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    for character, escape in _ESCAPED.items():
        text = text.replace(character, escape)
    return hashlib.sha256(text.encode()).hexdigest()[:LENGTH]
