"""What the watcher may do: list and watch what it publishes, and say which namespaces are looked after."""

from __future__ import annotations

from dynamo_shared.api import namespace_scope
from dynamo_shared.api.resources import LEASES, NODES
from dynamo_shared.api.rights import STANDBY, Place, Right

from dynamo_watcher.resources import WATCHED

RIGHTS = (
    *STANDBY,
    *(
        Right(
            watched.resource,
            ("list", "watch"),
            place=Place.SERVED if watched.resource.namespaced else Place.CLUSTER,
            unused="a kind of others that few clusters have" if watched.optional else "",
            part="nodes" if watched.resource == NODES else "",
        )
        for watched in WATCHED
    ),
    # A lease of this name has to be created by a patch of a name that does not exist yet: names do not hold for `create`.
    Right(LEASES, ("create",)),
    Right(LEASES, ("delete", "patch"), names=(namespace_scope.NAME,)),
)
