"""The table of watched resources. A resource in this table is in STATE, and in the cache of every service that reads
it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dynamo_shared.api import namespace_scope, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.resources import GROUP, Resource
from dynamo_shared.api.scale_targets import scaled_adapter

from dynamo_watcher.trimming import trimmed, trimmed_agent, trimmed_capture, trimmed_claim, trimmed_slice


@dataclass(frozen=True, slots=True)
class Watched:
    """A resource and the selection of its watched objects.

    The API server applies `label_selector` and `field_selector` (empty: all objects). Label selectors have no "or": if
    any of several labels counts, `any_label` names them, as `label` or `label=value`, and the watcher ignores objects
    without any.
    """

    resource: Resource
    label_selector: str = ""
    any_label: tuple[str, ...] = ()
    field_selector: str = ""
    #: Whether to include objects that one of the platform's kinds controls, whatever labels they have.
    owned: bool = False
    #: Whether to include autoscalers of the platform's adapters, whatever labels they have.
    scaling: bool = False
    #: Whether the resource may be missing in a cluster: others install it, before or after the platform.
    optional: bool = False
    #: Selects the fields of an object for STATE; None: all fields.
    trim: Callable[[KubeObject], KubeObject] | None = None

    @property
    def is_early(self) -> bool:
        """Whether its messages in STATE are read first at a start: objects that users change, a small part of all
        objects.
        """
        return self.resource.group == GROUP and self.resource != resources.DYNAMO_WORKER_METADATAS

    def trimmed(self, obj: KubeObject) -> KubeObject:
        """The content of an object for STATE."""
        return self.trim(obj) if self.trim is not None else obj

    def includes(self, obj: dict[str, Any]) -> bool:
        """Whether to publish an object of the API server."""
        if not self.any_label:
            return True
        owners = obj["metadata"].get("ownerReferences", ()) if self.owned else ()
        if any(owner.get("controller") and owner["apiVersion"].partition("/")[0] == GROUP for owner in owners):
            return True
        if self.scaling and scaled_adapter(obj):
            return True
        present = obj["metadata"].get("labels", {})
        required = (each.partition("=") for each in self.any_label)
        return any(label in present and (not equals or present[label] == value) for label, equals, value in required)


OF_A_COMPONENT = labels.COMPONENT
"""As a selector: whatever carries the label, with any value. A component need not belong to a graph."""

OF_A_NAMESPACE = f"{labels.APP_MANAGED_BY}={OPERATOR}"

SNAPSHOT_AGENT = f"{labels.APP_COMPONENT}=snapshot-agent"

WATCHED: tuple[Watched, ...] = (
    Watched(resources.DYNAMO_GRAPH_DEPLOYMENTS),
    Watched(resources.DYNAMO_COMPONENT_DEPLOYMENTS),
    Watched(resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS),
    Watched(resources.DYNAMO_CHECKPOINTS),
    # Checkpoints of the Snapshot operator.
    Watched(resources.SNAPSHOT_JOBS, optional=True, trim=trimmed_capture),
    Watched(resources.POD_SNAPSHOTS, optional=True, trim=trimmed_capture),
    Watched(resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS),
    Watched(resources.DYNAMO_MODELS),
    Watched(resources.DYNAMO_WORKER_METADATAS),
    # The kinds before graphs that can run.
    Watched(resources.DYNAMO_DEPLOYMENTS),
    Watched(resources.DYNAMO_NIM_DEPLOYMENTS),
    Watched(resources.DYNAMO_NIM_REQUESTS),
    # Autoscalers that users point at an adapter have no label.
    Watched(resources.HORIZONTAL_POD_AUTOSCALERS, any_label=(labels.GRAPH_DEPLOYMENT_NAME,), scaling=True),
    Watched(resources.SCALED_OBJECTS, any_label=(labels.GRAPH_DEPLOYMENT_NAME,), scaling=True, optional=True),
    # Jobs that take or use a checkpoint, profile for a request, or build an image.
    Watched(resources.JOBS, any_label=(labels.CHECKPOINT_ID, labels.REQUEST_NAME, labels.IMAGE_BUILD)),
    # EndpointSlices have the labels of their Service.
    Watched(resources.ENDPOINT_SLICES, any_label=(labels.COMPONENT, labels.BASE_MODEL_HASH)),
    # GPUs: on nodes, and in the ResourceSlices of DRA drivers.
    Watched(resources.NODES),
    Watched(resources.RESOURCE_SLICES, optional=True, trim=trimmed_slice),
    # The snapshot agent has the storage of checkpoints, if the settings have none.
    Watched(resources.DAEMON_SETS, SNAPSHOT_AGENT, trim=trimmed_agent),
    Watched(resources.DEPLOYMENTS, OF_A_COMPONENT),
    # The status of pods says why a component is not ready.
    Watched(resources.PODS, OF_A_COMPONENT, trim=trimmed),
    Watched(resources.LEADER_WORKER_SETS, OF_A_COMPONENT, optional=True),
    Watched(resources.INFERENCE_POOLS, labels.GRAPH_DEPLOYMENT_NAME, optional=True),
    Watched(resources.POD_CLIQUE_SETS, labels.GRAPH_DEPLOYMENT_NAME, optional=True),
    # Objects that Grove creates from a set have Grove's own labels.
    Watched(resources.POD_CLIQUES, optional=True),
    Watched(resources.POD_CLIQUE_SCALING_GROUPS, optional=True),
    # Including those of users: they say how many GPUs a pod claims.
    Watched(resources.RESOURCE_CLAIM_TEMPLATES, optional=True),
    # The allocated GPUs of a pod; claims have no label that names their owner.
    Watched(resources.RESOURCE_CLAIMS, optional=True, trim=trimmed_claim),
    Watched(resources.KAI_QUEUES, optional=True),
    # Which platform manages which namespace. Leases of nodes change all the time.
    Watched(resources.LEASES, field_selector=f"metadata.name={namespace_scope.NAME}"),
    Watched(resources.INGRESSES, OF_A_COMPONENT),
    Watched(resources.VIRTUAL_SERVICES, OF_A_COMPONENT, optional=True),
    Watched(resources.HTTP_ROUTES, labels.GRAPH_DEPLOYMENT_NAME, optional=True),
    Watched(resources.DESTINATION_RULES, labels.GRAPH_DEPLOYMENT_NAME, optional=True),
    Watched(resources.PERSISTENT_VOLUME_CLAIMS, labels.GRAPH_DEPLOYMENT_NAME),
    # ConfigMaps of graphs, and results of profiling.
    Watched(resources.CONFIG_MAPS, any_label=(labels.GRAPH_DEPLOYMENT_NAME, labels.REQUEST_NAME)),
    # A model's Service belongs to no single component; Services of graphs on Grove have no label, like the reference's.
    Watched(resources.SERVICES, any_label=(labels.COMPONENT, labels.BASE_MODEL_HASH), owned=True),
    # Users label accounts for component pods.
    Watched(resources.SERVICE_ACCOUNTS, any_label=(OF_A_NAMESPACE, f"{labels.COMPONENT_POD}=true")),
    Watched(resources.ROLES, OF_A_NAMESPACE),
    Watched(resources.ROLE_BINDINGS, OF_A_NAMESPACE),
)
