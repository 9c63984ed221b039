"""Composition root: all that the pod-builder is made of, on one page."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from dynamo_pod_builder import children
from dynamo_pod_builder.applying import Applier
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.events import Reporter
from dynamo_pod_builder.reconcilers.component import ComponentReconciler
from dynamo_pod_builder.reconcilers.graph import GraphReconciler
from dynamo_pod_builder.reconcilers.namespace import NamespaceReconciler
from dynamo_pod_builder.routing import Concern, Task, tasks_for
from dynamo_pod_builder.writing import StatusWriter
from dynamo_shared.api.resources import (
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.bus import EventPublisher, ObjectCache, StateReader
from dynamo_shared.kube.events import EventRecorder
from dynamo_shared.runtime import Result, ServiceContext, WorkQueue

KubeObject = dict[str, Any]

NAME = "pod-builder"
FIELD_MANAGER = "dynamo-pod-builder"
READS: tuple[Resource, ...] = (DYNAMO_GRAPH_DEPLOYMENTS, *children.OWNED)


class PodBuilderService:
    """DynamoGraphDeployments and DynamoComponentDeployments become Kubernetes objects, and their status tells how far."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            await _PodBuilder(context).serve(tasks)


class _PodBuilder:
    def __init__(self, context: ServiceContext) -> None:
        settings = context.settings
        kube = context.kube.acting_as(FIELD_MANAGER)
        self._context = context
        self._cache = ObjectCache()
        children.index(self._cache)
        self._reader = StateReader(context.bus, settings.platform.cluster_name, READS, self._cache)
        self._recorder = EventRecorder(kube, FIELD_MANAGER)
        self._publisher = EventPublisher(context.bus, settings.platform.cluster_name)
        self._queue: WorkQueue[Task] = context.queue(NAME)
        self._reporter = Reporter(self._recorder, self._publisher)
        self._ownership = context.ownership(NAME)
        applier = Applier(kube, self._cache)
        statuses = StatusWriter(kube, self._cache, context.clock)
        config = render_config(settings)
        self._graphs = GraphReconciler(self._cache, applier, statuses, self._reporter, config, _now)
        self._components = ComponentReconciler(self._cache, applier, statuses, config, _now)
        self._namespaces = NamespaceReconciler(self._cache, applier)
