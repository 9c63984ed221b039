"""CustomResourceDefinitions, built from the types and the columns that kubectl shows."""

import re
from functools import cache
from typing import Any

from dynamo_shared.api import deprecations, resources
from dynamo_shared.api.crds.definition import Definition, VersionDefinition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.crds.structural import Schema, structural_schema
from dynamo_shared.api.model import EMBEDDED
from dynamo_shared.api.resources import Resource

CATEGORY = "dynamo"
#: Where the API server converts between versions. The service that serves it writes its own address over this.
_CONVERSION = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"namespace": "dynamo-system", "name": "dynamo-admission", "path": "/convert", "port": 443}
        },
    },
}
_BY_KIND: dict[str, Definition] = {definition.kind: definition for definition in DEFINITIONS}


def definition_of(kind: str) -> Definition:
    """Definition of a kind; KeyError where the platform defines none of that name."""
    return _BY_KIND[kind]


@cache
def schema_of(resource: Resource) -> Schema:
    """Structural schema of a kind in one version. It is shared: read it, never change it.

    Where it embeds a type of Kubernetes, `x-dynamo-embedded` names it: {"type": its name in the cluster's OpenAPI
    document, "optional": paths below it whose `required` does not hold here}. KeyError for an unknown resource.
    """
    definition = definition_of(resource.kind).at(resource.version)
    if definition.resource != resource:
        raise KeyError(resource)
    schema = structural_schema(definition.model)
    # The API server checks these three itself, and wants to see no more of them.
    schema["properties"] |= {
        "apiVersion": {"type": "string", "description": f"{resource.api_version}."},
        "kind": {"type": "string", "description": f"{resource.kind}."},
        "metadata": {"type": "object"},
    }
    for deprecation in deprecations.of(resource.kind, resource.version):
        node = at(schema, deprecation.path)
        node["description"] = f"{node['description']} {deprecations.note(deprecation)}"
    schema["required"] = [name for name in schema.get("required", []) if name != "metadata"]
    if not schema["required"]:
        del schema["required"]
    return schema


def at(schema: Schema, path: str) -> Schema:
    """The part of a schema at a path in inventory form, such as `spec.services{}.envs[].name`; KeyError where none is."""
    for step in re.findall(r"[^.{}\[\]]+|\{\}|\[\]", path):
        match step:
            case "{}":
                schema = schema["additionalProperties"]
            case "[]":
                schema = schema["items"]
            case _:
                schema = schema["properties"][step]
    return schema


def build(definition: Definition) -> dict[str, Any]:
    """CustomResourceDefinition of a kind."""
    resource = definition.resource
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "categories": [CATEGORY],
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    spec: dict[str, Any] = {
        "group": resource.group,
        "names": names,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "versions": [_version(version) for version in definition.versions],
    }
    if definition.is_converted:
        spec["conversion"] = _CONVERSION
    return {
        **resources.CUSTOM_RESOURCE_DEFINITIONS.type_meta,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": spec,
    }


def _version(version: VersionDefinition) -> dict[str, Any]:
    manifest: dict[str, Any] = {"name": version.resource.version, "served": True, "storage": version.storage}
    if version.deprecated:
        manifest |= {"deprecated": True, "deprecationWarning": version.deprecated}
    if subresources := version.subresources():
        manifest["subresources"] = subresources
    return {
        **manifest,
        "additionalPrinterColumns": [column.manifest() for column in version.columns],
        "schema": {"openAPIV3Schema": _published(schema_of(version.resource))},
    }


def _published(node: Any) -> Any:
    """A schema as the API server may see it: it refuses extensions that it does not know."""
    if isinstance(node, dict):
        return {key: _published(value) for key, value in node.items() if key != EMBEDDED}
    if isinstance(node, list):
        return [_published(each) for each in node]
    return node


def file_name(definition: Definition) -> str:
    """Name of the packaged file, as controller-gen would name it."""
    return f"{definition.resource.group}_{definition.resource.plural}.yaml"
