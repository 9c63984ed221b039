"""Claims for GPUs in manifests, for rendering without a cluster."""

from collections.abc import Iterable, Mapping
from typing import NotRequired

from dynamo_shared.api.field_errors import field_errors
from dynamo_shared.api.manifest import Manifest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, ObjectKey, Resource
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from dynamo_ctl.files import NotUsable

Claims = Mapping[tuple[Resource, ObjectKey], KubeObject]
"""ResourceClaims and ResourceClaimTemplates, by which pods claim GPUs."""

_KINDS = {(each.api_version, each.kind): each for each in (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)}


class _ClaimMetadata(TypedDict):
    name: str
    namespace: NotRequired[str]


class _Devices(TypedDict):
    deviceClassName: NotRequired[str]
    allocationMode: NotRequired[str]
    count: NotRequired[int]
    adminAccess: NotRequired[bool]


class _Request(TypedDict):
    name: str
    exactly: NotRequired[_Devices]
    firstAvailable: NotRequired[list[_Devices]]


class _Requests(TypedDict):
    requests: NotRequired[list[_Request]]


class _Spec(TypedDict):
    devices: NotRequired[_Requests]


class _Template(TypedDict):
    spec: _Spec


class _Claim(TypedDict):
    metadata: _ClaimMetadata
    spec: _Spec


class _ClaimTemplate(TypedDict):
    metadata: _ClaimMetadata
    spec: _Template


_SHAPES: dict[Resource, TypeAdapter[_Claim] | TypeAdapter[_ClaimTemplate]] = {
    RESOURCE_CLAIMS: TypeAdapter(_Claim),
    RESOURCE_CLAIM_TEMPLATES: TypeAdapter(_ClaimTemplate),
}


def claims_in(
    manifests: Iterable[Manifest | KubeObject], namespace: str
) -> dict[tuple[Resource, ObjectKey], KubeObject]:
    """The claims among manifests. `namespace`: for manifests that name none. Raises NotUsable for an invalid claim."""
    claims: dict[tuple[Resource, ObjectKey], KubeObject] = {}
    for obj in manifests:
        if not isinstance(obj, dict) or (resource := _KINDS.get((obj["apiVersion"], obj["kind"]))) is None:
            continue
        try:
            metadata = _SHAPES[resource].validate_python(obj, strict=True)["metadata"]
        except ValidationError as error:
            raise NotUsable([f"{resource.kind}: {each}" for each in field_errors(error)]) from error
        claims[resource, ObjectKey(metadata.get("namespace") or namespace, metadata["name"])] = obj
    return claims
