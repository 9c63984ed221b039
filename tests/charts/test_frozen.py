"""Released versions of the charts never change, and each can be upgraded in place to the current one."""

import gzip
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.charts import helm
from tests.charts.freeze import archive, frozen, version_of

each_chart = pytest.mark.parametrize("chart", [helm.PLATFORM, helm.CRDS], ids=lambda path: path.name)
#: Fields that the API server treats as immutable.
FIXED: dict[str, tuple[str, ...]] = {
    "Deployment": ("selector",),
    "StatefulSet": ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
}


@each_chart
def test_a_released_version_never_changes(chart: Path) -> None:
    released = frozen(chart)
    assert released, "no version is frozen: python -m tests.charts.freeze"
    same = [path for path in released if path.name == f"{chart.name}-{version_of(chart)}.tgz"]
    for path in same:
        # Compare unpacked content: other builds of zlib compress differently.
        unchanged = gzip.decompress(path.read_bytes()) == gzip.decompress(archive(chart))
        assert unchanged, f"{path.stem} is released: raise the version in Chart.yaml"
    if not same:
        assert _numbers(version_of(chart)) > _numbers(released[-1].stem.rpartition("-")[2])


@pytest.mark.parametrize("path", frozen(helm.PLATFORM), ids=lambda path: path.stem)
def test_immutable_fields_equal_those_of_the_released_version(path: Path) -> None:
    before, after = (_fixed(helm.objects(chart=each)) for each in (path, helm.PLATFORM))
    assert before, "nothing is compared"
    assert {name: after.get(name) for name in before} == before


@pytest.mark.parametrize("path", frozen(helm.PLATFORM), ids=lambda path: path.stem)
def test_values_of_a_released_version_are_accepted(path: Path, tmp_path: Path) -> None:
    """`helm upgrade --reuse-values` passes all of them to the new chart."""
    with tarfile.open(path) as tar:
        member = tar.extractfile("dynamo-platform/values.yaml")
        assert member is not None
        values = tmp_path / "values.yaml"
        values.write_bytes(member.read())
    helm.template("--values", values)


def _fixed(objects: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    return {
        f"{each['kind']} {each['metadata']['name']}": {field: each["spec"].get(field) for field in FIXED[each["kind"]]}
        for each in helm.of_kind(objects, *FIXED)
    }


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
