"""The annotation that preserves the fields of an object that its version does not have.

    {"version": 1, "for": "v1alpha1", "fields": [changes], "components": {"Decode": [changes]}, "order": ["B", "A"]}

`for` is the version that has these fields. A value that this platform did not write is preserved, but not interpreted.
"""

import base64
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.conversion.changes import Changes, well_formed
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits

FORMAT = 1
#: Kubernetes' limit of all annotations of an object, names and values. Bytes.
MAX_BYTES = 256 * 1024
#: Size limit of decompressed values: more than any object that etcd stores. Bytes.
MAX_UNPACKED_BYTES = 2 * 1024 * 1024
#: Limits of an envelope: many times those of a graph with 25 components.
_LIMITS = ReadLimits(MAX_UNPACKED_BYTES, 250_000, 256)
#: Top-level fields that are not converted. The API server refuses a whole list if one of them changes.
HEAD = frozenset({"apiVersion", "kind", "metadata"})
_PACKED = "zlib:"
_ABSENT: Any = object()


@dataclass(slots=True)
class Preserved:
    """The preserved data of an object: fields that only the other version has."""

    fields: Changes = field(default_factory=list)
    components: dict[str, Changes] = field(default_factory=dict)
    #: Names of components in their order, if it is not alphabetical.
    order: list[str] | None = None

    def __bool__(self) -> bool:
        return bool(self.fields or self.components or self.order)


@dataclass(slots=True)
class Annotations:
    """The parsed `metadata.annotations` of an object that is being converted."""

    preserved: Preserved
    others: dict[str, Any]
    #: The value of the annotation if another writer set it, with the version of that object.
    foreign: dict[str, Any] | None = None
    #: The map itself if it was empty, or was not a map.
    was: Any = _ABSENT
    #: The same for the object of the other version from which this object was converted.
    before: Any = _ABSENT


def read(metadata: dict[str, Any], version: str, target: str) -> Annotations:
    """The annotations of an object of `version` for a conversion to `target`."""
    annotations = metadata.get("annotations", _ABSENT)
    if not isinstance(annotations, dict) or not annotations:
        return Annotations(Preserved(), {}, was=annotations)
    text = annotations.get(PRESERVED_FIELDS, _ABSENT)
    if text is _ABSENT:
        return Annotations(Preserved(), annotations)
    others = {name: value for name, value in annotations.items() if name != PRESERVED_FIELDS}
    envelope = _decoded(text, target)
    if envelope is None:
        return Annotations(Preserved(), others, foreign={"in": version, "value": text})
    preserved = Preserved(envelope.get("fields", []), envelope.get("components", {}), envelope.get("order"))
    return Annotations(preserved, others, envelope.get("foreign"), before=envelope.get("annotations", _ABSENT))


def write(
    metadata: dict[str, Any], source: Annotations, preserved: Preserved, version: str, target: str
) -> dict[str, Any]:
    """The metadata of the converted object, with the data that it preserves for `version`."""
    if source.was is not _ABSENT and not preserved:
        return metadata
    annotations = source.others
    foreign = source.foreign
    if foreign is not None and foreign.get("in") == target and not preserved:
        annotations = {**annotations, PRESERVED_FIELDS: foreign.get("value")}
    elif preserved or foreign is not None:
        text = _encoded(preserved, source, version)
        room = MAX_BYTES - sum(
            len(name.encode("utf-8", "replace")) + len(str(each).encode("utf-8", "replace"))
            for name, each in annotations.items()
        )
        if len(PRESERVED_FIELDS) + len(text) > room:
            text = _PACKED + base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        annotations = {**annotations, PRESERVED_FIELDS: text}
    if annotations is metadata.get("annotations"):
        return metadata
    result = {name: value for name, value in metadata.items() if name != "annotations"}
    if annotations or source.before is not _ABSENT:
        result["annotations"] = annotations or source.before
    return result


def empty(version: str) -> str:
    """The annotation of an object that was converted from `version` and preserves nothing."""
    return _encoded(Preserved(), Annotations(Preserved(), {}), version)


def _encoded(preserved: Preserved, source: Annotations, version: str) -> str:
    envelope: dict[str, Any] = {"version": FORMAT, "for": version}
    if preserved.fields:
        envelope["fields"] = preserved.fields
    if preserved.components:
        envelope["components"] = preserved.components
    if preserved.order:
        envelope["order"] = preserved.order
    if source.foreign is not None:
        envelope["foreign"] = source.foreign
    if source.was is not _ABSENT:
        envelope["annotations"] = source.was
    return json.dumps(envelope, separators=(",", ":"), sort_keys=True)


def _decoded(text: Any, version: str) -> dict[str, Any] | None:
    """The envelope in a value; None if the value is not a valid envelope for this version."""
    if not isinstance(text, str):
        return None
    try:
        envelope = json_text.decode(_unpacked(text) if text.startswith(_PACKED) else text, _LIMITS)
    except (ValueError, zlib.error):
        return None
    if not isinstance(envelope, dict) or envelope.get("version") != FORMAT or envelope.get("for") != version:
        return None
    components, order = envelope.get("components", {}), envelope.get("order")
    if (
        not well_formed(fields := envelope.get("fields", []))
        or not all(change[0] and _of_the_body(change[0][0]) for change in fields)
        or not isinstance(components, dict)
        or not all(map(well_formed, components.values()))
        or not _is_foreign(envelope.get("foreign"))
        # The API server refuses any other value of `metadata.annotations`.
        or envelope.get("annotations") not in (None, {})
        or not (order is None or (isinstance(order, list) and all(isinstance(name, str) for name in order)))
    ):
        return None
    return envelope


def _of_the_body(step: Any) -> bool:
    """Whether a change concerns a converted field; the fields of HEAD are copied."""
    return not (isinstance(step, str) and step in HEAD)


def _is_foreign(foreign: Any) -> bool:
    return foreign is None or (isinstance(foreign, dict) and isinstance(foreign.get("value"), str))


def _unpacked(text: str) -> bytes:
    packed = base64.b64decode(text.removeprefix(_PACKED), validate=True)
    content = zlib.decompressobj().decompress(packed, MAX_UNPACKED_BYTES + 1)
    if len(content) > MAX_UNPACKED_BYTES:
        raise ValueError("more than an object can have")
    return content
