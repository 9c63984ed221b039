"""What the graphs of a namespace share goes when the last of them goes; it has no owner that could take it along."""

from __future__ import annotations

from dataclasses import dataclass

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.runtime import Result
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import render
from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.children import SHARED


@dataclass(frozen=True, slots=True)
class NamespaceReconciler:
    """Deletes shared accounts and bindings of a namespace that has no graph any more."""

    cache: ObjectCache
    applier: Applier

    async def reconcile(self, key: ObjectKey) -> Result:
        """One reconcile of the namespace that `key.name` names."""
        namespace = key.name
        if self.cache.keys(DYNAMO_GRAPH_DEPLOYMENTS, namespace):
            return Result()
        for resource in SHARED:
            for obj in self.cache.list(resource, namespace):
                if is_shared(obj):
                    await self.applier.delete(resource, obj)
        return Result()


def is_shared(obj: KubeObject) -> bool:
    """Whether an account, a role or a binding is one that the platform made for all graphs of a namespace."""
    return objects.controller_of(obj) is None and objects.labels(obj).get(labels.APP_MANAGED_BY) == render.MANAGED_BY
