"""The rights of the pod-builder. It must itself have every right that it gives to pods of a graph."""

from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    DESTINATION_RULES,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    DYNAMO_WORKER_METADATAS,
    ENDPOINT_SLICES,
    EVENTS,
    HTTP_ROUTES,
    INFERENCE_POOLS,
    INGRESSES,
    JOBS,
    LEADER_WORKER_SETS,
    LEASES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    POD_SNAPSHOTS,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    SNAPSHOT_JOBS,
    VIRTUAL_SERVICES,
    Resource,
)
from dynamo_shared.api.rights import RACE, READ, SCRAPED, SERIES, SSH_SECRET, UNCONFIRMED, Right, RightScope, standby

from dynamo_pod_builder.app import NAME
from dynamo_pod_builder.artifact_images import LEGACY

GIVEN = "given to pods of graphs"
ALIKE = "children are written by the same lines, whatever their kind; tests do each with some"
ENDPOINTS = Resource("", "v1", "endpoints", "Endpoints")
#: What endpoint pickers read in addition to their pool; from versions before the pool's v1.
INFERENCE_EXTENSIONS = tuple(
    Resource("inference.networking.x-k8s.io", "v1alpha2", kind.lower() + "s", kind)
    for kind in ("InferenceModel", "InferenceObjective", "InferencePool")
)
OF_CHECKPOINTS = "what became of a checkpoint's Job, which takes a kubelet"
OF_SNAPSHOTS = "kinds of Snapshot's operator that few clusters have"
SCALING_OF_GROVE = "replicas of a set that runs are set where Grove keeps them"
#: The verbs that `applier` needs for a child.
KEEP = ("create", "delete", "get", "patch", "update")
CHILDREN = (
    *(DEPLOYMENTS, SERVICES, CONFIG_MAPS, INGRESSES, SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS),
    *(DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS),
    *(LEADER_WORKER_SETS, POD_CLIQUE_SETS, INFERENCE_POOLS, RESOURCE_CLAIM_TEMPLATES),
    *(VIRTUAL_SERVICES, DESTINATION_RULES, HTTP_ROUTES),
)

RIGHTS = (
    *standby(NAME),
    *SCRAPED,
    *(Right(each, KEEP, unused=ALIKE) for each in CHILDREN),
    *(Right(each, ("patch",), "scale") for each in (DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS)),
    Right(LEADER_WORKER_SETS, ("patch",), "scale", unused=ALIKE),
    *(Right(each, ("get", "patch"), unused=SCALING_OF_GROVE) for each in (POD_CLIQUES, POD_CLIQUE_SCALING_GROUPS)),
    *(Right(each, ("patch",), "scale", unused=SCALING_OF_GROVE) for each in (POD_CLIQUES, POD_CLIQUE_SCALING_GROUPS)),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("get",)),
    Right(
        DYNAMO_GRAPH_DEPLOYMENTS,
        ("patch",),
        unused="takes out the finalizer of the reference operator, and names the generation for a planner of the graph's own",
    ),
    *(
        Right(each, ("patch",), "status")
        for each in (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_CHECKPOINTS, *LEGACY)
    ),
    *(Right(each, ("get",)) for each in LEGACY),
    Right(DYNAMO_NIM_REQUESTS, ("create",)),
    Right(DYNAMO_NIM_REQUESTS, ("get",), unused=UNCONFIRMED),
    Right(DYNAMO_GRAPH_DEPLOYMENTS, ("create",)),
    Right(
        DYNAMO_GRAPH_DEPLOYMENTS,
        ("update",),
        unused="removes what another manager added to a list of a graph that is managed by this platform",
    ),
    Right(DYNAMO_CHECKPOINTS, ("create", "patch")),
    Right(DYNAMO_CHECKPOINTS, ("get",), unused=UNCONFIRMED),
    Right(SNAPSHOT_JOBS, ("create", "get", "patch"), unused=OF_SNAPSHOTS),
    Right(POD_SNAPSHOTS, ("get", "patch"), unused=OF_SNAPSHOTS),
    Right(PERSISTENT_VOLUME_CLAIMS, ("create",)),
    Right(PERSISTENT_VOLUME_CLAIMS, ("get",), unused=RACE),
    Right(JOBS, ("create",)),
    Right(JOBS, ("get",), unused=OF_CHECKPOINTS),
    Right(PODS, ("list",), unused=OF_CHECKPOINTS),
    Right(PODS, ("delete",), unused="ends the other pods of an engine that has ended, which takes a kubelet"),
    Right(PODS, ("patch",), part="nodes"),
    Right(NODES, ("get",), scope=RightScope.CLUSTER, part="nodes"),
    Right(DYNAMO_WORKER_METADATAS, ("get",)),
    Right(LEASES, ("get",), unused=OF_CHECKPOINTS),
    Right(EVENTS, ("create", "list")),
    Right(EVENTS, ("patch",), unused=SERIES),
    Right(SECRETS, ("list",), part="pullSecrets"),
    Right(SECRETS, ("create",), part="sshSecrets"),
    Right(SECRETS, ("get",), names=(SSH_SECRET,), part="sshSecrets"),
    Right(
        SECRETS,
        ("update",),
        names=(SSH_SECRET,),
        part="sshSecrets",
        unused="completes a Secret without content, and adds the owners of a copy",
    ),
    Right(ENDPOINTS, READ, unused=GIVEN),
    Right(PODS, READ, unused=GIVEN),
    Right(ENDPOINT_SLICES, READ, unused=GIVEN),
    Right(DYNAMO_WORKER_METADATAS, (*KEEP, "list", "watch"), unused=GIVEN),
    *(
        Right(each, ("get", "list", "create", "update", "patch"), unused=GIVEN)
        for each in (DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS)
    ),
    Right(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, ("patch",), "scale", unused=GIVEN),
    *(Right(each, READ, unused=GIVEN) for each in (INFERENCE_POOLS, *INFERENCE_EXTENSIONS)),
)
