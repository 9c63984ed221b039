"""The version of the Dynamo runtime in a component's containers, and the features of pods that depend on it.

Only `runtimeVersionOverride` changes pods: the tag of an image may be a version of the engine, and an upgrade of the
platform must not replace pods. The tag is used only for warnings, and for endpoint pickers without `eppConfig`, because
older runtimes cannot start without it. The version of the platform at a graph's creation
(`nvidia.com/dynamo-operator-origin-version`) is independent of this.
"""

from typing import NamedTuple

from dynamo_shared.api import semver

#: Pattern of `runtimeVersionOverride`: three numbers of at most four digits.
PATTERN = r"^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$"


class RuntimeVersion(NamedTuple):
    """A version without suffix: the tags `1.5.0-rc.1` and `1.5.0-cuda13` both have the version 1.5.0."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


#: From this version on, workers answer canary requests, and the image of the frontend contains the endpoint picker.
OF_1_5 = RuntimeVersion(1, 5, 0)
OF_1_6 = RuntimeVersion(1, 6, 0)


def runtime_version(image: str, override: str | None = None) -> RuntimeVersion | None:
    """The version of the runtime in an image, from the override, otherwise from the tag; None if that is not a version."""
    if override:
        return _core(override)
    tag = _tag(image)
    return _core(tag[:1].lower() + tag[1:])


def has_native_picker(image: str, override: str | None = None) -> bool:
    """Whether the runtime in an image has an endpoint picker that needs no `eppConfig`; False for an unknown version."""
    version = runtime_version(image, override)
    return version is not None and version >= OF_1_5


class RuntimeFeatures(NamedTuple):
    """Features of pods that depend on the version in `runtimeVersionOverride`."""

    #: The runtime sends the idle engine a canary request from time to time, and reports an engine that does not answer.
    canary: bool = False
    #: A worker restarts after three failed liveness probes, not after the first.
    lenient: bool = False
    #: mpirun passes on the variables with the paths of compilers, which only the image's environment has.
    compilers: bool = False
    #: A single-node engine with elastic experts has a Ray head, which later pods join.
    ray_head: bool = False
    #: Ranks of SGLang in one container have separate ports for NIXL's telemetry. Before, the second rank did not start.
    rank_telemetry: bool = False
    #: Nodes of an engine that is distributed with Ray wait for the Ray head.
    ray_waits: bool = False
    #: Nodes of a replica have their rank and the leader's address in variables that do not depend on the orchestrator.
    topology_names: bool = False
    #: Frontends and pickers ignore workers of other graphs whose name begins with the name of their graph.
    strict_prefix: bool = False
    #: Workers of SGLang for embeddings answer canary requests.
    embedding_canary: bool = False
    #: Frontends have a startup probe, so that they have time to connect before liveness probes restart them.
    frontend_startup: bool = False


def features_of(override: str | None) -> RuntimeFeatures:
    """The features of a component with this `runtimeVersionOverride`, with the thresholds of the reference."""
    version = _core(override) if override else None
    if version is None:
        return RuntimeFeatures()
    later, latest = version >= OF_1_5, version >= OF_1_6
    return RuntimeFeatures(later, later, later, later, later, latest, latest, latest, latest, latest)


def _core(text: str) -> RuntimeVersion | None:
    version = semver.parse(text)
    return None if version is None else RuntimeVersion(version.major, version.minor, version.patch)


def _tag(image: str) -> str:
    """The tag of an image; "" without one. Neither a registry's port nor a digest is a tag."""
    name = image.strip().partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2]
