"""Objects that the graphs of a namespace share have no owner; they are deleted when the last graph is deleted.

A graph that is deleted without its children (`--cascade=orphan`) leaves running pods behind. Their accounts then
appear to be shared, because they have no owner any more. So shared objects stay while the namespace has any object
that runs pods of graphs.
"""

from dataclasses import dataclass

from dynamo_shared.aio import all_of
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    ObjectKey,
    Resource,
)
from dynamo_shared.runtime import Result
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import render
from dynamo_pod_builder.applier import Applier
from dynamo_pod_builder.children import SHARED

#: Kinds that run pods of graphs, and may outlive the graphs.
OUTLIVING: tuple[Resource, ...] = (DYNAMO_COMPONENT_DEPLOYMENTS, POD_CLIQUE_SETS)


@dataclass(frozen=True, slots=True)
class NamespaceReconciler:
    """Deletes shared accounts and bindings of a namespace that has no graphs and no orphans of graphs."""

    cache: ObjectCache
    applier: Applier

    async def reconcile(self, key: ObjectKey) -> Result:
        """Reconcile the namespace that `key.name` names."""
        namespace = key.name
        if any(self.cache.keys(each, namespace) for each in (DYNAMO_GRAPH_DEPLOYMENTS, *OUTLIVING)):
            return Result()
        every = ((resource, obj) for resource in SHARED for obj in self.cache.list(resource, namespace))
        await all_of(self.applier.delete(resource, obj) for resource, obj in every if is_shared(obj))
        return Result()


def is_shared(obj: KubeObject) -> bool:
    """Whether the platform made this account, role or binding for all graphs of a namespace."""
    return objects.controller_of(obj) is None and objects.labels(obj).get(labels.APP_MANAGED_BY) == render.MANAGED_BY
