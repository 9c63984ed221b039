"""Kubernetes resources by name: the one list of what the platform reads and writes, and where each of them lives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote


class ObjectKey(NamedTuple):
    """Which object of a resource: its namespace ("" for cluster-scoped ones) and its name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


@dataclass(frozen=True, slots=True)
class Resource:
    """One Kubernetes resource, as its REST path and its manifests name it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`apiVersion` as manifests write it: `v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def id(self) -> str:
        """Group resource, `deployments.apps` or `pods`: the name that subjects, metrics and indexes use."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Path on the API server; without a namespace a namespaced resource is addressed in all of them."""
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
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)

ALL: tuple[Resource, ...] = tuple(value for value in list(globals().values()) if isinstance(value, Resource))
_BY_KIND = {(resource.api_version, resource.kind): resource for resource in ALL}


def of(obj: dict[str, Any]) -> Resource:
    """Resource of a manifest, by its apiVersion and kind; KeyError where the platform knows none."""
    return _BY_KIND[(obj["apiVersion"], obj["kind"])]


def key_of(obj: dict[str, Any]) -> ObjectKey:
    """Namespace and name of a manifest."""
    metadata = obj["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])
