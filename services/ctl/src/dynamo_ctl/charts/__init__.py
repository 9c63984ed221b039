"""Parts of the charts that are made of the code: rights, the schema of values, the table of values."""

from __future__ import annotations

from pathlib import Path

from dynamo_ctl.charts import rights

CHART = Path("helm") / "dynamo-platform"


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file of the charts, with what should be in it."""
    return {root / CHART / "files" / "rights.yaml": rights.page()}
