"""What objects would lose under this platform's definitions: `dynamoctl crds --check`, before they replace others."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.definition import Definition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.crds.pruning import pruned
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.manifest import schema_errors, unlisted
from dynamo_shared.api.moved import moved
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, GROUP, ObjectKey, Resource
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.kube import KubeClient, KubeError, NotServed, get_if_present

from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.files import NotUsable
from dynamo_ctl.targets import ClusterOptions

_NO_MANIFEST = "not a manifest, which is an object with apiVersion and kind; remove it"
#: Fields of Dynamo since 1.3 that this platform's definitions do not have (docs/moving.md has the same table): the end of
#: a field's path, without indexes and names of components -> what to do. The longest matching end counts.
LATER: dict[str, str] = {
    "experimental.componentGroups": "set replicas of each component; one scale command changes several components",
    "dynamoSidecar": "run the Dynamo runtime in main, or in an init container runtime with restartPolicy: Always",
    "gpuMemoryService.extraClientPods": "remove it: only pods of the component use the GPU memory service, as with the operator",
}
OTHERS = "this platform has no equivalent: remove it, or leave this object to the operator"
_KINDS = {definition.kind: definition for definition in DEFINITIONS}


class Checked(NamedTuple):
    """The number of checked objects, and a line for each field that would be dropped or refused."""

    objects: int
    findings: tuple[str, ...]


def in_text(text: str) -> Checked:
    """Check the manifests of a text. Manifests of other groups do not count. Raises NotUsable if the text has no
    manifest, or has anything else.
    """
    try:
        parsed = unlisted(text)
    except InvalidManifest as error:
        raise NotUsable([str(each) for each in error.errors]) from error
    where = [f"document {number}: " if len(parsed) > 1 else "" for number in range(1, len(parsed) + 1)]
    others = [f"{title}{_NO_MANIFEST}" for title, each in zip(where, parsed, strict=True) if not _is_manifest(each)]
    if others or not parsed:
        raise NotUsable(others or ["it is empty; name files with manifests"])
    here = [each for each in parsed if _group(each) == GROUP]
    return Checked(len(here), tuple(line for obj in here for line in _of_manifest(obj)))


async def in_cluster(kubeconfig: Path | None, context: str | None) -> Checked:
    """Check a cluster's objects of every kind that it has and this platform defines. Raises CtlError if a read fails.

    An object that another of these objects controls does not count: the platform renders it again.
    """
    objects, findings = 0, list[str]()
    async with await ClusterOptions(kubeconfig, context).client() as client:
        for definition in DEFINITIONS:
            served = await _served(client, definition)
            by_version = [(version, await _all(client, version)) for version in served]
            objects += len(by_version[0][1]) if by_version else 0
            findings += _first_of_each(by_version)
    return Checked(objects, tuple(findings))


def of_object(obj: KubeObject, resource: Resource) -> Iterator[str]:
    """A line for each field of an object that its kind's definition would drop, or whose value it would refuse.

    The status does not count: the platform writes its own.
    """
    metadata = mapping(obj.get("metadata"))
    where = "/".join(filter(None, (str(metadata.get("namespace") or ""), str(metadata.get("name") or ""))))
    title = f"{resource.kind} {where} ({resource.version})"
    body = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    remaining, lost = pruned(body, schema_of(resource))
    for field in lost:
        yield f"{title}: {path_of(field)} would be dropped: {what_to_do(field, moved(resource))}"
    head = {**resource.type_meta, "metadata": metadata}
    for error in schema_errors({**head, **remaining}, embedded=False):
        yield f"{title}: {error.path} would be refused: {error.message}"


def _of_manifest(obj: dict[str, Any]) -> Iterator[str]:
    kind, version = obj["kind"], obj["apiVersion"].partition("/")[2]
    definition = _KINDS.get(kind)
    if definition is None:
        yield f"{kind}: this platform does not have this kind: leave its objects to the operator, or remove them"
        return
    known = [each.resource for each in definition.versions]
    resource = next((each for each in known if each.version == version), None)
    if resource is None:
        versions = ", ".join(each.version for each in known)
        yield f"{kind}: this platform does not have version {version}: use one of {versions}"
    else:
        yield from of_object(obj, resource)


async def _served(client: KubeClient, definition: Definition) -> list[Resource]:
    """The versions of a kind that the cluster serves and this platform knows, newest first; empty without the kind."""
    name = f"{definition.resource.plural}.{GROUP}"
    installed = await get_if_present(client, CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", name))
    if installed is None:
        return []
    served = {each["name"] for each in installed["spec"]["versions"] if each["served"]}
    return [version.resource for version in reversed(definition.versions) if version.resource.version in served]


async def _all(client: KubeClient, resource: Resource) -> list[KubeObject]:
    try:
        objects = await client.list(resource)
    except NotServed:
        return []
    except KubeError as error:
        raise CtlError(
            f"{resource.plural} cannot be read in {resource.version}: {error}; the operator converts these objects: run the "
            "check before you stop the operator, with rights to list the objects in all namespaces",
            ExitCode.UNREACHABLE,
        ) from error
    return [each for each in objects if not _is_controlled(each)]


def _is_controlled(obj: KubeObject) -> bool:
    owners = obj["metadata"].get("ownerReferences") or ()
    return any(each.get("controller") is True and each.get("kind") in _KINDS for each in owners)


def _first_of_each(by_version: Iterable[tuple[Resource, list[KubeObject]]]) -> Iterator[str]:
    """For each object, the findings of its newest version that has any: other versions only name fields differently."""
    reported: set[tuple[str, str]] = set()
    for resource, objects in by_version:
        for obj in objects:
            key = (obj["metadata"].get("namespace", ""), obj["metadata"]["name"])
            lines = list(of_object(obj, resource)) if key not in reported else []
            if lines:
                reported.add(key)
            yield from lines


def _is_manifest(document: Any) -> bool:
    return isinstance(document, dict) and all(
        isinstance(text := document.get(name), str) and text for name in ("apiVersion", "kind")
    )


def _group(obj: dict[str, Any]) -> str:
    return str(obj["apiVersion"]).partition("/")[0]


def what_to_do(field: Location, renamed: Mapping[str, str]) -> str:
    """What the author should do about a field that would be dropped. `renamed`: the fields that have another name here."""
    names = [each for each in field if isinstance(each, str)]
    ends = (".".join(names[start:]) for start in range(len(names)))
    later = next((LATER[end] for end in ends if end in LATER), None)
    return later or renamed.get(names[-1] if names else "", OTHERS)
