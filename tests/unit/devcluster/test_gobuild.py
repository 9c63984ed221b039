"""The progress of a build, with a fake Go that lists the packages in its build cache."""

from pathlib import Path

from dynamo_devcluster.cache import ProgramCache
from dynamo_devcluster.catalog import ETCD
from dynamo_devcluster.gobuild import GoBuildSource
from dynamo_devcluster.progress import Progress

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
