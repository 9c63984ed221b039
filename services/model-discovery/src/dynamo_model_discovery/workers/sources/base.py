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
        """Whether it has been read completely; then missing records are gone."""

    @property
    def trouble(self) -> str:
        """Why its records may be outdated; empty if they are not."""

    @property
    def unreadable(self) -> int:
        """Its unreadable records."""

    def records(self) -> Iterable[SourcedRecord]:
        """Its records."""

    def unreadable_pods(self) -> Iterable[tuple[str, str]]:
        """Namespace and name of ready pods with unreadable records."""

    async def run(self) -> None:
        """Read until cancelled."""


class RecordTable:
    """Records by key, as keys and values come and go."""

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
        """Apply keys that were written, or are gone (None)."""
        for key, value in changes.items():
            if value is None:
                self._records.pop(key, None)
                self._unreadable.pop(key, None)
            else:
                self._put(key, value)

    def _put(self, key: str, value: bytes) -> None:
        record: Record | None = None
        trouble = ""
        try:
            record = parse(key, value)
        except UnreadableError as error:
            trouble = str(error)
        if record is not None:
            self._records[key] = SourcedRecord(self._source, record)
            trouble = "its value cannot be read" if record.damaged else ""
        else:
            self._records.pop(key, None)
        if not trouble:
            self._unreadable.pop(key, None)
        elif self._unreadable.get(key) != trouble:
            self._unreadable[key] = trouble
            log.warning("unreadable discovery record", source=self._source, key=key[:512], error=trouble)
