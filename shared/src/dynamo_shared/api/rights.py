"""What a service may do in Kubernetes, declared once: the charts are generated from it, and audit logs are held against it."""

import enum
from dataclasses import dataclass

from dynamo_shared.api.resources import ACCESS_REVIEWS, LEASES, TOKEN_REVIEWS, Resource

READ = ("get", "list", "watch")

#: In `Right.names`: the service's own ClusterRole, whose name the chart knows.
OWN_CLUSTER_ROLE = "$CLUSTER_ROLE"
#: The Secret with the certificate of the webhooks, and that with the ssh keys of a namespace, as the settings name them.
WEBHOOK_SECRET, SSH_SECRET = "$WEBHOOK_SECRET", "$SSH_SECRET"

# Reasons of `Right.unused` that several services have.
RACE = "reads again what changed, or came, between a read and a write"
UNCONFIRMED = "asks for what it has written where STATE does not confirm it: the data store was set back"
SERIES = "an Event that repeats is counted in place of being written again"


class RightScope(enum.StrEnum):
    """Where a right holds: in the namespaces that a platform serves, in its own, where images are built, or for what has no
    namespace.
    """

    SERVED = "served"
    OWN = "own"
    BUILDS = "builds"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class Right:
    """Verbs on a resource or one of its subresources.

    `names`: the only objects it holds for; empty for all. `part`: the value of the chart (`rbac.parts.<part>`) that
    switches it off; empty for what a service cannot do without. `unused`: why tests never need it; empty where they do.
    """

    resource: Resource
    verbs: tuple[str, ...]
    subresource: str = ""
    names: tuple[str, ...] = ()
    place: RightScope = RightScope.SERVED
    part: str = ""
    unused: str = ""

    @property
    def plural(self) -> str:
        """The resource as a rule names it."""
        return f"{self.resource.plural}/{self.subresource}" if self.subresource else self.resource.plural


#: Of a service that stands by for its other replicas where there is no etcd.
STANDBY = (Right(LEASES, ("create", "get", "update"), place=RightScope.OWN, unused="only without etcd"),)

#: Of a service that asks the API server who may read its /metrics. A chart grants it where its metrics are secure.
SECURE_METRICS = "secureMetrics"
_SCRAPED = "only where server.metrics.secure is true"
SCRAPED = tuple(
    Right(review, ("create",), place=RightScope.CLUSTER, part=SECURE_METRICS, unused=_SCRAPED)
    for review in (TOKEN_REVIEWS, ACCESS_REVIEWS)
)
