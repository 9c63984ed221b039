"""What Helm prints after an installation. `helm template` omits it, so a copy of the chart renders it as an object."""

import shutil
from pathlib import Path

import pytest
import yaml

from tests.charts import helm

GROUP = ("--api-versions", "monitoring.coreos.com/v1")
PROMETHEUS = (*GROUP, "--api-versions", "monitoring.coreos.com/v1/PodMonitor")
ON, OFF = (("--set", f"metrics.graphPodMonitor.enabled={value}") for value in ("true", "false"))
LABELLED = ("--set", "metrics.graphPodMonitor.labels.release=prometheus")
OBJECT = '{kind: Printed, apiVersion: v1, metadata: {name: printed}, text: {{ tpl (.Files.Get "printed.txt") . | toJson }}}\n'
TEST = "helm test dynamo-platform -n dynamo-system --timeout 900s"


def printed(folder: Path, *arguments: str) -> str:
    """The printed text, for the given values and API versions of `helm template`."""
    chart = folder / "chart"
    shutil.copytree(helm.PLATFORM, chart)
    shutil.copy(chart / "templates" / "NOTES.txt", chart / "printed.txt")
    (chart / "templates" / "printed.yaml").write_text(OBJECT, encoding="utf-8")
    made = yaml.load(helm.template("--show-only", "templates/printed.yaml", *arguments, chart=chart), helm.LOADER)
    text: str = made["text"]
    return text


SELECTED, UNSCRAPED, ABSENT = (
    "set metrics.graphPodMonitor.labels",
    "metrics.graphPodMonitor.enabled is false",
    "does not serve monitoring.coreos.com/v1",
)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (PROMETHEUS, {SELECTED}),
        ((*PROMETHEUS, *LABELLED), set()),
        ((*PROMETHEUS, *OFF), {UNSCRAPED}),
        ((), set()),
        (ON, {SELECTED, ABSENT}),
    ],
    ids=["scraped", "selected by a label", "not scraped", "no Prometheus", "a PodMonitor without its API"],
)
def test_the_text_says_why_prometheus_does_not_scrape_graphs(
    tmp_path: Path, arguments: tuple[str, ...], named: set[str]
) -> None:
    text = printed(tmp_path, *arguments)
    assert {each for each in (SELECTED, UNSCRAPED, ABSENT) if each in text} == named


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("image.tag=v1", True),
        ("image.registry=r.example", False),
        ("global.imageRegistry=r", False),
        ("image.repository=r.example/a", False),
    ],
)
def test_the_text_warns_about_images_without_a_registry(tmp_path: Path, setting: str, named: bool) -> None:
    """No public registry has these images: with the default values, pods never start."""
    text = printed(tmp_path, "--set", setting)
    assert ("Nodes pull dynamo-platform:v1 from their runtime's default registry" in text) is named


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ("", {"conversion.serviceName=dynamo-platform-admission", TEST}),
        ("webhook.enabled=false,namespaces={team-a}", {"conversion.enabled=false", TEST}),
        ("tests.enabled=false", {"conversion.serviceName=dynamo-platform-admission"}),
    ],
)
def test_the_next_steps_depend_on_the_values(tmp_path: Path, settings: str, named: set[str]) -> None:
    """If the service that converts does not run, objects can neither be read nor written. Helm waits five minutes for a
    test, which may take ten, and the first pull of the image longer.
    """
    text = printed(tmp_path, "--set", settings)
    steps = ("conversion.serviceName=dynamo-platform-admission", "conversion.enabled=false", TEST)
    assert {each for each in steps if each in text} == named


@pytest.mark.parametrize(("monitor", "named"), [("true", False), ("false", True)])
def test_the_text_warns_about_alerts_without_their_metrics(tmp_path: Path, monitor: str, named: bool) -> None:
    """`absent` of the watcher's metric is an alert that wakes people up."""
    arguments = (*PROMETHEUS, "--set", f"metrics.rules.enabled=true,metrics.podMonitor.enabled={monitor}")
    assert ("DynamoNoActiveWatcher fires" in printed(tmp_path, *arguments)) is named


@pytest.mark.parametrize(
    ("arguments", "created"),
    [(PROMETHEUS, True), ((*PROMETHEUS, *OFF), False), ((), False), (GROUP, False), (ON, True)],
    ids=["served", "switched off", "not served", "only ServiceMonitors", "switched on"],
)
def test_graphs_are_scraped_if_the_cluster_serves_pod_monitors(arguments: tuple[str, ...], created: bool) -> None:
    """As in Dynamo's chart: without scraping, planners get no traffic figures."""
    objects = yaml.load_all(helm.template(*arguments), helm.LOADER)
    names = {each["metadata"]["name"] for each in objects if each and each["kind"] == "PodMonitor"}
    assert names == ({"dynamo-platform-graphs"} if created else set())
