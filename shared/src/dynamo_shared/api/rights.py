"""The declaration of RBAC rights of services: charts are generated from it, and tests compare audit logs with it."""

import enum
from dataclasses import dataclass

from dynamo_shared.api import namespace_scope
from dynamo_shared.api.resources import ACCESS_REVIEWS, LEASES, TOKEN_REVIEWS, Resource

READ = ("get", "list", "watch")

#: Placeholder in `Right.names` for the service's ClusterRole, whose name the chart sets.
OWN_CLUSTER_ROLE = "$CLUSTER_ROLE"
#: Placeholders for the Secrets with the certificate of webhooks, and with the ssh keys of a namespace (see the settings).
WEBHOOK_SECRET, SSH_SECRET = "$WEBHOOK_SECRET", "$SSH_SECRET"
#: Placeholder for the start of the names of the Leases that elect active replicas, which the settings determine.
LEASES_PREFIX = "$LEASES"

# Common reasons for `Right.unused`.
RACE = "reads again what changed, or came, between a read and a write"
UNCONFIRMED = "asks for what it has written where STATE does not confirm it: the data store was set back"
SERIES = "an Event that repeats is counted in place of being written again"


class RightScope(enum.StrEnum):
    """Scope of a right: the served namespaces, the platform's own, that of image builds, or cluster-scoped resources."""

    SERVED = "served"
    OWN = "own"
    BUILDS = "builds"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource or one of its subresources.

    `names` are the objects that it is limited to; empty for all objects. `part` is the value of the chart
    (`rbac.parts.<part>`) that disables it; empty if the service needs it. `unused` says why no test needs it.
    """

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    scope: RightScope = RightScope.SERVED
    part: str = ""
    unused: str = ""

    @property
    def plural(self) -> str:
        """The resource in an RBAC rule."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


#: Rights of services that leave a namespace to another platform until its claim has expired.
CLAIMS = (
    Right(LEASES, ("get",), names=(namespace_scope.NAME,), unused="only next to a platform that has stopped suddenly"),
)

#: Rights of services that authorize requests for /metrics with the API server, for charts with secure metrics.
SECURE_METRICS = "secureMetrics"
_SCRAPED = "only where server.metrics.secure is true"
SCRAPED = tuple(
    Right(review, ("create",), scope=RightScope.CLUSTER, part=SECURE_METRICS, unused=_SCRAPED)
    for review in (TOKEN_REVIEWS, ACCESS_REVIEWS)
)


def standby(*names: str) -> tuple[Right, ...]:
    """Rights of a service whose replicas elect an active one, under these names; needed only without etcd.

    They exclude the Leases of other services: who writes a Lease decides which replica works.
    """
    leases = tuple(f"{LEASES_PREFIX}-{name}" for name in names)
    return tuple(
        Right(LEASES, verbs, names=only, scope=RightScope.OWN, unused="only without etcd")
        for verbs, only in ((("create",), ()), (("get", "update"), leases))
    )
