"""Which partition a key is in, and which member a partition is best at: the same answer in every process.

Rendezvous hashing: each member has a score for each partition, the highest wins. A member that goes leaves the others'
partitions where they are; one that comes takes only those where it wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from dynamo_shared.api.resources import ObjectKey

#: Partitions of a service. Fixed for good: another number would put the same key into two partitions during an update.
PARTITIONS = 32


def partition_of(key: ObjectKey, count: int = PARTITIONS) -> int:
    """Partition of a key, from 0. A namespace's name is in the partition of `("", name)`."""
    digest = blake2b(f"{key.namespace}/{key.name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % count


def best_member(partition: int, members: Iterable[str]) -> str | None:
    """The member that should own a partition, None where there is no member."""
    return max(members, key=lambda member: (_score(partition, member), member), default=None)


def _score(partition: int, member: str) -> bytes:
    return blake2b(f"{partition}\0{member}".encode(), digest_size=8).digest()
