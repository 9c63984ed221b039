"""Which checkpoint a component starts from: one that it names, one of its identity, or one that is taken of itself.

Pure; `checkpoints` reads the inputs from the cache.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from dynamo_shared.api import objects, snapshots
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.api.v1beta1 import CheckpointIdentity, CheckpointMode, ComponentSpec
from dynamo_shared.api.v1beta1.experimental import ComponentCheckpoint

from dynamo_pod_builder import render
from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.render.checkpoint.storage import storage_of
from dynamo_pod_builder.render.checkpoint.target import Restore
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.snapshot_starts import NOT_CAPTURED, SnapshotStart, not_installed, of_capture, of_name
from dynamo_pod_builder.status.checkpoint import FAILED, READY


@dataclass(frozen=True, slots=True)
class KnownCheckpoint:
    """What graphs read of a checkpoint."""

    name: str
    uid: str
    created: str
    deleting: bool
    #: "" if its identity is missing or cannot be read.
    identity_hash: str
    version: str
    phase: str
    job_name: str
    #: Why it could not be taken; "" unless it has failed.
    failure: str

    @classmethod
    def of(cls, checkpoint: KubeObject) -> Self:
        """Read a stored checkpoint."""
        identity, status = identity_of(checkpoint), checkpoint.get("status") or {}
        failed = status.get("phase") == FAILED
        return cls(
            name=objects.name(checkpoint),
            uid=objects.uid(checkpoint),
            created=objects.created_at(checkpoint),
            deleting=objects.is_deleting(checkpoint),
            identity_hash=identity_hash(identity) if identity is not None else "",
            version=names.version_of(checkpoint),
            phase=status.get("phase", ""),
            job_name=status.get("jobName", ""),
            failure=(status.get("message") or "its status has no message") if failed else "",
        )

    @property
    def is_ready(self) -> bool:
        """Whether pods can start from it, in its desired version."""
        return self.phase == READY and self.job_name == names.job(self.identity_hash, self.version)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The existing checkpoints that the components of a graph request, and the objects that say where their files are."""

    by_name: Mapping[str, KnownCheckpoint] = field(default_factory=dict)
    #: By the hash of the identity.
    by_identity: Mapping[str, KnownCheckpoint] = field(default_factory=dict)
    #: Snapshot agents of the namespace.
    agents: Sequence[KubeObject] = ()
    #: SnapshotJobs of the graph, and the PodSnapshots that these or its components name; both by name.
    jobs: Mapping[str, KubeObject] = field(default_factory=dict)
    snapshots: Mapping[str, KubeObject] = field(default_factory=dict)


NO_CHECKPOINTS = Catalogue()


@dataclass(frozen=True, slots=True)
class CheckpointStart:
    """The checkpoint of one component; `restore` is None until pods can start from it."""

    name: str
    identity_hash: str
    exists: bool
    restore: Restore | None = None
    #: Why it could not be taken; "" unless it has failed.
    failure: str = ""

    @property
    def fails(self) -> bool:
        """Whether it can only become ready after a change by a user."""
        return bool(self.failure)

    @property
    def message(self) -> str:
        """What prevents pods from starting from it."""
        return f"DynamoCheckpoint {self.name} has failed: {self.failure}"

    @property
    def ready(self) -> bool:
        """Whether pods can start from it."""
        return self.restore is not None

    @property
    def status(self) -> KubeObject:
        """Its entry in `status.checkpoints` of a graph."""
        entry: KubeObject = {"checkpointName": self.name, "ready": self.ready}
        return {**entry, "identityHash": self.identity_hash} if self.identity_hash else entry


#: SnapshotJobs of the components of a graph that start from PodSnapshots, or why they cannot be captured; by component.
Captures: TypeAlias = Mapping[str, KubeObject | str]


@dataclass(frozen=True, slots=True)
class Starts:
    """What the components of a graph start from, by component."""

    by_component: Mapping[str, CheckpointStart | SnapshotStart] = field(default_factory=dict)
    #: Identities of components whose checkpoint must be created.
    missing: Mapping[str, CheckpointIdentity] = field(default_factory=dict)
    #: Components of which no pod starts before their checkpoint is ready.
    waiting: frozenset[str] = frozenset()

    @property
    def restores(self) -> dict[str, Restore]:
        """DynamoCheckpoints that are ready."""
        known = ((name, each.restore) for name, each in self.by_component.items() if isinstance(each, CheckpointStart))
        return {name: restore for name, restore in known if restore is not None}

    @property
    def snapshots(self) -> dict[str, SnapshotStart]:
        """Components that start from PodSnapshots."""
        return {name: each for name, each in self.by_component.items() if isinstance(each, SnapshotStart)}

    @property
    def status(self) -> KubeObject:
        """`status.checkpoints` of the graph."""
        return {name: each.status for name, each in self.by_component.items()}


