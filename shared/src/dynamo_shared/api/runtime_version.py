"""Which version of the Dynamo runtime a component's containers have, and what is rendered differently for it.

This is the one place that decides. Pods differ only by `runtimeVersionOverride`: the tag of an image may be a version of the
engine, and an upgrade of the platform replaces no pod. Warnings go by the tag, too, and so does an endpoint picker without
`eppConfig`, which pods of earlier runtimes could not start without. The version of the platform that a graph
began with (`nvidia.com/dynamo-operator-origin-version`) is another thing.
"""

from typing import NamedTuple

from dynamo_shared.api import semver

#: What `runtimeVersionOverride` may be: three numbers of at most four digits.
PATTERN = r"^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$"


class RuntimeVersion(NamedTuple):
    """A version without what a tag has behind it: `1.5.0-rc.1` and `1.5.0-cuda13` are of the runtime 1.5.0."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


#: From here on workers answer canary requests, and the endpoint picker is in the image of the frontend.
OF_1_5 = RuntimeVersion(1, 5, 0)
OF_1_6 = RuntimeVersion(1, 6, 0)


def runtime_version(image: str, override: str | None = None) -> RuntimeVersion | None:
    """Version of the runtime in an image; None where neither the override nor the tag is a version."""
    if override:
        return _core(override)
    tag = _tag(image)
    return _core(tag[:1].lower() + tag[1:])


def has_native_picker(image: str, override: str | None = None) -> bool:
    """Whether the runtime in an image has the endpoint picker that reads no `eppConfig`, as far as override or tag say it."""
    version = runtime_version(image, override)
    return version is not None and version >= OF_1_5


class RuntimeFeatures(NamedTuple):
    """What pods get by the version of their runtime, where its author states one."""

    #: The runtime asks the engine for a token when no request came for a while, and reports an engine that is stuck.
    canary: bool = False
    #: A worker is started again after three liveness probes that fail, not after the first.
    lenient: bool = False
    #: mpirun passes on where the compilers are, which is said by the image's environment alone.
    compilers: bool = False
    #: An engine on one node whose experts are elastic has a Ray head, which pods that come later join.
    ray_head: bool = False
    #: Ranks of SGLang that share a container open a port each for NIXL's telemetry. Before, the second did not start.
    rank_telemetry: bool = False
    #: Nodes of an engine that is spread by Ray wait for its head.
    ray_waits: bool = False
    #: Nodes of one replica have their rank, and the address of the leader, in variables that no orchestrator names.
    topology_names: bool = False
    #: Frontends and pickers distinguish workers of their graph from those of one whose name begins with its name.
    strict_prefix: bool = False
    #: Workers of SGLang for embeddings answer canary requests.
    embedding_canary: bool = False
    #: A frontend has time to connect before liveness probes start it again.
    frontend_startup: bool = False


def features_of(override: str | None) -> RuntimeFeatures:
    """Features of the runtime of a component with this `runtimeVersionOverride`; the thresholds are those of the reference."""
    version = _core(override) if override else None
    if version is None:
        return RuntimeFeatures()
    later, latest = version >= OF_1_5, version >= OF_1_6
    return RuntimeFeatures(later, later, later, later, later, latest, latest, latest, latest, latest)


def _core(text: str) -> RuntimeVersion | None:
    version = semver.parse(text)
    return None if version is None else RuntimeVersion(version.major, version.minor, version.patch)


def _tag(image: str) -> str:
    """Tag of an image, "" for none. The colon of a registry's port does not begin a tag, and a digest is not a tag either."""
    name = image.strip().partition("@")[0].rpartition("/")[2]
    return name.partition(":")[2]
