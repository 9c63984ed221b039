"""Which partition a key is in, and which member a partition is best at: the same answer in every process.

Rendezvous hashing: each member has a score for each partition, the highest wins. A member that goes leaves the others'
partitions where they are; one that comes takes only those where it wins.
"""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b

from dynamo_shared.api.resources import ObjectKey

#: Partitions of a service. Fixed for good: another number would put the same key into two partitions during an update.
PARTITIONS = 32
ALL = frozenset(range(PARTITIONS))
"""All partitions."""
SCHEME = {"partitioned": "by namespace"}
"""What a replica reports about itself in the registry, so that others know which keys it has in a partition."""


def partition_of(key: ObjectKey) -> int:
    """Partition of a key, from 0: that of its namespace, which is also the one of `("", namespace)`.

    What belongs together is in one namespace, so a replica needs no objects but those of its partitions.
    """
    return _partition(key.namespace or key.name)


@lru_cache(maxsize=16384)
def _partition(namespace: str) -> int:
    digest = blake2b(f"/{namespace}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % PARTITIONS


def candidates(members: Mapping[str, Mapping[str, str]]) -> Collection[str]:
    """The members that partitions go to, of all with what they report about themselves.

    Members of a release that has other keys in a partition (0.1.0: by namespace and name) have them alone: next to them,
    a key would have two owners. So an update has no work done twice; what such a member gives away waits for its end.
    """
    others = [member for member, about in members.items() if not SCHEME.items() <= about.items()]
    return others or members.keys()


def best_member(partition: int, members: Iterable[str]) -> str | None:
    """The member that should own a partition, None where there is no member."""
    return max(members, key=lambda member: (_score(partition, member), member), default=None)


def _score(partition: int, member: str) -> bytes:
    return blake2b(f"{partition}\0{member}".encode(), digest_size=8).digest()
