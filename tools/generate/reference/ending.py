"""Page of the versions: the served, stored and deprecated ones, and every field that will be removed."""

from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.deprecations import DEPRECATIONS, of

from tools.generate.reference import kinds
from tools.generate.reference.markdown import code, page, table

SOURCE = "shared/src/dynamo_shared/api/deprecations.py and crds/kinds.py"


def ending_page() -> str:
    """Versions with their ends, then fields."""
    return page(
        "Versions and deprecations",
        SOURCE,
        "Served versions and deprecated fields, and until when they are served. [The policy](../policy.md) has the rules. "
        "The API server warns users of a deprecated version, and admission warns users of a deprecated field.",
        "## Versions",
        table(("Kind", "Version", "Stored", "Deprecated since", "Removed in", "Instead"), _versions()),
        "## Fields",
        table(("Kind", "Version", "Field", "Deprecated since", "Removed in", "Ignored", "Instead"), _fields()),
    )


def _versions() -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for definition in DEFINITIONS:
        for version in definition.versions:
            name = version.resource.version
            whole = next((each for each in of(definition.kind, name) if not each.path), None)
            link = f"[{name}]({kinds.file_name(definition.kind, name)})"
            end = (whole.since, whole.removed_in, whole.replacement) if whole else ("", "", "")
            rows.append((definition.kind, link, "yes" if version.storage else "", *end))
    return rows


def _fields() -> list[tuple[str, ...]]:
    return [
        (
            kind,
            each.version,
            code(each.path),
            each.since,
            each.removed_in,
            "yes" if each.ignored else "",
            each.replacement,
        )
        for each in DEPRECATIONS
        if each.path
        for kind in each.kinds
    ]
