"""Definitions of kinds by name, and the structural schemas of their types."""

import re
from functools import cache

from dynamo_shared.api import deprecations
from dynamo_shared.api.crds.definition import Definition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.crds.structural import Schema, structural_schema
from dynamo_shared.api.resources import Resource

_BY_KIND: dict[str, Definition] = {definition.kind: definition for definition in DEFINITIONS}


def definition_of(kind: str) -> Definition:
    """Definition of a kind; KeyError if the platform does not define the kind."""
    return _BY_KIND[kind]


@cache
def schema_of(resource: Resource) -> Schema:
    """Structural schema of a kind in one version. The result is shared: do not change it.

    If it embeds a type of Kubernetes, `x-dynamo-embedded` names it: {"type": its name in the cluster's OpenAPI
    document, "optional": paths below it whose `required` does not apply here}. KeyError for an unknown resource.
    """
    definition = definition_of(resource.kind).at(resource.version)
    if definition.resource != resource:
        raise KeyError(resource)
    schema = structural_schema(definition.model)
    # The API server validates these three itself, and accepts no further schema for them.
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
    """The part of a schema at a path in inventory form, such as `spec.services{}.envs[].name`; KeyError if there is none."""
    for step in re.findall(r"[^.{}\[\]]+|\{\}|\[\]", path):
        match step:
            case "{}":
                schema = schema["additionalProperties"]
            case "[]":
                schema = schema["items"]
            case _:
                schema = schema["properties"][step]
    return schema
