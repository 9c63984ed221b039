"""Builds of Go programs: pinned versions, the environment, and the progress, with a fake Go."""

from pathlib import Path

import pytest
from dynamo_devcluster.cache import ProgramCache
from dynamo_devcluster.catalog import ETCD, GO_MINIMUM, PROGRAMS
from dynamo_devcluster.gobuild import GO_FOLDER, GoBuildSource, go_environment
from dynamo_devcluster.progress import Progress
from dynamo_devcluster.sources import NotAvailableError

#: Lists two packages of three as not built yet, where it is asked for these alone with the flags of the build.
GO = """#!/bin/sh
case "$*" in
"env GOVERSION") echo go1.99.0 ;;
"list -mod=readonly -buildvcs=false -trimpath -deps -f {{if .Stale}}"*) printf 'example.com/b\\n\\nexample.com/c\\n' ;;
list*) printf 'example.com/a\\nexample.com/b\\nexample.com/c\\n' ;;
build*)
    echo example.com/b >&2
    echo example.com/c >&2
    while [ "$1" != -o ]; do shift; done
    echo program > "$2"
    ;;
esac
"""


class Counts(Progress):
    def __init__(self) -> None:
        self.reported: list[tuple[int, int, str]] = []

    def advanced(self, step: str, done: int, total: int, unit: str) -> None:
        self.reported.append((done, total, unit))


async def test_cached_packages_are_not_counted(tmp_path: Path) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    counts = Counts()
    source = GoBuildSource(ProgramCache(tmp_path / "cache"), {"PATH": f"{go.parent}:/usr/bin:/bin"})

    built = await source.find(ETCD, counts)

    assert built.read_text() == "program\n"
    assert counts.reported == [(1, 2, "packages compiled"), (2, 2, "packages compiled")]


def test_go_mod_files_have_the_pinned_versions() -> None:
    for program in PROGRAMS.values():
        if program.go is None:
            continue
        folder = GO_FOLDER / program.go.folder
        module = (folder / "go.mod").read_text()
        if "require" in module:
            assert f"v{program.version}" in module
            assert (folder / "go.sum").stat().st_size > 0
        assert program.go.package in module
        assert f"\ngo {'.'.join(map(str, GO_MINIMUM))}\n" in module
        assert "\ntoolchain " not in module


def test_go_settings_of_the_user_do_not_change_a_build() -> None:
    environment = go_environment((1, 26, 1), {"GOFLAGS": "-mod=mod", "GOWORK": "x", "GOPROXY": "p"})
    assert (environment["GOFLAGS"], environment["GOWORK"], environment["GOPROXY"]) == ("", "off", "p")
    assert environment["GOTOOLCHAIN"] == "local"
    assert go_environment((1, 22, 0), {})["GOTOOLCHAIN"] == "auto"


@pytest.mark.parametrize(
    ("script", "match"),
    [
        (None, r"no Go toolchain is on PATH \(building needs Go 1\.25 or newer\)"),
        ("echo go1.19.8", r"is go1\.19\.8; Go 1\.25 or newer is needed"),
    ],
)
async def test_a_missing_or_old_go_is_reported(tmp_path: Path, script: str | None, match: str) -> None:
    if script is not None:
        (tmp_path / "go").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "go").chmod(0o755)
    with pytest.raises(NotAvailableError, match=match):
        await GoBuildSource(ProgramCache(tmp_path), {"PATH": str(tmp_path)}).find(ETCD, Progress())
