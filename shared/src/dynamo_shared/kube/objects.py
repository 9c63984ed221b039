"""Objects as they travel: plain dicts, exactly as the API server sent them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dynamo_shared.api.objects import KubeObject


@dataclass(frozen=True, slots=True)
class KubeObjectList:
    """All objects of one list request (all its pages) and the resourceVersion they were read at."""

    items: list[KubeObject]
    resource_version: str

    def __iter__(self) -> Iterator[KubeObject]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)
