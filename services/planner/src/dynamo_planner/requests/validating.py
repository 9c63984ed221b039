"""Whether a request can be worked on. Admission says the same at creation; a request may have come in without it."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.validation import Facts, validate

KubeObject = dict[str, Any]


def problems(obj: KubeObject, facts: Facts) -> list[FieldError]:
    """What must change in a request before it can be profiled, with paths; empty where nothing must."""
    return [*schema_errors(obj), *validate(obj, None, facts).errors]
