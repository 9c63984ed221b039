"""The rights of the admission service."""

from dynamo_shared.api import resources
from dynamo_shared.api.resources import Resource
from dynamo_shared.api.rights import OWN_CLUSTER_ROLE, SCRAPED, WEBHOOK_SECRET, Right, RightScope

from dynamo_admission.kinds import CONVERTED
from dynamo_admission.registration import NAME

#: The kinds of topologies in Grove from 0.1.0-alpha.11 on, and before.
CLUSTER_TOPOLOGY_BINDINGS = Resource(
    "grove.io", "v1alpha1", "clustertopologybindings", "ClusterTopologyBinding", namespaced=False
)
CLUSTER_TOPOLOGIES = Resource("grove.io", "v1alpha1", "clustertopologies", "ClusterTopology", namespaced=False)

RIGHTS = (
    *SCRAPED,
    Right(resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("list",)),
    Right(resources.LEASES, ("list",), unused="only next to platforms whose namespaces are trusted"),
    *(
        Right(each, ("get",), unused="few clusters have this kind of Snapshot's operator")
        for each in (resources.SNAPSHOT_JOBS, resources.POD_SNAPSHOTS)
    ),
    *(
        Right(each, ("list",), scope=RightScope.CLUSTER, unused="few clusters have this kind of Grove")
        for each in (CLUSTER_TOPOLOGY_BINDINGS, CLUSTER_TOPOLOGIES)
    ),
    *(
        Right(each, verbs, names=names, scope=RightScope.CLUSTER)
        for each in (resources.MUTATING_WEBHOOK_CONFIGURATIONS, resources.VALIDATING_WEBHOOK_CONFIGURATIONS)
        for verbs, names in ((("create",), ()), (("get", "patch"), (NAME,)))
    ),
    Right(
        resources.CUSTOM_RESOURCE_DEFINITIONS,
        ("get", "patch"),
        names=tuple(sorted(f"{each.plural}.{each.group}" for each in CONVERTED)),
        scope=RightScope.CLUSTER,
    ),
    Right(resources.CLUSTER_ROLES, ("get",), names=(OWN_CLUSTER_ROLE,), scope=RightScope.CLUSTER),
    # The other Secrets in that namespace are the credentials of all other services.
    Right(resources.SECRETS, ("create",), scope=RightScope.OWN),
    Right(resources.SECRETS, ("get", "patch"), names=(WEBHOOK_SECRET,), scope=RightScope.OWN),
)
