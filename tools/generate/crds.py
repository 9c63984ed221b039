"""CustomResourceDefinitions, generated from the types and the printer columns."""

from typing import Any

from dynamo_shared.api import deprecations, resources
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.definition import Column, Definition, Scale, VersionDefinition
from dynamo_shared.api.model import EMBEDDED

CATEGORY = "dynamo"
#: The conversion webhook. The service that serves it replaces this address by its own.
_CONVERSION = {
    "strategy": "Webhook",
    "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {"namespace": "dynamo-system", "name": "dynamo-admission", "path": "/convert", "port": 443}
        },
    },
}


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
    if warning := warning_of(version):
        manifest |= {"deprecated": True, "deprecationWarning": warning}
    if of_status_and_scale := subresources(version):
        manifest["subresources"] = of_status_and_scale
    return {
        **manifest,
        "additionalPrinterColumns": [_column(each) for each in version.columns],
        "schema": {"openAPIV3Schema": _published(schema_of(version.resource))},
    }


def subresources(version: VersionDefinition) -> dict[str, Any]:
    """The subresources of a version in a CRD."""
    named: dict[str, Any] = {"status": {}} if version.status else {}
    return {**named, "scale": _scale(version.scale)} if version.scale else named


def _scale(scale: Scale) -> dict[str, str]:
    manifest = {"specReplicasPath": scale.desired, "statusReplicasPath": scale.present}
    return {**manifest, "labelSelectorPath": scale.selector} if scale.selector else manifest


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.json_path,
        "description": column.description,
        **({"priority": 1} if column.wide else {}),
    }


def warning_of(version: VersionDefinition) -> str:
    """The API server's deprecation warning for the version; empty if it is not deprecated."""
    kind = version.resource.kind
    whole = (each for each in deprecations.of(kind, version.resource.version) if not each.path)
    return next((deprecations.warning("", each, kind) for each in whole), "")


def _published(node: Any) -> Any:
    """A schema without extensions that the API server does not know and would refuse."""
    if isinstance(node, dict):
        return {key: _published(value) for key, value in node.items() if key != EMBEDDED}
    if isinstance(node, list):
        return [_published(each) for each in node]
    return node


def file_name(definition: Definition) -> str:
    """Name of the packaged file, as controller-gen would name it."""
    return f"{definition.resource.group}_{definition.resource.plural}.yaml"
