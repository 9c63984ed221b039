"""The bill of materials of an image, as CycloneDX: packages locked by hash, the project's own, and Debian's of the
base.

Created from files, not from the image: pip installed exactly the locked packages.
"""

import re
import tomllib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAMESPACE = uuid.UUID("4f1d2f3e-6f0a-5d0c-9a63-1f4f6f0a2b11")
"""Namespace of the serial numbers: equal content has an equal number."""


@dataclass(frozen=True)
class Locked:
    """One entry of a requirements file."""

    name: str
    version: str
    marker: str
    hashes: Sequence[str]


def locked(requirements: str) -> Iterator[Locked]:
    """Entries of a file in the format of `uv export`."""
    for entry in requirements.replace("\\\n", " ").splitlines():
        match = re.match(
            r"(?P<name>[\w.-]+)(?:\[[^]]*\])?==(?P<version>[^\s;]+)\s*(?:;(?P<marker>.*?))?(?=\s--hash|$)", entry
        )
        if match is not None:
            hashes = tuple(re.findall(r"--hash=sha256:([0-9a-f]{64})", entry))
            yield Locked(match["name"], match["version"], (match["marker"] or "").strip(), hashes)


def document(
    *,
    name: str,
    version: str,
    epoch: int,
    packages: Sequence[Locked],
    environment: dict[str, str],
    projects: Sequence[Path],
    debian: str,
) -> str:
    """CycloneDX 1.6 as JSON.

    `environment`: variables of markers (PEP 508) of the image's Python; `projects`: this project's pyproject.toml
    files; `debian`: lines of `dpkg-query --show`, empty if unknown.
    """
    # Only the environment of `make image` has these.
    from cyclonedx.model import HashAlgorithm, HashType  # noqa: PLC0415
    from cyclonedx.model.bom import Bom  # noqa: PLC0415
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
    from cyclonedx.output import make_outputter  # noqa: PLC0415
    from cyclonedx.schema import OutputFormat, SchemaVersion  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415
    from packaging.markers import Marker  # noqa: PLC0415

    def component(kind: str, name: str, version: str, namespace: str | None = None, **more: Any) -> Component:
        purl = PackageURL(kind, namespace, name, version)
        return Component(
            type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=purl.to_string(), **more
        )

    bom = Bom(serial_number=uuid.uuid5(NAMESPACE, f"{name} {version} {packages} {environment} {debian}"))
    bom.metadata.timestamp = datetime.fromtimestamp(epoch, UTC)
    bom.metadata.component = Component(
        type=ComponentType.CONTAINER, name=name, version=version, bom_ref=f"{name}:{version}"
    )
    for each in packages:
        if not each.marker or Marker(each.marker).evaluate(environment):
            # The hashes of all files that the lock allows: the platform determines which one is used.
            hashes = [HashType(alg=HashAlgorithm.SHA_256, content=value) for value in each.hashes]
            bom.components.add(component("pypi", each.name, each.version, hashes=hashes))
    for path in projects:
        project = tomllib.loads(path.read_text())["project"]
        bom.components.add(component("pypi", project["name"], project["version"]))
    for line in debian.splitlines():
        package, _, its_version = line.partition("\t")
        bom.components.add(component("deb", package.partition(":")[0], its_version, "debian"))
    bom.register_dependency(bom.metadata.component, list(bom.components))
    return str(make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)) + "\n"
