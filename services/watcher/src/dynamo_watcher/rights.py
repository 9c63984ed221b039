"""The rights of the watcher: list and watch resources, report objects that are too large, announce its namespaces."""

from dynamo_shared.api import namespace_scope
from dynamo_shared.api.resources import EVENTS, LEASES, NODES, RESOURCE_SLICES
from dynamo_shared.api.rights import SCRAPED, SERIES, Right, RightScope, standby

from dynamo_watcher.app import NAME
from dynamo_watcher.resources import WATCHED

RIGHTS = (
    *standby(NAME),
    *SCRAPED,
    *(
        Right(
            watched.resource,
            ("list", "watch"),
            scope=RightScope.SERVED if watched.resource.namespaced else RightScope.CLUSTER,
            unused="a kind of others that few clusters have" if watched.optional else "",
            part="nodes" if watched.resource in (NODES, RESOURCE_SLICES) else "",
        )
        for watched in WATCHED
    ),
    Right(EVENTS, ("create",)),
    Right(EVENTS, ("patch",), unused=SERIES),
    # The Lease is created by a patch of a name that does not exist yet: RBAC does not apply resource names to `create`.
    Right(LEASES, ("create",)),
    Right(LEASES, ("delete", "patch"), names=(namespace_scope.NAME,)),
)
