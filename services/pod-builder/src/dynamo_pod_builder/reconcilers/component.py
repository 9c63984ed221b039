"""DynamoComponentDeployment -> Deployment or LeaderWorkerSet, Services, and its own status."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from dynamo_shared.api import resources
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.api.v1beta1 import parse_component
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.kube.errors import Forbidden, Invalid
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.status_writer import StatusWriter

from dynamo_pod_builder import render
from dynamo_pod_builder.applying import Applier, NameTaken
from dynamo_pod_builder.children import surplus, workload_of
from dynamo_pod_builder.events import Reporter
from dynamo_pod_builder.pod_events import PodEvents
from dynamo_pod_builder.pods import pods_of
from dynamo_pod_builder.reconcilers import scaling, switching
from dynamo_pod_builder.reconcilers.adopting import legacy_type
from dynamo_pod_builder.reconcilers.restoring import Checkpoints
from dynamo_pod_builder.status.component import Failure, component_status, failure_of
from dynamo_pod_builder.status.pods import look_again, troubles
from dynamo_pod_builder.surroundings import PullSecretLists, component_account

#: A refusal may be somebody's policy or quota, which can change without our hearing of it. Seconds.
RETRY_REFUSED = 60.0
#: How long a model may be without its Service after the component that owned it went. Seconds.
LOOK_AT_SHARED = 30.0
#: Kinds of owners that a model's Service may have: components, and graphs on Grove.
SHARERS = frozenset({DYNAMO_COMPONENT_DEPLOYMENTS.kind, DYNAMO_GRAPH_DEPLOYMENTS.kind})


@dataclass(frozen=True, slots=True)
class ComponentReconciler:
    """Makes one component run, and says in its status how far it is."""

    cache: ObjectCache
    applier: Applier
    statuses: StatusWriter
    reporter: Reporter
    config: Callable[[], render.RenderConfig]
    now: Callable[[], datetime]
    pull_secrets: PullSecretLists
    pod_events: PodEvents
    checkpoints: Checkpoints

    async def reconcile(self, key: ObjectKey) -> Result:
        """One look at one component. Raises KubeError where the API server is away: the queue comes back to it."""
        component = self.cache.get(DYNAMO_COMPONENT_DEPLOYMENTS, key)
        if component is None:
            return Result()
        if "deletionTimestamp" in component["metadata"]:
            await self.applier.let_go(DYNAMO_COMPONENT_DEPLOYMENTS, component)
            return Result()
        made = await self._make(component)
        failure = made.failure
        now, workload = self.now(), workload_of(self.cache, component)
        pods = pods_of(self.cache, workload)
        found = await self.pod_events.explain(key.namespace, troubles(pods, now))
        status = component_status(component, workload, failure, now, found)
        before = failure_of(component)
        if failure is not None and failure != before:
            self.reporter.component_failed(component, failure.reason, failure.message)
        urgent = failure is not None or before is not None
        wait = await self.statuses.write(DYNAMO_COMPONENT_DEPLOYMENTS, component, status, urgent=urgent)
        return Result(requeue_after=earliest(made.again, look_again(pods, now)) if wait is None else wait)

    async def _make(self, component: KubeObject) -> _Made:
        namespace = component["metadata"]["namespace"]
        observed = render.ObservedComponent(
            service_account=component_account(self.cache, namespace),
            legacy_type=legacy_type(component, workload_of(self.cache, component)),
            pull_secrets=await self.pull_secrets.of(namespace),
        )
        try:
            parsed, config = parse_component(scaling.of_component(self.cache, component)), self.config()
            starts = self.checkpoints.of_component(parsed, config)
            observed = replace(observed, restore=starts.restores.get(parsed.metadata.name))
            wanted = render.component_children(parsed, config, observed)
        except InvalidManifest as error:
            return _Made(Failure("InvalidSpec", str(error)))
        except render.RenderError as error:
            return _Made(Failure("NotDeployable", str(error)))
        again: float | None = None
        try:
            for child in wanted:
                try:
                    await self.applier.ensure(child)
                except NameTaken as error:
                    if error.holder_uid and error.holder_uid == switching.graph_uid(component):
                        # Its graph runs on Grove, or comes from there: who has the object is the graph's to decide.
                        continue
                    if not (render.is_shared(child) and error.holder_kind in SHARERS):
                        raise
                    # A sibling has it, and nobody tells us when the sibling goes and takes it along.
                    again = LOOK_AT_SHARED
            await self.checkpoints.make_for_component(parsed, starts, config, observed)
        except NameTaken as error:
            return _Made(Failure("NameTaken", str(error)), RETRY_REFUSED)
        except (Invalid, Forbidden) as error:
            return _Made(Failure("RefusedByApiServer", str(error)), RETRY_REFUSED)
        for leftover in surplus(self.cache, component, wanted):
            await self.applier.delete(resources.of(leftover), leftover)
        return _Made(again=again)


def earliest(*delays: float | None) -> float | None:
    """The first of several delays; None where there is none."""
    return min((delay for delay in delays if delay is not None), default=None)


@dataclass(frozen=True, slots=True)
class _Made:
    failure: Failure | None = None
    #: Seconds after which to look again though nothing was heard.
    again: float | None = None
