"""Which checkpoint a component starts from: the one that it names, or the one of its identity, which may have to be made."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.labels import CHECKPOINT_SOURCE, JOB_NAME
from dynamo_shared.api.resources import (
    DAEMON_SETS,
    DYNAMO_CHECKPOINTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    JOBS,
    PODS,
    ObjectKey,
    Resource,
    key_of,
)
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.api.v1beta1 import (
    CheckpointIdentity,
    CheckpointMode,
    ComponentCheckpoint,
    ComponentSpec,
    DynamoComponentDeployment,
    DynamoGraphDeployment,
    parse_component,
)
from dynamo_shared.bus.cache import ObjectCache
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import AlreadyExists

from dynamo_pod_builder import render
from dynamo_pod_builder.applying import controller_of
from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.auto import checkpoint_of
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.render.checkpoint.storage import storage_of
from dynamo_pod_builder.render.checkpoint.target import Restore
from dynamo_pod_builder.routing import Concern, Task
from dynamo_pod_builder.status.checkpoint import is_ready
from dynamo_pod_builder.status.pods import trouble_of

_IDENTITY = "identity"


@dataclass(frozen=True, slots=True)
class Found:
    """The checkpoint of one component."""

    name: str
    identity_hash: str
    exists: bool
    restore: Restore | None = None

    @property
    def status(self) -> KubeObject:
        """Its entry in `status.checkpoints` of a graph."""
        entry: KubeObject = {"checkpointName": self.name, "ready": self.restore is not None}
        return {**entry, "identityHash": self.identity_hash} if self.identity_hash else entry


@dataclass(frozen=True, slots=True)
class Starts:
    """What the components of a graph start from, by component."""

    found: Mapping[str, Found] = field(default_factory=dict)
    #: Identities of components whose checkpoint is to be made.
    missing: Mapping[str, CheckpointIdentity] = field(default_factory=dict)

    @property
    def restores(self) -> dict[str, Restore]:
        """Checkpoints that are ready."""
        return {name: each.restore for name, each in self.found.items() if each.restore is not None}

    @property
    def status(self) -> KubeObject:
        """`status.checkpoints` of the graph."""
        return {name: each.status for name, each in self.found.items()}


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Finds checkpoints for components, and has missing ones made."""

    kube: KubeClient
    cache: ObjectCache

    def of_graph(self, graph: DynamoGraphDeployment, config: render.RenderConfig) -> Starts:
        """What the components of a graph start from now."""
        return self._starts(graph.metadata.namespace, ((each.name, each) for each in graph.spec.components), config)

    def of_component(self, component: DynamoComponentDeployment, config: render.RenderConfig) -> Starts:
        """What a component deployment starts from now; what it is called in the answer is its own name."""
        starts = self._starts(component.metadata.namespace, ((component.metadata.name, component.spec),), config)
        # A graph has those of its components made.
        return replace(starts, missing={}) if component.metadata.owner_references else starts

    async def make_for_graph(
        self,
        graph: DynamoGraphDeployment,
        starts: Starts,
        config: render.RenderConfig,
        around: render.ObservedComponent,
    ) -> list[KubeObject]:
        """Make the missing checkpoints of a graph's components. RenderError, and KubeError where one is refused."""
        # An engine is the same whatever runs it: what it would be as a component deployment tells all.
        components = [each for each in graph.spec.components if each.name in starts.missing]
        part = graph.model_copy(update={"spec": graph.spec.model_copy(update={"components": components})})
        made: list[KubeObject] = []
        for child in render.graph_children(part, replace(config, grove=False)):
            if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
                identity = starts.missing[child["spec"]["name"]]
                made += await self._make(checkpoint_of(parse_component(child), identity, config, around))
        return made

    async def make_for_component(
        self,
        component: DynamoComponentDeployment,
        starts: Starts,
        config: render.RenderConfig,
        observed: render.ObservedComponent,
    ) -> list[KubeObject]:
        """The same for a component deployment that stands alone."""
        made: list[KubeObject] = []
        for identity in starts.missing.values():
            made += await self._make(checkpoint_of(component, identity, config, observed))
        return made

    async def _make(self, checkpoint: KubeObject) -> list[KubeObject]:
        if self.cache.get(DYNAMO_CHECKPOINTS, key_of(checkpoint)) is not None:
            return []
        # Somebody else of the same identity may have been faster, which is as good.
        with contextlib.suppress(AlreadyExists):
            written = await self.kube.create(DYNAMO_CHECKPOINTS, checkpoint)
            self.cache.put(DYNAMO_CHECKPOINTS, written)
            return [written]
        return []

    def _starts(
        self, namespace: str, components: Iterable[tuple[str, ComponentSpec]], config: render.RenderConfig
    ) -> Starts:
        found: dict[str, Found] = {}
        missing: dict[str, CheckpointIdentity] = {}
        for name, spec in components:
            wish = spec.experimental.checkpoint if spec.experimental is not None else None
            if wish is None or not config.checkpoints.enabled:
                continue
            found[name] = each = self._find(namespace, wish, config)
            if not each.exists and not wish.checkpoint_ref and wish.mode is CheckpointMode.AUTO and wish.identity:
                missing[name] = wish.identity
        return Starts(found, missing)

    def _find(self, namespace: str, wish: ComponentCheckpoint, config: render.RenderConfig) -> Found:
        if wish.checkpoint_ref:
            obj = self.cache.get(DYNAMO_CHECKPOINTS, ObjectKey(namespace, wish.checkpoint_ref))
            if obj is None:
                return Found(wish.checkpoint_ref, "", exists=False)
        elif wish.identity is not None:
            digest = identity_hash(wish.identity)
            obj = of_identity(self.cache, namespace, digest)
            if obj is None:
                return Found(names.checkpoint(digest), digest, exists=False)
        else:
            return Found("", "", exists=False)
        digest = _hash_of(obj)
        return Found(obj["metadata"]["name"], digest, True, self._restore(obj, digest, config))

    def _restore(self, checkpoint: KubeObject, digest: str, config: render.RenderConfig) -> Restore | None:
        agents = self.cache.list(DAEMON_SETS, checkpoint["metadata"]["namespace"])
        storage = storage_of(config.checkpoints, agents)
        if storage is None or not (digest and is_ready(checkpoint, digest)):
            return None
        return Restore(digest, names.version_of(checkpoint), storage, config.checkpoints.profile)


