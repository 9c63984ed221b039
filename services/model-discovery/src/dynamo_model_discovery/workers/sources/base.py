"""The interface of record sources, and the shared part of sources with keys and values."""

from collections.abc import Iterable, Mapping
from typing import Protocol

import structlog

from dynamo_model_discovery.workers.assembly import SourcedRecord
from dynamo_model_discovery.workers.records import Record, UnreadableError, parse

log = structlog.get_logger("dynamo.model-discovery.workers")


class RecordSource(Protocol):
    """A store of records. `run` must run."""

    @property
    def name(self) -> str:
        """etcd, kubernetes or file."""

    @property
    def ready(self) -> bool:
        """Whether the store has been read completely: missing records are then deleted records."""

    @property
    def error(self) -> str:
        """Why the records may be outdated; empty if they are not."""

    @property
    def unreadable(self) -> int:
        """Number of unreadable records."""

    def records(self) -> Iterable[SourcedRecord]:
        """The readable records."""

    def unreadable_pods(self) -> Iterable[tuple[str, str]]:
        """Namespace and name of ready pods with unreadable records."""

    async def run(self) -> None:
        """Read until cancelled."""


class RecordTable:
    """The current records of a source with keys and values, by key."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._records: dict[str, SourcedRecord] = {}
        self._unreadable: dict[str, str] = {}

    @property
    def unreadable(self) -> int:
        """Unreadable keys, and records whose value is unreadable."""
        return len(self._unreadable)

    def records(self) -> Iterable[SourcedRecord]:
        """All records."""
        return self._records.values()

    def unreadable_pods(self) -> Iterable[tuple[str, str]]:
        """Always empty: a damaged record's key identifies its process."""
        return ()

    def take(self, changes: Mapping[str, bytes | None]) -> None:
        """Apply changes: the new value by key, None for a deleted key."""
        for key, value in changes.items():
            if value is None:
                self._records.pop(key, None)
                self._unreadable.pop(key, None)
            else:
                self._put(key, value)

    def _put(self, key: str, value: bytes) -> None:
        record: Record | None = None
        error = ""
        try:
            record = parse(key, value)
        except UnreadableError as unreadable:
            error = str(unreadable)
        if record is not None:
            self._records[key] = SourcedRecord(self._source, record)
            error = "its value cannot be read" if record.damaged else ""
        else:
            self._records.pop(key, None)
        if not error:
            self._unreadable.pop(key, None)
        elif self._unreadable.get(key) != error:
            self._unreadable[key] = error
            log.warning("unreadable discovery record", source=self._source, key=key[:512], error=error)
