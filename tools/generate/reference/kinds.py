"""Pages of the kinds: an overview, and one page with all fields for each kind and version."""

import json
from collections.abc import Iterator

from dynamo_shared.api import deprecations
from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.crds.definition import Definition, VersionDefinition
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.resources import GROUP

from tools.generate.crds import subresources, warning_of
from tools.generate.reference.fields import SchemaField, fields, limits_of, type_of
from tools.generate.reference.markdown import code, page, table

SOURCE = "the types in shared/src/dynamo_shared/api"


def file_name(kind: str, version: str) -> str:
    """Page of a kind in a version."""
    return f"kinds/{kind.lower()}-{version}.md"


def pages() -> dict[str, str]:
    """Every page of a kind, by its path below docs/reference."""
    pages = {"kinds.md": overview()}
    for definition in DEFINITIONS:
        for version in definition.versions:
            pages[file_name(definition.kind, version.resource.version)] = kind_page(definition, version)
    return pages


def overview() -> str:
    """Names, versions, columns and subresources of all kinds."""
    rows = [
        (
            f"**{each.kind}**",
            ", ".join(code(name) for name in each.short_names),
            code(each.resource.plural),
            "Namespaced" if each.resource.namespaced else "Cluster",
            ", ".join(_version_link(each, version) for version in each.versions),
            str(schema_of(each.resource).get("description", "")),
        )
        for each in DEFINITIONS
    ]
    columns = [
        (
            f"{each.kind} {version.resource.version}",
            ", ".join(f"{column.name} (wide)" if column.wide else column.name for column in version.columns),
        )
        for each in DEFINITIONS
        for version in each.versions
    ]
    scales = [
        (
            f"{each.kind} {version.resource.version}",
            code(version.scale.desired),
            code(version.scale.present),
            code(version.scale.selector),
        )
        for each in DEFINITIONS
        for version in each.versions
        if version.scale
    ]
    return page(
        "Kinds",
        SOURCE,
        f"All kinds are in the API group `{GROUP}` and the category `dynamo` (`kubectl get dynamo`). Objects are stored in the "
        "**bold** version; the other version is converted to and from it without loss. ~~Struck out~~ versions are deprecated: "
        "[the policy](../policy.md) says until when they are served.",
        table(("Kind", "Short", "Plural", "Scope", "Versions", "What for"), rows),
        "## Columns of `kubectl get`",
        table(("Kind", "Columns"), columns),
        "## Scale",
        "Kinds with the subresource `/scale`, which `kubectl scale`, the HorizontalPodAutoscaler and KEDA use. A graph has it "
        "only so that the refusal can name what to scale instead: the DynamoGraphDeploymentScalingAdapter of a component.",
        table(("Kind", "Desired replicas", "Present replicas", "Selector of the pods"), scales),
    )


def kind_page(definition: Definition, version: VersionDefinition) -> str:
    """One kind in one version, with every field."""
    resource = version.resource
    schema = schema_of(resource)
    deprecated = {each.path: each for each in deprecations.of(resource.kind, resource.version)}
    facts = [
        ("apiVersion", code(resource.api_version)),
        ("kind", code(resource.kind)),
        ("short names", ", ".join(code(name) for name in definition.short_names) or "none"),
        ("stored", "yes" if version.storage else f"no, as {definition.resource.version}"),
        ("subresources", ", ".join(code(f"/{name}") for name in subresources(version)) or "none"),
        (
            "other versions",
            ", ".join(_version_link(definition, each, "") for each in definition.versions if each is not version)
            or "none",
        ),
    ]
    described = [each for each in fields(schema) if _is_described(each)]
    return page(
        f"{resource.kind} {resource.version}",
        SOURCE,
        str(schema.get("description", "")),
        table(("", ""), facts),
        *(
            part
            for section, title in (("spec", "Spec"), ("status", "Status"))
            for part in _section(title, section, described, deprecated)
        ),
    )


def _section(
    title: str, section: str, described: list[SchemaField], deprecated: dict[str, deprecations.Deprecation]
) -> Iterator[str]:
    rows = [
        (
            code(each.path),
            type_of(each.schema),
            "yes" if each.required else "",
            code(json.dumps(each.schema["default"])) if "default" in each.schema else "",
            "; ".join([*limits_of(each.schema), *_rules(each)]),
            str(each.schema.get("description", "")),
            _notice(deprecated.get(each.path)),
        )
        for each in described
        if each.path == section or each.path.startswith(f"{section}.")
    ]
    if rows:
        yield f"## {title}"
        yield table(("Field", "Type", "Required", "Default", "Allowed", "Description", "Deprecated"), rows)


def _is_described(field: SchemaField) -> bool:
    """Elements of lists and maps are described with their list or map, unless they have rules."""
    return field.path not in ("apiVersion", "kind", "metadata") and (not field.is_element or bool(_rules(field)))


def _rules(field: SchemaField) -> list[str]:
    return [str(each["message"]) for each in field.schema.get("x-kubernetes-validations", ())]


def _notice(deprecation: deprecations.Deprecation | None) -> str:
    return f"since {deprecation.since}, removed in {deprecation.removed_in}" if deprecation else ""


def _version_link(definition: Definition, version: VersionDefinition, folder: str = "kinds/") -> str:
    name = version.resource.version
    text = f"**{name}**" if version.storage and len(definition.versions) > 1 else name
    text = f"~~{text}~~" if warning_of(version) else text
    return f"[{text}]({folder}{definition.kind.lower()}-{name}.md)"