def index(cache: ObjectCache) -> None:
    """Index checkpoints by identity."""
    cache.add_index(DYNAMO_CHECKPOINTS, _IDENTITY, _identities)


def of_identity(cache: ObjectCache, namespace: str, digest: str) -> KubeObject | None:
    """The checkpoint of an identity in a namespace: the first that was made, as later ones are refused."""
    found = cache.by_index(DYNAMO_CHECKPOINTS, _IDENTITY, f"{namespace}/{digest}")
    staying = [each for each in found if "deletionTimestamp" not in each["metadata"]]
    return min(staying, key=_age, default=None)


def woken_by(
    cache: ObjectCache, resource: Resource, key: ObjectKey, old: KubeObject | None, new: KubeObject | None
) -> Iterator[Task]:
    """Tasks that a change of a checkpoint, its pod, or where checkpoints are kept asks for beside those of `routing`."""
    if resource == PODS:
        yield from _of_source(cache, key.namespace, old, new)
        return
    if resource == DAEMON_SETS:
        yield from (Task(Concern.CHECKPOINT, key_of(each)) for each in cache.list(DYNAMO_CHECKPOINTS, key.namespace))
    elif resource != DYNAMO_CHECKPOINTS or _outlook(old) == _outlook(new):
        return
    elif new is None and old is not None:
        # Another one of its identity was refused while it was there.
        for each in cache.by_index(DYNAMO_CHECKPOINTS, _IDENTITY, f"{key.namespace}/{_hash_of(old)}"):
            yield Task(Concern.CHECKPOINT, key_of(each))
    for graph in cache.list(DYNAMO_GRAPH_DEPLOYMENTS, key.namespace):
        if any(starts_from_one(each) for each in graph.get("spec", {}).get("components", ())):
            yield Task(Concern.GRAPH, key_of(graph))
    for component in cache.list(DYNAMO_COMPONENT_DEPLOYMENTS, key.namespace):
        if starts_from_one(component.get("spec", {})):
            yield Task(Concern.COMPONENT, key_of(component))


def _of_source(cache: ObjectCache, namespace: str, old: KubeObject | None, new: KubeObject | None) -> Iterator[Task]:
    """The checkpoint that a pod is the source of, where the pod's trouble changes."""
    marks = (new or old or {"metadata": {}})["metadata"].get("labels", {})
    if CHECKPOINT_SOURCE not in marks or (old and trouble_of(old)) == (new and trouble_of(new)):
        return
    job = cache.get(JOBS, ObjectKey(namespace, marks.get(JOB_NAME, "")))
    owner = controller_of(job) if job is not None else None
    if owner is not None:
        yield Task(Concern.CHECKPOINT, ObjectKey(namespace, owner["name"]))


def starts_from_one(spec: KubeObject) -> bool:
    """Whether a component, as it is stored, asks to start from a checkpoint."""
    return "checkpoint" in (spec.get("experimental") or {})


def _outlook(checkpoint: KubeObject | None) -> tuple[object, ...] | None:
    if checkpoint is None:
        return None
    status = checkpoint.get("status", {})
    return (checkpoint["metadata"]["uid"], names.version_of(checkpoint), status.get("phase"), status.get("jobName"))


def _age(checkpoint: KubeObject) -> tuple[str, str]:
    metadata = checkpoint["metadata"]
    return metadata.get("creationTimestamp", ""), metadata["name"]


def _identities(checkpoint: KubeObject) -> Iterable[str]:
    digest = _hash_of(checkpoint)
    return (f"{checkpoint['metadata']['namespace']}/{digest}",) if digest else ()


def _hash_of(checkpoint: KubeObject) -> str:
    """Hash of a stored checkpoint's identity; "" where it has none that can be read."""
    identity = identity_of(checkpoint)
    return identity_hash(identity) if identity is not None else ""
