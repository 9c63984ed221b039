"""The adapter of a DynamoModel, and the record of the adapters that were loaded for it."""

import contextlib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import LOADED_ADAPTER
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.v1alpha1.enums import ModelType

SCHEMES = ("s3", "hf", "file")
"""URI schemes from which workers load adapters: an object store, Hugging Face, a mounted path."""

MAX_LENGTH = 2048
"""Length limit of a name or a URI, because the request line that unloads an adapter contains its name. Characters."""

#: Limit of the previous names in a record; the oldest names are dropped.
MAX_PREVIOUS = 16

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BLANK = re.compile(r"\s")


class InvalidAdapter(Exception):
    """An adapter that cannot be loaded; `reason` is the condition's reason, the message says what to change."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter: the name that clients request, and the URI from which workers load it."""

    name: str
    uri: str

    @property
    def source(self) -> str:
        """A hash of the URI, because the URI may contain secrets."""
        return hashlib.sha256(self.uri.encode()).hexdigest()[:16]


class AdapterRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The adapters that may be loaded for a DynamoModel, written to its annotation before the first request to load."""

    name: str
    source: str
    previous: tuple[str, ...] = ()
    """names that a worker may have from an earlier spec, also the present name if it had another source"""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that a worker may have loaded."""
        return tuple(dict.fromkeys((self.name, *self.previous)))


def is_lora(spec: Mapping[str, Any]) -> bool:
    """Whether workers must load the model. Case-insensitive, like the reference's controller."""
    return str(spec.get("modelType", "")).lower() == ModelType.LORA.value


def is_segment(name: str) -> bool:
    """Whether a name is safe as one segment of a URL's path."""
    return 0 < len(name) <= MAX_LENGTH and name not in (".", "..") and not _CONTROL.search(name)


def adapter_of(spec: Mapping[str, Any]) -> Adapter:
    """The adapter of a spec of type lora. Raises InvalidAdapter, because admission may not have validated the spec."""
    name, uri = str(spec.get("modelName", "")), str((spec.get("source") or {}).get("uri", ""))
    allowed = "allowed are s3://bucket/path, hf://organization/name and file:///path"
    if not is_segment(name):
        raise InvalidAdapter("InvalidName", f"spec.modelName: {name[:80]!r} cannot be a path segment of a URL")
    if not uri:
        raise InvalidAdapter("InvalidSource", f"spec.source.uri: required for modelType lora; {allowed}")
    if len(uri) > MAX_LENGTH or _CONTROL.search(uri) or _BLANK.search(uri):
        raise InvalidAdapter("InvalidSource", f"spec.source.uri: at most {MAX_LENGTH} characters, no blanks; {allowed}")
    scheme, separator, _ = uri.partition("://")
    if not separator or scheme not in SCHEMES:
        raise InvalidAdapter("InvalidSource", f"spec.source.uri: {scheme[:20]!r} is not supported; {allowed}")
    if _has_credentials(uri):
        message = "spec.source.uri: has a user name or password; pass credentials to workers in environment variables"
        raise InvalidAdapter("InvalidSource", message)
    return Adapter(name, uri)


def record_of(model: KubeObject) -> AdapterRecord | None:
    """The record of loaded adapters; None if there is no record, or if the annotation is invalid."""
    text = model["metadata"].get("annotations", {}).get(LOADED_ADAPTER, "")
    if not text:
        return None
    with contextlib.suppress(json_text.InvalidJson):
        record = json_text.decode_as(text, AdapterRecord)
        if len(record.previous) <= MAX_PREVIOUS and all(map(is_segment, record.names)):
            return record
    return None


def written(record: AdapterRecord) -> str:
    """The value of the annotation for a record."""
    return msgspec.json.encode(record).decode()


def advanced(record: AdapterRecord | None, adapter: Adapter) -> AdapterRecord:
    """The record to write before any worker loads the adapter."""
    if record is None:
        return AdapterRecord(adapter.name, adapter.source)
    if (record.name, record.source) == (adapter.name, adapter.source):
        return record
    previous = tuple(dict.fromkeys((*record.previous, record.name)))
    return AdapterRecord(adapter.name, adapter.source, previous[-MAX_PREVIOUS:])


def _has_credentials(uri: str) -> bool:
    try:
        return "@" in urlsplit(uri).netloc
    except ValueError:
        return True
