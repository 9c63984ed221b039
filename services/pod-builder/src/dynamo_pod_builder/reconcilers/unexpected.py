"""What no one foresaw: an object on which a reconcile fails says so in its status, and does not just wait.

Schemas and admission check what is stored. But a schema leaves pod templates open, admission may be off, and what other
controllers write into an object of a graph is theirs to get right. The work queue logs such a failure and tries again, later each
time.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.api.untrusted.words import quoted
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime import Result
from dynamo_shared.runtime.facts import Announcer, Fact
from dynamo_shared.runtime.status_writer import StatusWriter
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder import events
from dynamo_pod_builder.artifact_images import LEGACY, artifact_of
from dynamo_pod_builder.reconcilers import legacy
from dynamo_pod_builder.reconcilers.sharing import graph_uid
from dynamo_pod_builder.status.checkpoint import PENDING
from dynamo_pod_builder.status.component import Failure, component_status
from dynamo_pod_builder.status.graph import GraphOutcome, graph_status

Reconcile: TypeAlias = Callable[[ObjectKey], Awaitable[Result]]
StatusOf: TypeAlias = Callable[[KubeObject, Failure, datetime], KubeObject]
FactOf: TypeAlias = Callable[[KubeObject, KubeObject, Failure], Fact]


@dataclass(frozen=True, slots=True)
class UnexpectedFailures:
    """Reports what reconciles raise, but for answers of the API server: these are over when they are tried again."""

    cache: ObjectCache
    statuses: StatusWriter
    announcer: Announcer
    now: Callable[[], datetime]

    def reported(self, resource: Resource, reconcile: Reconcile) -> Reconcile:
        """The same reconcile, which reports what it raises before it does."""

        async def reporting(key: ObjectKey) -> Result:
            try:
                return await reconcile(key)
            except KubeError:
                raise
            except Exception as error:
                if (obj := self.cache.get(resource, key)) is not None:
                    await self._report(resource, obj, _failure_of(error))
                raise

        return reporting

    async def _report(self, resource: Resource, obj: KubeObject, failure: Failure) -> None:
        status_of, fact_of = _WORDS[resource]
        status = {**obj.get("status", {}), **status_of(obj, failure, self.now())}
        await self.statuses.write(
            resource,
            obj,
            status,
            urgent=True,
            report=lambda: self.announcer.announce(obj, fact_of(obj, status, failure)),
        )


def _failure_of(error: Exception) -> Failure:
    why = quoted(f"{type(error).__name__}: {error}")
    words = f"its reconcile failed, and is tried again: {why}; the log of the pod-builder says where"
    return Failure("NotDeployable", words)


def _of_checkpoint(obj: KubeObject, failure: Failure, _now: datetime) -> KubeObject:
    """Its Job goes on, if it has one."""
    return {"phase": obj.get("status", {}).get("phase", PENDING), "message": failure.message}


def _of_component(obj: KubeObject, status: KubeObject, failure: Failure) -> Fact:
    """To programs its graph reports it, where it has one."""
    if graph_uid(obj):
        return events.COMPONENT_FAILED.named(failure.reason)(failure.message)
    return events.component_changed(obj, status)


def _of_legacy(resource: Resource) -> tuple[StatusOf, FactOf]:
    return (
        lambda obj, failure, now: legacy.status_of(resource, obj, None, failure, now),
        lambda obj, _, failure: events.legacy_held_up(obj, artifact_of(obj), failure),
    )


#: By kind, the part of a status that says it, all else stays as it was; and what users and programs are sent.
_WORDS: dict[Resource, tuple[StatusOf, FactOf]] = {
    DYNAMO_GRAPH_DEPLOYMENTS: (
        lambda obj, failure, now: graph_status(obj, GraphOutcome({}, failure=failure), now),
        lambda obj, status, _: events.graph_changed(obj, status),
    ),
    DYNAMO_COMPONENT_DEPLOYMENTS: (
        lambda obj, failure, now: component_status(obj, None, failure, now),
        _of_component,
    ),
    DYNAMO_CHECKPOINTS: (
        _of_checkpoint,
        lambda _obj, _status, failure: events.CHECKPOINT_HELD_UP.named(failure.reason)(failure.message),
    ),
    **{each: _of_legacy(each) for each in LEGACY},
}
