"""Which checkpoint a component starts from: the one that it names, or the one of its identity, which may have to be created.

Pure; `checkpoints` reads from the cache what this decides on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1alpha1 import identity_of
from dynamo_shared.api.v1beta1 import CheckpointIdentity, CheckpointMode, ComponentSpec
from dynamo_shared.api.v1beta1.experimental import ComponentCheckpoint

from dynamo_pod_builder import render
from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.render.checkpoint.storage import storage_of
from dynamo_pod_builder.render.checkpoint.target import Restore
from dynamo_pod_builder.status.checkpoint import is_ready


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The checkpoints that the components of one graph ask for, as far as they exist, and what says where their files are."""

    by_name: Mapping[str, KubeObject] = field(default_factory=dict)
    #: By the hash of the identity.
    by_identity: Mapping[str, KubeObject] = field(default_factory=dict)
    #: Snapshot agents of the namespace.
    agents: Sequence[KubeObject] = ()


NO_CHECKPOINTS = Catalogue()


@dataclass(frozen=True, slots=True)
class CheckpointStart:
    """The checkpoint of one component; `restore` is None until pods can start from it."""

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

    by_component: Mapping[str, CheckpointStart] = field(default_factory=dict)
    #: Identities of components whose checkpoint is to be created.
    missing: Mapping[str, CheckpointIdentity] = field(default_factory=dict)

    @property
    def restores(self) -> dict[str, Restore]:
        """Checkpoints that are ready."""
        return {name: each.restore for name, each in self.by_component.items() if each.restore is not None}

    @property
    def status(self) -> KubeObject:
        """`status.checkpoints` of the graph."""
        return {name: each.status for name, each in self.by_component.items()}


NO_STARTS = Starts()


def starts_of(
    components: Iterable[tuple[str, ComponentSpec]], catalogue: Catalogue, config: render.RenderConfig
) -> Starts:
    """What components start from now; the answer has them under the names given here."""
    starts: dict[str, CheckpointStart] = {}
    missing: dict[str, CheckpointIdentity] = {}
    for name, spec in components:
        desired = spec.experimental.start if spec.experimental is not None else None
        if desired is None or not config.checkpoints.enabled:
            continue
        starts[name] = each = _start(desired, catalogue, config)
        if not each.exists and not desired.checkpoint_ref and desired.mode is CheckpointMode.AUTO and desired.identity:
            missing[name] = desired.identity
    return Starts(starts, missing)


def starts_from_one(spec: KubeObject) -> bool:
    """Whether a component, as it is stored, asks to start from a checkpoint."""
    experimental = spec.get("experimental") or {}
    return "checkpoint" in experimental and (experimental["checkpoint"] or {}).get("enabled") is not False


def _start(desired: ComponentCheckpoint, catalogue: Catalogue, config: render.RenderConfig) -> CheckpointStart:
    if desired.checkpoint_ref:
        obj = catalogue.by_name.get(desired.checkpoint_ref)
        if obj is None:
            return CheckpointStart(desired.checkpoint_ref, "", exists=False)
    elif desired.identity is not None:
        digest = identity_hash(desired.identity)
        obj = catalogue.by_identity.get(digest)
        if obj is None:
            return CheckpointStart(names.checkpoint(digest), digest, exists=False)
    else:
        return CheckpointStart("", "", exists=False)
    digest = hash_of(obj)
    return CheckpointStart(objects.name(obj), digest, True, _restore(obj, digest, catalogue.agents, config))


def _restore(
    checkpoint: KubeObject, digest: str, agents: Sequence[KubeObject], config: render.RenderConfig
) -> Restore | None:
    storage = storage_of(config.checkpoints, agents)
    if storage is None or not (digest and is_ready(checkpoint, digest)):
        return None
    return Restore(digest, names.version_of(checkpoint), storage, config.checkpoints.profile)


def hash_of(checkpoint: KubeObject) -> str:
    """Hash of a stored checkpoint's identity; "" where it has none that can be read."""
    identity = identity_of(checkpoint)
    return identity_hash(identity) if identity is not None else ""
