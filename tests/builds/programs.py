"""BuildKit and a registry, built from their Go modules into the cache of the local cluster's programs."""

from pathlib import Path

from dynamo_devcluster.cache import ProgramCache
from dynamo_devcluster.catalog import GoPackage, Program
from dynamo_devcluster.gobuild import GoBuildSource
from dynamo_devcluster.progress import Progress

GO = Path(__file__).parent / "go"
BUILDKIT, REGISTRY = "0.25.0", "3.0.0"


def _program(name: str, version: str, package: GoPackage) -> Program:
    return Program(name, version, at_least=(0, 0, 0), below=(99, 0, 0), go=package)


PROGRAMS = (
    _program("buildctl", BUILDKIT, GoPackage("buildkit", "github.com/moby/buildkit/cmd/buildctl", "-s -w")),
    _program("buildkitd", BUILDKIT, GoPackage("buildkit", "github.com/moby/buildkit/cmd/buildkitd", "-s -w")),
    _program(
        "registry", REGISTRY, GoPackage("registry", "github.com/distribution/distribution/v3/cmd/registry", "-s -w")
    ),
)


async def obtain(progress: Progress | None = None) -> dict[str, Path]:
    """The programs by name. Each takes minutes the first time; NotAvailableError without Go or a module proxy."""
    cache, shown = ProgramCache(), progress or Progress()
    source, result = GoBuildSource(cache, folder=GO), {}
    for program in PROGRAMS:
        step = f"waiting for another process that builds {program.name}"
        async with cache.lock(program, lambda step=step: shown.started(step)):  # type: ignore[misc]
            result[program.name] = cache.get(program) or await source.find(program, shown)
    return result
