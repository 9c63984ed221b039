"""The list of all Kubernetes resources that the platform reads or writes.

The platform's own resources have their storage version; `Resource.at` returns another version.
"""

from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self
from urllib.parse import quote


class ObjectKey(NamedTuple):
    """The namespace ("" for cluster-scoped resources) and the name of an object."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """A Kubernetes resource in one version, with the names in REST paths and in manifests."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    id: str = field(init=False, repr=False, compare=False)
    """`deployments.apps`, `pods`: the name in subjects, metrics and indexes"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", f"{self.plural}.{self.group}" if self.group else self.plural)

    def __hash__(self) -> int:
        # Fast, because resources are keys of many dicts, and a string caches its hash.
        return hash(self.id)

    @property
    def api_version(self) -> str:
        """`apiVersion` in manifests: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def type_meta(self) -> dict[str, Any]:
        """The fields `apiVersion` and `kind` of manifests."""
        return {"apiVersion": self.api_version, "kind": self.kind}

    def at(self, version: str) -> Self:
        """The same resource in another version."""
        return self if version == self.version else replace(self, version=version)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path on the API server; without a namespace, that of a namespaced resource in all namespaces."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        parts = [root]
        if self.namespaced and namespace:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        if name:
            parts.append(quote(name, safe=""))
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


GROUP = "nvidia.com"

DYNAMO_GRAPH_DEPLOYMENTS = Resource(GROUP, "v1beta1", "dynamographdeployments", "DynamoGraphDeployment")
DYNAMO_COMPONENT_DEPLOYMENTS = Resource(GROUP, "v1beta1", "dynamocomponentdeployments", "DynamoComponentDeployment")
DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS = Resource(
    GROUP, "v1beta1", "dynamographdeploymentscalingadapters", "DynamoGraphDeploymentScalingAdapter"
)
DYNAMO_GRAPH_DEPLOYMENT_REQUESTS = Resource(
    GROUP, "v1beta1", "dynamographdeploymentrequests", "DynamoGraphDeploymentRequest"
)
DYNAMO_MODELS = Resource(GROUP, "v1alpha1", "dynamomodels", "DynamoModel")
DYNAMO_CHECKPOINTS = Resource(GROUP, "v1alpha1", "dynamocheckpoints", "DynamoCheckpoint")
DYNAMO_WORKER_METADATAS = Resource(GROUP, "v1alpha1", "dynamoworkermetadatas", "DynamoWorkerMetadata")
# Of NVIDIA's Snapshot operator, which is installed separately.
SNAPSHOT_JOBS = Resource(GROUP, "v1alpha1", "snapshotjobs", "SnapshotJob")
POD_SNAPSHOTS = Resource(GROUP, "v1alpha1", "podsnapshots", "PodSnapshot")
# Legacy kinds: the pod-builder creates a graph for each deployment, the image-builder builds the image of a request.
DYNAMO_DEPLOYMENTS = Resource(GROUP, "v1alpha1", "dynamodeployments", "DynamoDeployment")
DYNAMO_NIM_DEPLOYMENTS = Resource(GROUP, "v1alpha1", "dynamonimdeployments", "DynamoNimDeployment")
DYNAMO_NIM_REQUESTS = Resource(GROUP, "v1alpha1", "dynamonimrequests", "DynamoNimRequest")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
JOBS = Resource("batch", "v1", "jobs", "Job")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
LEADER_WORKER_SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet")
INFERENCE_POOLS = Resource("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool")
POD_CLIQUE_SETS = Resource("grove.io", "v1alpha1", "podcliquesets", "PodCliqueSet")
POD_CLIQUES = Resource("grove.io", "v1alpha1", "podcliques", "PodClique")
POD_CLIQUE_SCALING_GROUPS = Resource("grove.io", "v1alpha1", "podcliquescalinggroups", "PodCliqueScalingGroup")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
VIRTUAL_SERVICES = Resource("networking.istio.io", "v1beta1", "virtualservices", "VirtualService")
DESTINATION_RULES = Resource("networking.istio.io", "v1beta1", "destinationrules", "DestinationRule")
HTTP_ROUTES = Resource("gateway.networking.k8s.io", "v1", "httproutes", "HTTPRoute")
KAI_QUEUES = Resource("scheduling.run.ai", "v2", "queues", "Queue", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
RESOURCE_CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate")
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_SLICES = Resource("resource.k8s.io", "v1", "resourceslices", "ResourceSlice", namespaced=False)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
HORIZONTAL_POD_AUTOSCALERS = Resource("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler")
SCALED_OBJECTS = Resource("keda.sh", "v1alpha1", "scaledobjects", "ScaledObject")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
VALIDATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
MUTATING_WEBHOOK_CONFIGURATIONS = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False)

ALL: tuple[Resource, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
#: Kinds whose v1beta1 has the same schema as v1alpha1, so that the API server converts them without a webhook.
UNCHANGED_IN_V1BETA1 = (DYNAMO_MODELS, DYNAMO_CHECKPOINTS, DYNAMO_WORKER_METADATAS)
# Versions that are served, but not stored.
_NOT_STORED = (
    *(each.at("v1beta1") for each in UNCHANGED_IN_V1BETA1),
    *(each.at("v1alpha1") for each in ALL if (each.group, each.version) == (GROUP, "v1beta1")),
)
_BY_KIND = {(resource.api_version, resource.kind): resource for resource in (*ALL, *_NOT_STORED)}


def of(obj: dict[str, Any]) -> Resource:
    """The resource of a manifest, by its apiVersion and kind. Raises KeyError for other resources."""
    return _BY_KIND[(obj["apiVersion"], obj["kind"])]


def owner_reference(resource: Resource, name: str, uid: str) -> dict[str, Any]:
    """An entry of `ownerReferences`: Kubernetes deletes an object when all its owners are deleted."""
    return {**resource.type_meta, "name": name, "uid": uid}


def controller_reference(resource: Resource, name: str, uid: str | None) -> dict[str, Any]:
    """The entry of `ownerReferences` for the controller; without a uid if the owner is not stored yet."""
    stored = {"uid": uid} if uid else {}
    return {**resource.type_meta, "name": name, **stored, "controller": True, "blockOwnerDeletion": True}


def key_of(obj: dict[str, Any]) -> ObjectKey:
    """Namespace and name of a manifest."""
    metadata = obj["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])
