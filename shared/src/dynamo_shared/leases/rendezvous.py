"""The partition of a key, and the member for a partition: the same answer in every process.

Rendezvous hashing: each member has a score for each partition, and the highest wins. When a member leaves, the
partitions of the others stay; a new member takes only those that it wins.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

from dynamo_shared.api.resources import ObjectKey

#: Partitions of a service. Never change this: during an update, one key would be in two partitions.
PARTITIONS = 32
ALL = frozenset(range(PARTITIONS))
"""All partitions."""
SCHEME = {"partitioned": "by namespace"}
"""What a replica reports about itself in the registry, so that others know which keys it has in a partition."""


def partition_of(key: ObjectKey) -> int:
    """Partition of a key, from 0: that of its namespace, which is also the partition of `("", namespace)`.

    Related objects are in one namespace, so a replica needs only the objects of its partitions.
    """
    return _partition(key.namespace or key.name)


@lru_cache(maxsize=16384)
def _partition(namespace: str) -> int:
    digest = blake2b(f"/{namespace}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % PARTITIONS


def candidates(members: Mapping[str, Mapping[str, str]]) -> Collection[str]:
    """The members to which partitions are assigned; `members`: all members with what they report about themselves.

    If members of a release with another key scheme exist (0.1.0: by namespace and name), partitions go only to them:
    otherwise a key would have two owners. So an update does no work twice; partitions that such a member releases wait
    for its end.
    """
    others = [member for member, about in members.items() if not SCHEME.items() <= about.items()]
    return others or members.keys()


def best_member(partition: int, members: Iterable[str]) -> str | None:
    """The member that should own a partition, or None without members."""
    return max(members, key=lambda member: (_score(partition, member), member), default=None)


def _score(partition: int, member: str) -> bytes:
    return blake2b(f"{partition}\0{member}".encode(), digest_size=8).digest()
