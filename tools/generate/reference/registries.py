"""Pages of the registries: labels, annotations, ports, environment variables."""

from dynamo_shared.api.registry import CATALOGS, Catalog

from tools.generate.reference.markdown import code, page, table

SOURCE = "shared/src/dynamo_shared/api/registry"

FILES = {
    "Labels": "labels.md",
    "Annotations": "annotations.md",
    "Ports": "ports.md",
    "Environment variables": "environment.md",
}


def pages() -> dict[str, str]:
    """One page per registry, by its path below docs/reference."""
    return {FILES[catalog.title]: registry_page(catalog) for catalog in CATALOGS}


def registry_page(catalog: Catalog) -> str:
    """One registry: every name with its purpose, who sets it and who reads it."""
    rows = [
        (code(each.name), each.purpose, each.values, each.where, each.set_by, each.read_by, each.stability.value)
        for each in catalog.entries
    ]
    head = (catalog.name_title, "Purpose", catalog.values_title, "On", "Set by", "Read by", "Stability")
    return page(catalog.title, SOURCE, catalog.introduction, table(head, rows), _STABILITY)


_STABILITY = (
    "Stability: **stable** names are removed only under [the policy](../policy.md); **evolving** names belong to a feature "
    "that is not final, and may change with it; **compatibility** names are read because other control planes wrote them."
)
