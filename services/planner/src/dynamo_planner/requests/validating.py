"""Whether a request can be worked on. Admission says much of it at creation; a request may have come in without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.validation import Facts, validate

KubeObject = dict[str, Any]

#: The name of a request is a label of all that is made for it. Characters.
MAX_NAME = 63
#: Nothing is planned with none or less of these. Milliseconds, tokens, requests.
_POSITIVE = (
    ("sla", ("ttft", "itl", "e2eLatency")),
    ("workload", ("isl", "osl", "concurrency", "requestRate")),
)
#: Zero is as good as not given here: then it is found out.
_NOT_NEGATIVE = ("vramMb", "totalGpus", "numGpusPerNode")


def problems(obj: KubeObject, facts: Facts) -> list[FieldError]:
    """What must change in a request before it can be profiled, with paths; empty where nothing must."""
    found = [*schema_errors(obj), *validate(obj, None, facts).errors]
    # A schema that does not hold says more than numbers of the wrong type would.
    return found or [*_name(obj), *_values(obj.get("spec") or {})]


def _name(obj: KubeObject) -> Iterator[FieldError]:
    name = str(obj["metadata"].get("name", ""))
    if len(name) > MAX_NAME:
        text = (
            f"has {len(name)} characters, and labels what is made for the request, where {MAX_NAME} may be: shorten it"
        )
        yield FieldError("metadata.name", text)


def _values(spec: KubeObject) -> Iterator[FieldError]:
    for section, names in _POSITIVE:
        given = spec.get(section) or {}
        for name in names:
            value = given.get(name)
            if value is not None and value <= 0:
                yield FieldError(
                    f"spec.{section}.{name}", f"{value:g} is given; more than 0 is needed, or leave it out"
                )
    hardware = spec.get("hardware") or {}
    for name in _NOT_NEGATIVE:
        value = hardware.get(name)
        if value is not None and value < 0:
            yield FieldError(f"spec.hardware.{name}", f"{value:g} is given; more than 0 is needed, or leave it out")
    cache = spec.get("modelCache") or {}
    mount = cache.get("pvcMountPath")
    if mount is not None and (not mount.startswith("/") or ":" in mount):
        yield FieldError("spec.modelCache.pvcMountPath", f"{mount!r} is no absolute path without colons")
    if cache.get("pvcModelPath") and not cache.get("pvcName"):
        yield FieldError(
            "spec.modelCache.pvcName", "is missing beside pvcModelPath: name the volume that has the model"
        )
    if not str(spec.get("model", "")).strip():
        yield FieldError("spec.model", "is blank; name a model, or the path of one")
