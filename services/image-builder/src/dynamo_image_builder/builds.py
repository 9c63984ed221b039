"""Builds: the tag of a request, its image, and the identity of a build. Pure."""

import hashlib
import json
import re
from dataclasses import dataclass

from dynamo_shared.runtime.settings.image_builder import ImageBuilder

#: BentoML's own limits of names and versions.
_NAME = re.compile(r"[a-z0-9]([-_.a-z0-9]{0,61}[a-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
#: Digests of images and archives.
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: Longest tag of an image.
_TAG_LIMIT = 128
#: Hex digits in the names of Jobs.
_ID_LENGTH = 16


class InvalidTag(ValueError):
    """A text does not name an archive; the message gives the allowed form."""


@dataclass(frozen=True, slots=True)
class BentoTag:
    """Name and version of an archive."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}:{self.version}"


def parse_tag(text: str) -> BentoTag:
    """Parse a tag. InvalidTag if `text` is not a tag."""
    name, _, version = text.partition(":")
    if not (_NAME.fullmatch(name) and _VERSION.fullmatch(version)):
        raise InvalidTag(
            f"spec.bentoTag: {text[:200]!r} is not a tag: write name:version, such as frontend:jh2o6dqzpsgfued4; name and "
            "version have 1 to 63 letters, digits and, not at the ends, -_.; the name has no capitals"
        )
    return BentoTag(name, version)


@dataclass(frozen=True, slots=True)
class ImageTarget:
    """An image without its digest: the name for pushing, and the name for pulling."""

    push: str
    pull: str


def target_of(tag: BentoTag, namespace: str, settings: ImageBuilder) -> ImageTarget:
    """The image of a tag. `namespace` is the namespace of the request; the names follow the operator of seed 003."""
    registry = settings.registry
    prefix = f"{namespace}." if settings.add_namespace_prefix else ""
    tail = f"{tag.name}.{tag.version}{'.esgz' if settings.estargz else ''}"
    name = f"yatai.{prefix}{tail}"
    if len(name) > _TAG_LIMIT:
        name = f"yatai.{prefix}{hashlib.sha256(tail.encode()).hexdigest()[:32]}"
    inside = registry.in_cluster_server or registry.server
    push, pull = (f"{server.rstrip('/')}/{registry.repository}:{name}" for server in (inside, registry.server))
    return ImageTarget(push, pull)


@dataclass(frozen=True, slots=True)
class Build:
    """One build: of one archive into one image."""

    tag: BentoTag
    archive_digest: str
    target: ImageTarget
    estargz: bool = False

    @property
    def id(self) -> str:
        """The identity of a build: builds with the same id run only once."""
        content = [str(self.tag), self.archive_digest, self.target.push, self.estargz]
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:_ID_LENGTH]

    @property
    def job(self) -> str:
        """Name of its Job."""
        return f"dynamo-build-{self.id}"

    def image_ref(self, digest: str) -> str:
        """The reference of the built image, for a pod."""
        return f"{self.target.pull}@{digest}"
