"""What the graphs of a namespace share goes when the last of them goes; it has no owner that could take it along.

A graph that is deleted without what it owns (`--cascade=orphan`) leaves pods behind that go on. Their accounts look like
shared ones then: no one owns these any more. So they stay while anything is there that runs pods of graphs.
"""

from dataclasses import dataclass

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
from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.children import SHARED

#: What runs pods of graphs, and may outlive these.
OUTLIVING: tuple[Resource, ...] = (DYNAMO_COMPONENT_DEPLOYMENTS, POD_CLIQUE_SETS)


@dataclass(frozen=True, slots=True)
class NamespaceReconciler:
    """Deletes shared accounts and bindings of a namespace that has no graph any more, nor what a graph left behind."""

    cache: ObjectCache
    applier: Applier

    async def reconcile(self, key: ObjectKey) -> Result:
        """One reconcile of the namespace that `key.name` names."""
        namespace = key.name
        if any(self.cache.keys(each, namespace) for each in (DYNAMO_GRAPH_DEPLOYMENTS, *OUTLIVING)):
            return Result()
        for resource in SHARED:
            for obj in self.cache.list(resource, namespace):
                if is_shared(obj):
                    await self.applier.delete(resource, obj)
        return Result()


def is_shared(obj: KubeObject) -> bool:
    """Whether an account, a role or a binding is one that the platform made for all graphs of a namespace."""
    return objects.controller_of(obj) is None and objects.labels(obj).get(labels.APP_MANAGED_BY) == render.MANAGED_BY
