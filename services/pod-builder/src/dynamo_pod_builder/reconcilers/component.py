"""DynamoComponentDeployment -> Deployment, Service, and its own status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey
from dynamo_shared.api.v1beta1 import parse_component
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.kube.errors import Forbidden, Invalid
from dynamo_shared.runtime import Result
from dynamo_pod_builder import render
from dynamo_pod_builder.applying import Applier, NameTaken
from dynamo_pod_builder.children import owned_by, surplus
from dynamo_pod_builder.status.component import Failure, component_status, failure_of
from dynamo_pod_builder.writing import StatusWriter

KubeObject = dict[str, Any]

#: A refusal may be somebody's policy or quota, which can change without our hearing of it. Seconds.
RETRY_REFUSED = 60.0


@dataclass(frozen=True, slots=True)
class ComponentReconciler:
    """Makes one component run, and says in its status how far it is."""

    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    config: render.RenderConfig
    now: Callable[[], datetime]

    async def reconcile(self, key: ObjectKey) -> Result:
        """One look at one component. Raises KubeError where the API server is away: the queue comes back to it."""
        component = self.cache.get(DYNAMO_COMPONENT_DEPLOYMENTS, key)
        if component is None or "deletionTimestamp" in component["metadata"]:
            return Result()
        failure = await self._make(component)
        deployment = self.cache.get(DEPLOYMENTS, key)
        if deployment is not None and not owned_by(component, deployment):
            deployment = None
        status = component_status(component, deployment, failure, self.now())
        urgent = failure is not None or failure_of(component) is not None
        wait = await self.statuses.write(DYNAMO_COMPONENT_DEPLOYMENTS, component, status, urgent=urgent)
        return Result(requeue_after=RETRY_REFUSED if failure is not None and wait is None else wait)

    async def _make(self, component: KubeObject) -> Failure | None:
        try:
            wanted = render.component_children(parse_component(component), self.config)
        except InvalidManifest as error:
            return Failure("InvalidSpec", str(error))
        except render.RenderError as error:
            return Failure("NotDeployable", str(error))
        try:
            for child in wanted:
                await self.applier.ensure(child)
        except NameTaken as error:
            return Failure("NameTaken", str(error))
        except (Invalid, Forbidden) as error:
            return Failure("RefusedByApiServer", str(error))
        for leftover in surplus(self.cache, component, wanted):
            await self.applier.delete(resources.of(leftover), leftover)
        return None

