"""The one annotation in which an object carries what its version cannot say.

    {"version": 1, "for": "v1alpha1", "fields": [pieces], "components": {"Decode": [pieces]}, "order": ["B", "A"]}

`for` names the version that can say it. A value that this platform did not write is not read, and comes back as it was.
"""

import base64
import binascii
import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from dynamo_shared.api.conversion.pieces import Pieces, well_formed
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.untrusted.limits import ReadLimits, check_count

FORMAT = 1
#: What the API server allows all annotations of an object together, names and values, in bytes.
MAX_BYTES = 256 * 1024
#: Larger than any object that etcd stores, so that a small value cannot become a huge one.
MAX_UNPACKED_BYTES = 2 * 1024 * 1024
#: Many times what the fields of 25 components hold.
_LIMITS = ReadLimits(MAX_UNPACKED_BYTES, 250_000, 256)
#: Top-level fields that both versions have in common. An answer in which another one stands fails a whole list.
HEAD = frozenset({"apiVersion", "kind", "metadata"})
_PACKED = "zlib:"
_ABSENT: Any = object()


@dataclass(slots=True)
class Kept:
    """What goes along with an object in addition to the fields that both versions have."""

    fields: Pieces = field(default_factory=list)
    components: dict[str, Pieces] = field(default_factory=dict)
    #: Names of components in their order, where it is not the alphabetical one.
    order: list[str] | None = None

    def __bool__(self) -> bool:
        return bool(self.fields or self.components or self.order)


@dataclass(slots=True)
class Annotations:
    """`metadata.annotations` of an object that is being converted, without what the platform keeps there."""

    kept: Kept
    others: dict[str, Any]
    #: The annotation's value where another writer set it, with the version in which it stands there openly.
    foreign: dict[str, Any] | None = None
    #: The map itself, where it was there and empty, or was not a map.
    was: Any = _ABSENT
    #: The same of the object that this one was made of.
    before: Any = _ABSENT


def read(metadata: dict[str, Any], version: str, target: str) -> Annotations:
    """Annotations of an object of `version` that shall become one of `target`."""
    annotations = metadata.get("annotations", _ABSENT)
    if not isinstance(annotations, dict) or not annotations:
        return Annotations(Kept(), {}, was=annotations)
    text = annotations.get(PRESERVED_FIELDS, _ABSENT)
    if text is _ABSENT:
        return Annotations(Kept(), annotations)
    others = {name: value for name, value in annotations.items() if name != PRESERVED_FIELDS}
    envelope = _decoded(text, target)
    if envelope is None:
        return Annotations(Kept(), others, foreign={"in": version, "value": text})
    kept = Kept(envelope.get("fields", []), envelope.get("components", {}), envelope.get("order"))
    return Annotations(kept, others, envelope.get("foreign"), before=envelope.get("annotations", _ABSENT))


def write(metadata: dict[str, Any], source: Annotations, kept: Kept, version: str, target: str) -> dict[str, Any]:
    """Metadata of an object that was one of `version` and is one of `target`, with what it keeps for the former."""
    if source.was is not _ABSENT and not kept:
        return metadata
    annotations = source.others
    foreign = source.foreign
    if foreign is not None and foreign.get("in") == target and not kept:
        annotations = {**annotations, PRESERVED_FIELDS: foreign.get("value")}
    elif kept or foreign is not None:
        text = _encoded(kept, source, version)
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
    """The annotation of an object that was one of `version` and keeps nothing for it."""
    return _encoded(Kept(), Annotations(Kept(), {}), version)


def _encoded(kept: Kept, source: Annotations, version: str) -> str:
    envelope: dict[str, Any] = {"version": FORMAT, "for": version}
    if kept.fields:
        envelope["fields"] = kept.fields
    if kept.components:
        envelope["components"] = kept.components
    if kept.order:
        envelope["order"] = kept.order
    if source.foreign is not None:
        envelope["foreign"] = source.foreign
    if source.was is not _ABSENT:
        envelope["annotations"] = source.was
    return json.dumps(envelope, separators=(",", ":"), sort_keys=True)


def _decoded(text: Any, version: str) -> dict[str, Any] | None:
    """The envelope of a value; None where it is not an envelope, is damaged, or is for another version."""
    if not isinstance(text, str):
        return None
    try:
        # Not by the reader of `untrusted`: what was packed here may hold halves of surrogate pairs.
        envelope = json.loads(_unpacked(text) if text.startswith(_PACKED) else text[: MAX_UNPACKED_BYTES + 1])
        check_count(envelope, _LIMITS)
    except (ValueError, RecursionError, zlib.error, binascii.Error):
        return None
    if not isinstance(envelope, dict) or envelope.get("version") != FORMAT or envelope.get("for") != version:
        return None
    components, order = envelope.get("components", {}), envelope.get("order")
    if (
        not well_formed(fields := envelope.get("fields", []))
        or not all(piece[0] and _of_the_body(piece[0][0]) for piece in fields)
        or not isinstance(components, dict)
        or not all(map(well_formed, components.values()))
        or not _is_foreign(envelope.get("foreign"))
        # What the API server stores of annotations is a map of texts, and it takes back nothing else.
        or envelope.get("annotations") not in (None, {})
        or not (order is None or (isinstance(order, list) and all(isinstance(name, str) for name in order)))
    ):
        return None
    return envelope


def _of_the_body(step: Any) -> bool:
    """Whether a piece belongs to what is converted. Conversion copies the rest as the object has it."""
    return not (isinstance(step, str) and step in HEAD)


def _is_foreign(foreign: Any) -> bool:
    return foreign is None or (isinstance(foreign, dict) and isinstance(foreign.get("value"), str))


def _unpacked(text: str) -> bytes:
    packed = base64.b64decode(text.removeprefix(_PACKED), validate=True)
    content = zlib.decompressobj().decompress(packed, MAX_UNPACKED_BYTES + 1)
    if len(content) > MAX_UNPACKED_BYTES:
        raise ValueError("more than an object can have")
    return content
