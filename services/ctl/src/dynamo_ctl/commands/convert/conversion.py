"""Converts manifests to another version like the conversion webhook, without any server."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dynamo_shared.api import legacy
from dynamo_shared.api.conversion import KINDS, convert, preserved_fields
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.manifest import Manifest, load_manifest, load_manifests
from dynamo_shared.api.model import to_dict
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import GROUP

from dynamo_ctl.files import NotUsable


class Converted(NamedTuple):
    """A document, paths of fields that its new version lacks, and the fields that its author has to complete."""

    obj: KubeObject
    left_out: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Kind and name, for messages."""
        return f"{self.obj.get('kind')} {self.obj.get('metadata', {}).get('name', '')}".strip()


def objects_in(text: str, version: str, *, forget: bool = False) -> list[Converted]:
    """All documents of a text. Kinds that have `version` are converted, with defaults written out. Raises NotUsable.

    `forget`: drop the fields that the version does not have. Kinds before graphs become graphs.
    """
    try:
        return [
            _converted(manifest, version, remarks, forget=forget)
            for manifest, remarks in _without_legacy(load_manifests(text))
        ]
    except InvalidManifest as error:
        raise NotUsable([str(each) for each in error.errors]) from error


def _without_legacy(manifests: list[Manifest | KubeObject]) -> Iterator[tuple[Manifest | KubeObject, tuple[str, ...]]]:
    """The manifests, with graphs in place of kinds before graphs: one graph for each deployment, or one for all
    services of an artifact.
    """
    artifacts: dict[tuple[str, str], list[legacy.DynamoNimDeployment]] = {}
    for each in manifests:
        if isinstance(each, legacy.DynamoNimDeployment) and each.spec is not None:
            artifacts.setdefault((each.metadata.namespace or "", each.spec.dynamo_nim), []).append(each)
    first = {id(services[0]): services for services in artifacts.values()}
    for each in manifests:
        if isinstance(each, legacy.DynamoDeployment):
            yield _loaded(legacy.graph_of_deployment(each))
        elif isinstance(each, legacy.DynamoNimDeployment) and each.spec is not None:
            if services := first.get(id(each)):
                yield _loaded(legacy.graph_of_services(services))
        elif not isinstance(each, legacy.DynamoNimRequest):
            yield each, ()


def _loaded(successor: legacy.Successor) -> tuple[Manifest, tuple[str, ...]]:
    return load_manifest(successor.graph), successor.remarks


def in_version(manifest: Manifest, version: str) -> KubeObject:
    """Convert an object of this platform to a version; unchanged if its kind has only one version."""
    obj = to_dict(manifest)
    return convert(obj, f"{GROUP}/{version}") if obj["kind"] in KINDS else obj


def _converted(
    manifest: Manifest | KubeObject, version: str, remarks: tuple[str, ...] = (), *, forget: bool
) -> Converted:
    if isinstance(manifest, dict):
        return Converted(manifest)
    before, obj = to_dict(manifest), in_version(manifest, version)
    if obj["apiVersion"] == before["apiVersion"]:
        return Converted(obj, remarks=remarks)
    left_out = preserved_fields(obj)
    return Converted(_without_kept(obj) if forget else obj, left_out, remarks)


def _without_kept(obj: KubeObject) -> KubeObject:
    metadata: dict[str, Any] = {**obj["metadata"]}
    annotations = {name: each for name, each in metadata.pop("annotations", {}).items() if name != PRESERVED_FIELDS}
    return {**obj, "metadata": {**metadata, "annotations": annotations} if annotations else metadata}