NO_STARTS = Starts()


def starts_of(
    components: Iterable[tuple[str, ComponentSpec]],
    catalogue: Catalogue,
    config: render.RenderConfig,
    captures: Captures | None = None,
) -> Starts:
    """What components start from now; the result has them under the names given here.

    `captures`: those of the components of a graph that `starts_from_snapshot`; None for a component deployment, whose
    pod template already has what its graph decided.
    """
    starts: dict[str, CheckpointStart | SnapshotStart] = {}
    missing: dict[str, CheckpointIdentity] = {}
    waiting: set[str] = set()
    for name, spec in components:
        desired = spec.experimental.start if spec.experimental is not None else None
        if desired is None or not config.checkpoints.enabled:
            continue
        if captures is not None and name in captures:
            starts[name] = _snapshot_start(name, desired, catalogue, captures, config)
        else:
            starts[name] = each = _start(name, desired, catalogue, config)
            created = not desired.checkpoint_ref and desired.mode is CheckpointMode.AUTO
            if not each.exists and created and desired.identity:
                missing[name] = desired.identity
        if desired.waits and not starts[name].ready and (captures is not None or not desired.is_automatic):
            waiting.add(name)
    return Starts(starts, missing, frozenset(waiting))


def starts_from_snapshot(spec: ComponentSpec, catalogue: Catalogue) -> bool:
    """Whether a component of a graph starts from a PodSnapshot: one that is taken of itself, or one that it names.

    If a DynamoCheckpoint of that name exists, the name refers to it, as before Dynamo 1.5.
    """
    desired = spec.experimental.start if spec.experimental is not None else None
    if desired is None:
        return False
    return desired.is_automatic or (bool(desired.checkpoint_ref) and desired.checkpoint_ref not in catalogue.by_name)


def starts_from_one(spec: KubeObject) -> bool:
    """Whether a stored component requests to start from a checkpoint."""
    experimental = spec.get("experimental") or {}
    return "checkpoint" in experimental and (experimental["checkpoint"] or {}).get("enabled") is not False


def _snapshot_start(
    component: str, desired: ComponentCheckpoint, catalogue: Catalogue, captures: Captures, config: render.RenderConfig
) -> SnapshotStart:
    ref, capture = desired.checkpoint_ref or "", captures[component]
    if not config.checkpoints.snapshots:
        return not_installed(ref)
    if isinstance(capture, str):
        return SnapshotStart(ref, NOT_CAPTURED, capture, fails=True)
    if ref:
        return of_name(desired, catalogue.snapshots.get(ref), capture)
    job = catalogue.jobs.get(objects.name(capture))
    snapshot = catalogue.snapshots.get(snapshots.snapshot_name(job)) if job is not None else None
    return of_capture(desired, capture, job, snapshot)


def _start(
    component: str, desired: ComponentCheckpoint, catalogue: Catalogue, config: render.RenderConfig
) -> CheckpointStart:
    if desired.checkpoint_ref:
        known = catalogue.by_name.get(desired.checkpoint_ref)
        if known is None:
            return CheckpointStart(desired.checkpoint_ref, "", exists=False)
    elif desired.identity is not None:
        digest = identity_hash(desired.identity)
        known = catalogue.by_identity.get(digest)
        if known is None:
            return CheckpointStart(names.checkpoint(digest), digest, exists=False)
    else:
        return CheckpointStart("", "", exists=False)
    if desired.target_container_name not in (None, "", MAIN):
        at = "experimental.checkpoint.targetContainerName"
        raise RenderError(component, at, f"must be {MAIN}, the container of DynamoCheckpoint {known.name}")
    restore = _restore(known, catalogue.agents, config)
    return CheckpointStart(known.name, known.identity_hash, True, restore, known.failure)


def _restore(known: KnownCheckpoint, agents: Sequence[KubeObject], config: render.RenderConfig) -> Restore | None:
    storage = storage_of(config.checkpoints, agents)
    if storage is None or not known.is_ready:
        return None
    return Restore(known.identity_hash, known.version, storage, config.checkpoints.profile)
