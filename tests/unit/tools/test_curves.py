"""Curves: each column a panel, with its points where its figures put them."""

from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import curves
from tools.curves import Chart

DIAGRAMS = import_module("tools.pictures")
TEXT = "graphs,seconds,KiB a graph\n100,1,\n1000,3,80\n10000,2,60\ngoal,,100\n"


def test_columns_become_panels() -> None:
    assert curves.read(TEXT) == (
        "graphs",
        [Chart("seconds", ((100, 1), (1000, 3), (10000, 2))), Chart("KiB a graph", ((1000, 80), (10000, 60)), 100)],
    )


def test_values_that_are_not_numbers_are_rejected() -> None:
    with pytest.raises(ValueError, match="soon"):
        curves.read("graphs,seconds\n100,soon\n")


def test_points_are_at_their_values(tmp_path: Path) -> None:
    source = tmp_path / "size.csv"
    source.write_text(TEXT)
    root = ElementTree.fromstring(curves.draw(source))
    first, second = root.findall("{*}g")
    circles = [each for each in first.iter() if each.get("cx")]
    across, up = ([float(each.get(name, "")) for each in circles] for name in ("cx", "cy"))
    assert across[1] - across[0] == pytest.approx(across[2] - across[1], abs=0.2)
    # Above is less: 3, 2, 1 from the top.
    assert up[1] < up[2] < up[0]
    words = [each.text for each in second.iter() if each.text and each.text.strip()]
    assert {"KiB a graph", "80", "60", "goal 100", "1,000", "10,000", "graphs"} <= set(words)


def test_a_diagram_is_outdated_if_its_data_changed(tmp_path: Path) -> None:
    source = tmp_path / "size.csv"
    source.write_text(TEXT)
    assert DIAGRAMS.outdated(tmp_path) == [source]
    DIAGRAMS.draw(source, "")
    assert DIAGRAMS.outdated(tmp_path) == []
    source.write_text(TEXT.replace("80", "70"))
    assert DIAGRAMS.outdated(tmp_path) == [source]
