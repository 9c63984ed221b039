"""`python -m tests.charts.freeze`: archive both charts as released, for the tests of upgrades.

There is one archive of each version, and it never changes.
"""

import gzip
import io
import sys
import tarfile
from pathlib import Path

import yaml

from tests.charts.helm import CRDS, PLATFORM

FOLDER = Path(__file__).parent / "frozen"
#: Files that an upgrade does not need: the values that tests render, and documents.
LEFT_OUT = ("ci", "README.md", "dashboards")


def frozen(chart: Path) -> list[Path]:
    """The frozen versions of a chart, the oldest first."""
    result = FOLDER.glob(f"{chart.name}-*.tgz")
    return sorted(result, key=lambda path: _numbers(path.name.removeprefix(f"{chart.name}-").removesuffix(".tgz")))


def version_of(chart: Path) -> str:
    """The version that a chart has now."""
    return str(yaml.safe_load((chart / "Chart.yaml").read_text())["version"])


def freeze(chart: Path) -> Path:
    """Write the archive of a chart's version. FileExistsError where it was released before."""
    target = FOLDER / f"{chart.name}-{version_of(chart)}.tgz"
    FOLDER.mkdir(exist_ok=True)
    with target.open("xb") as file:
        file.write(archive(chart))
    return target


def archive(chart: Path) -> bytes:
    """A chart as Helm takes it; the same chart gives the same bytes."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(chart.rglob("*")):
            relative = path.relative_to(chart)
            if path.is_file() and not set(relative.parts) & set(LEFT_OUT):
                entry = tarfile.TarInfo(f"{chart.name}/{relative}")
                entry.size, entry.mode = path.stat().st_size, 0o644
                with path.open("rb") as file:
                    tar.addfile(entry, file)
    return gzip.compress(content.getvalue(), mtime=0)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.partition("-")[0].split("."))


if __name__ == "__main__":
    for each in (PLATFORM, CRDS):
        sys.stdout.write(f"{freeze(each)}\n")
