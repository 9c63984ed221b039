"""Strict reading of manifests: reports all errors, each with the path of its field.

It refuses what the API server refuses: wrong types, values out of bounds, other patterns, violated rules between fields.
It also refuses unknown fields, which the API server silently prunes, because they are almost always typing errors.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel, ValidationError

from dynamo_shared.api import legacy, v1alpha1, v1beta1
from dynamo_shared.api.crds.build import definition_of, schema_of
from dynamo_shared.api.crds.checks import Check, checks
from dynamo_shared.api.crds.definition import VersionDefinition
from dynamo_shared.api.crds.kinds import DEFINITIONS, LEGACY
from dynamo_shared.api.crds.structural import Schema, structural_schema
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.field_errors import field_errors, path_of, shown, suggestion_for
from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import Reading, drop_nulls, to_dict
from dynamo_shared.api.moved import moved
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import GROUP, Resource
from dynamo_shared.api.untrusted.limits import check_bounds
from dynamo_shared.api.untrusted.yaml_text import documents

Manifest = (
    v1beta1.DynamoGraphDeployment
    | v1beta1.DynamoComponentDeployment
    | v1beta1.DynamoGraphDeploymentScalingAdapter
    | v1beta1.DynamoGraphDeploymentRequest
    | v1alpha1.DynamoGraphDeployment
    | v1alpha1.DynamoComponentDeployment
    | v1alpha1.DynamoGraphDeploymentScalingAdapter
    | v1alpha1.DynamoGraphDeploymentRequest
    | v1alpha1.DynamoModel
    | v1alpha1.DynamoCheckpoint
    | v1alpha1.DynamoWorkerMetadata
    | legacy.DynamoDeployment
    | legacy.DynamoNimDeployment
    | legacy.DynamoNimRequest
)
"""A manifest of a kind that the platform defines, in the version of the manifest."""

Embedded = Callable[[Mapping[str, Any]], Iterable[FieldError]]
"""Returns the errors of the types of Kubernetes that a manifest embeds."""

_KINDS = [definition.kind for definition in DEFINITIONS]
_CURRENT_KINDS = [definition.kind for definition in DEFINITIONS if definition not in LEGACY]
_NAME_LIMIT = 253


def schema_errors(obj: Any, *, embedded: bool = True) -> list[FieldError]:
    """All errors of an object by the schema of its kind and version. Accepts any value, never raises, and does not modify
    the object.

    Of embedded types of Kubernetes, only the fields that rendering needs are checked. With `embedded=False`, for callers
    that check them with the cluster's schemas, none are.
    """
    try:
        return _read(obj, embedded=embedded)[1]
    except InvalidManifest as error:
        return list(error.errors)
    except RecursionError:
        return [FieldError("", "nested too deeply")]


def load_manifest(source: str | Mapping[str, Any]) -> Manifest:
    """The only manifest in a YAML text, or that of an object. Raises InvalidManifest with all errors."""
    if not isinstance(source, str):
        check_bounds(source)
        return _load(source)
    manifests = documents(source)
    if len(manifests) != 1:
        raise InvalidManifest([FieldError("", f"expected one manifest, got {len(manifests)}")])
    return _load(manifests[0])


def load_manifests(
    text: str, rules: Callable[[KubeObject], Iterable[FieldError]] = lambda _: (), embedded: Embedded | None = None
) -> list[Manifest | KubeObject]:
    """All manifests of a YAML text, in order, also the items of a List. Objects of other API groups are not checked.

    `embedded` checks the types of Kubernetes that manifests embed; without it, only the fields that rendering needs are
    checked. `rules` checks each object, also one with errors in its schema. Raises InvalidManifest with the errors of all
    documents, each with the name of its object.
    """
    manifests: list[Manifest | KubeObject] = []
    errors: list[FieldError] = []
    parsed = unlisted(text)
    for number, document in enumerate(parsed, start=1):
        if _is_foreign(document):
            manifests.append(document)
            continue
        broken: list[FieldError] = []
        written = document
        try:
            manifests.append(manifest := _load(document, embedded))
            written = to_dict(manifest)
        except InvalidManifest as error:
            broken += error.errors
        if isinstance(written, dict):
            broken += rules(written)
        label = _label(document, number) if len(parsed) > 1 else ""
        # The rules check embedded types, too.
        errors += [FieldError(each.path, each.message, label) for each in dict.fromkeys(broken)]
    if errors:
        raise InvalidManifest(errors)
    if not manifests:
        raise InvalidManifest([FieldError("", "it holds no manifest")])
    return manifests


def unlisted(text: str) -> list[Any]:
    """Documents of a YAML text, with the items of a List instead of the List. Raises InvalidManifest if it is not YAML."""
    return [each for document in documents(text) for each in _items(document)]


def _items(document: Any) -> list[Any]:
    listed = isinstance(document, dict) and (document.get("apiVersion"), document.get("kind")) == ("v1", "List")
    return document["items"] if listed and isinstance(document.get("items"), list) else [document]


def _is_foreign(document: Any) -> bool:
    if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
        return False
    api_version = document.get("apiVersion")
    return isinstance(api_version, str) and api_version.partition("/")[0] not in ("", GROUP)


def _label(document: Any, number: int) -> str:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    if isinstance(metadata, dict) and isinstance(metadata.get("name"), str):
        return f"{document.get('kind', 'document')} {metadata['name']}"
    return f"document {number}"


def _load(document: Any, embedded: Embedded | None = None) -> Manifest:
    result, errors = _read(document, embedded=embedded is None)
    if embedded is not None:
        errors += embedded(document)
    if errors or not isinstance(result, Manifest):
        raise InvalidManifest(errors)
    return result


def _read(document: Any, *, embedded: bool) -> tuple[BaseModel | None, list[FieldError]]:
    """The document as its type (None if it is invalid), and its errors. Raises InvalidManifest for an unknown kind."""
    version = _version(document)
    resource = version.resource
    # As in the API server, a null field counts as absent.
    clean = drop_nulls(document if type(document) is dict else dict(document))
    errors: list[FieldError] = []
    try:
        result = version.model.model_validate(clean, context=Reading(clean=True, embedded=embedded))
    except ValidationError as error:
        result = None
        errors += field_errors(error, _schema(resource), moved(resource))
    errors += _name_errors(clean.get("metadata"))
    if check := _checks(resource):
        errors += [FieldError(path_of(location), message) for location, message in check(clean, ())]
    return result, errors


def _version(document: Any) -> VersionDefinition:
    if not isinstance(document, Mapping):
        raise InvalidManifest([FieldError("", f"a manifest must be an object, not {shown(document)}")])
    kind, api_version = document.get("kind"), document.get("apiVersion")
    if not isinstance(kind, str) or kind not in _KINDS:
        problem = "required, and missing" if kind is None else f"{shown(kind)} is not a supported kind"
        hint = suggestion_for(kind, _KINDS) if isinstance(kind, str) else ""
        hint = hint or f"; one of {', '.join(_CURRENT_KINDS)}"
        raise InvalidManifest([FieldError("kind", f"{problem}{hint}")])
    versions = {version.resource.api_version: version for version in definition_of(kind).versions}
    if not isinstance(api_version, str) or api_version not in versions:
        problem = "required, and missing" if api_version is None else f"{shown(api_version)} is not supported"
        newest_first = ", ".join(reversed(versions))
        raise InvalidManifest([FieldError("apiVersion", f"{problem}; {kind} has {newest_first}")])
    return versions[api_version]


@cache
def _schema(resource: Resource) -> Schema:
    """The schema of the kind, with the fields of metadata, which a CRD does not have."""
    schema = schema_of(resource)
    return {**schema, "properties": {**schema["properties"], "metadata": structural_schema(ObjectMeta)}}


@cache
def _checks(resource: Resource) -> Check | None:
    return checks(schema_of(resource))


def _name_errors(metadata: Any) -> Iterator[FieldError]:
    if not isinstance(metadata, dict):
        return
    name = metadata.get("name")
    if not name and not metadata.get("generateName"):
        yield FieldError("metadata.name", "required, and missing")
    elif isinstance(name, str) and len(name) > _NAME_LIMIT:
        yield FieldError("metadata.name", f"{len(name)} characters, but at most {_NAME_LIMIT} are allowed")
    elif isinstance(name, str) and (wrong := wrong_object_name(name)):
        yield FieldError("metadata.name", wrong)
