"""The table of values in a chart's README is generated from the comments of the values."""

from pathlib import Path

import pytest

from tools.generate.charts.values import readme

VALUES = """\
# -- How many.
replicas: 2
image:
  # -- Where from.
  registry: example
  tag: "1"
"""


def test_a_value_without_a_description_is_refused(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(VALUES)
    with pytest.raises(ValueError, match=r"no comment describes image\.tag"):
        readme(tmp_path, "# A chart")


def test_described_values_are_in_a_table(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text(VALUES.replace('  tag: "1"\n', ""))
    assert '| `image.registry` | `"example"` | Where from. |' in readme(tmp_path, "# A chart")
