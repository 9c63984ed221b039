"""What Helm prints after an installation. `helm template` leaves it out, so a copy of the chart has it in an object."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.charts import helm

PROMETHEUS = ("--api-versions", "monitoring.coreos.com/v1")
SCRAPED = ("--set", "metrics.graphPodMonitor.enabled=true")
OBJECT = '{kind: Printed, apiVersion: v1, metadata: {name: printed}, text: {{ tpl (.Files.Get "printed.txt") . | toJson }}}\n'


def printed(folder: Path, *arguments: str) -> str:
    """The text, with the values and the served APIs of `helm template`."""
    chart = folder / "chart"
    shutil.copytree(helm.PLATFORM, chart)
    shutil.copy(chart / "templates" / "NOTES.txt", chart / "printed.txt")
    (chart / "templates" / "printed.yaml").write_text(OBJECT, encoding="utf-8")
    made = yaml.load(helm.template("--show-only", "templates/printed.yaml", *arguments, chart=chart), helm.LOADER)
    text: str = made["text"]
    return text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [(PROMETHEUS, True), ((*PROMETHEUS, *SCRAPED), False), ((), False)],
    ids=["not scraped", "scraped", "no Prometheus"],
)
def test_graphs_that_prometheus_does_not_scrape_are_named(
    tmp_path: Path, arguments: tuple[str, ...], named: bool
) -> None:
    """In Dynamo's chart they are scraped where the Prometheus operator is; here a value switches it on."""
    assert ("set metrics.graphPodMonitor.enabled=true" in printed(tmp_path, *arguments)) is named
