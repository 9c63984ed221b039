"""Generated parts of the charts: rights, the schema of values, values that must not be null, tables of values, dashboards."""

from pathlib import Path

from tools.generate.charts import dashboards, heads, rights, values

CHARTS = Path("helm")
PLATFORM, DEFINITIONS = "dynamo-platform", "dynamo-crds"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file of the charts, with its content."""
    platform, definitions = root / CHARTS / PLATFORM, root / CHARTS / DEFINITIONS
    described = (platform / "values.yaml").read_text(encoding="utf-8")
    return {
        platform / "files" / "rights.yaml": rights.page(),
        platform / "files" / "required-values.yaml": values.required(described),
        platform / "values.schema.json": values.schema(described),
        platform / "README.md": values.readme(platform, heads.PLATFORM),
        definitions / "README.md": values.readme(definitions, heads.DEFINITIONS),
        **{platform / "files" / "dashboards" / f"{name}.json": dashboards.page(name) for name in dashboards.DASHBOARDS},
    }
