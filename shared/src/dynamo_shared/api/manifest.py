"""Manifests as people write them, read strictly: every error at once, at the path where its author finds it.

What the API server would refuse is refused here, in the same terms: types, bounds, patterns, rules between fields. What
it would silently prune, an unknown field, is refused too, since it is a slip of the keyboard nearly always.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pydantic import ValidationError

from dynamo_shared.api.crds.build import DEFINITIONS, Definition, schema_of
from dynamo_shared.api.crds.structural import Schema, structural_schema
from dynamo_shared.api.errors import FieldError, InvalidManifest
from dynamo_shared.api.field_errors import did_you_mean, field_errors, path_of, shown
from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.model import KubeObject, drop_nulls
from dynamo_shared.api.resources import GROUP
from dynamo_shared.api.rules import Location, twin
from dynamo_shared.api.v1beta1 import DynamoComponentDeployment, DynamoGraphDeployment
from dynamo_shared.api.v1beta1.moved import MOVED
from dynamo_shared.api.yaml_text import check_bounds, documents

Manifest = DynamoGraphDeployment | DynamoComponentDeployment
"""A manifest of a kind that the platform defines."""

_BY_KIND: dict[str, Definition] = {definition.kind: definition for definition in DEFINITIONS}
_NAME_LIMIT = 253
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def load_manifest(source: str | Mapping[str, Any]) -> Manifest:
    """The one DGD or DCD of a text or an object; InvalidManifest with every error, also for none or several of them."""
    if not isinstance(source, str):
        check_bounds(source)
        return _load(source)
    found = documents(source)
    if len(found) != 1:
        raise InvalidManifest([FieldError("", f"one manifest expected, {len(found)} found")])
    return _load(found[0])


def load_manifests(text: str) -> list[Manifest | KubeObject]:
    """All manifests of a text, in order. Kinds of other groups (a ConfigMap, a claim) are given back as they are.

    InvalidManifest holds the errors of all documents, each with the name of its object.
    """
    manifests: list[Manifest | KubeObject] = []
    errors: list[FieldError] = []
    found = documents(text)
    for number, document in enumerate(found, start=1):
        try:
            manifests.append(document if _is_foreign(document) else _load(document))
        except InvalidManifest as error:
            label = _label(document, number) if len(found) > 1 else ""
            errors += [FieldError(each.path, each.message, label) for each in error.errors]
    if errors:
        raise InvalidManifest(errors)
    if not manifests:
        raise InvalidManifest([FieldError("", "no manifest found")])
    return manifests


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


def _load(document: Any) -> Manifest:
    definition = _definition(document)
    # As the API server does: a null field is no field.
    clean = drop_nulls(dict(document))
    schema = _schema(definition)
    errors: list[FieldError] = []
    try:
        result = definition.at(definition.resource.version).model.model_validate(clean)
    except ValidationError as error:
        result = None
        errors += field_errors(error, schema, MOVED)
    errors += _name_errors(clean.get("metadata"))
    errors += [FieldError(path_of(location), message) for location, message in _broken_rules(schema, clean, ())]
    if errors or not isinstance(result, Manifest):
        raise InvalidManifest(errors)
    return result


def _definition(document: Any) -> Definition:
    if not isinstance(document, Mapping):
        raise InvalidManifest([FieldError("", f"a manifest must be an object, not {shown(document)}")])
    kind, api_version = document.get("kind"), document.get("apiVersion")
    definition = _BY_KIND.get(kind) if isinstance(kind, str) else None
    if definition is None:
        problem = "required, and missing" if kind is None else f"{shown(kind)} is no kind that is supported here"
        hint = (did_you_mean(kind, _BY_KIND) if isinstance(kind, str) else "") or f"; one of {', '.join(_BY_KIND)}"
        raise InvalidManifest([FieldError("kind", f"{problem}{hint}")])
    expected = definition.resource.api_version
    if api_version != expected:
        problem = "required, and missing" if api_version is None else f"{shown(api_version)} is not supported"
        raise InvalidManifest([FieldError("apiVersion", f"{problem}; {kind} has {expected}")])
    return definition


@cache
def _schema(definition: Definition) -> Schema:
    """Schema of the kind with the fields of its metadata, which a CRD leaves out."""
    schema = schema_of(definition.resource)
    return {**schema, "properties": {**schema["properties"], "metadata": structural_schema(ObjectMeta)}}


def _name_errors(metadata: Any) -> Iterator[FieldError]:
    if not isinstance(metadata, dict):
        return
    name = metadata.get("name")
    if not name and not metadata.get("generateName"):
        yield FieldError("metadata.name", "required, and missing")
    elif isinstance(name, str) and len(name) > _NAME_LIMIT:
        yield FieldError("metadata.name", f"{len(name)} characters, where at most {_NAME_LIMIT} are allowed")
    elif isinstance(name, str) and name and not _SUBDOMAIN.fullmatch(name):
        allowed = "lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit"
        yield FieldError("metadata.name", f"{shown(name)} is no object name, which has {allowed}")


def _broken_rules(schema: Schema, value: Any, location: Location) -> Iterator[tuple[Location, str]]:
    """Rules of the schema that a value breaks, found by their Python twins. A value of a wrong type has no rules."""
    if isinstance(value, list) and schema.get("type") == "array":
        children: Iterator[tuple[int | str, Any, Schema]] = ((i, item, schema["items"]) for i, item in enumerate(value))
    elif isinstance(value, dict) and schema.get("type") == "object":
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", {})
        children = ((key, item, properties.get(key, others)) for key, item in value.items())
    else:
        return
    for validation in schema.get("x-kubernetes-validations", ()):
        for below, message in twin(validation["rule"]).violations(value):
            yield (*location, *below), message
    for key, item, child in children:
        yield from _broken_rules(child, item, (*location, key))
