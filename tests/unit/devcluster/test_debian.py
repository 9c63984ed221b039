"""Programs from Debian packages: which are accepted, and the reasons for refusing others."""

import dataclasses
from pathlib import Path

import pytest
from dynamo_devcluster import debian
from dynamo_devcluster.cache import ProgramCache
from dynamo_devcluster.catalog import PROGRAMS
from dynamo_devcluster.debian import DebianPackageSource
from dynamo_devcluster.progress import Progress
from dynamo_devcluster.sources import NotAvailableError

PROMETHEUS = PROGRAMS["prometheus"]
DOWNLOADS = ': > "$PWD/prometheus_1_amd64.deb"'


def unpacks(version: str, name: str = "prometheus") -> str:
    return f"""/bin/mkdir -p "$3/usr/bin"
printf '#!/bin/sh\\necho prometheus, version {version}\\n' > "$3/usr/bin/{name}"
/bin/chmod +x "$3/usr/bin/{name}\""""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A machine that has only these commands."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def has(**commands: str) -> ProgramCache:
        for name, script in commands.items():
            file = folder / name.replace("_", "-")
            file.write_text(f"#!/bin/sh\n{script}\n")
            file.chmod(0o755)
        return ProgramCache(tmp_path / "cache")

    return has


async def find(cache: ProgramCache, program=PROMETHEUS) -> Path:
    return await DebianPackageSource(cache).find(program, Progress())


async def test_a_package_is_unpacked_into_the_cache(machine):
    cache = machine(apt_get=DOWNLOADS, dpkg_deb=unpacks("2.53.1"))
    path = await find(cache)
    assert path == cache.get(PROMETHEUS)
    assert [each.name for each in (cache.root / "bin").iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("commands", "reason"),
    [
        ({}, "apt-get, which unpacks"),
        ({"apt_get": DOWNLOADS}, "dpkg-deb, which unpacks"),
        (
            {"apt_get": "echo E: Unable to locate >&2; exit 100", "dpkg_deb": ""},
            "Unable to locate .apt-get update may help",
        ),
        ({"apt_get": "", "dpkg_deb": ""}, "downloaded no package"),
        ({"apt_get": DOWNLOADS, "dpkg_deb": unpacks("2.53.1", "other")}, "has no /usr/bin/prometheus"),
        ({"apt_get": DOWNLOADS, "dpkg_deb": unpacks("1.8.2")}, "has version 1.8.2"),
    ],
)
async def test_a_missing_program_is_reported_with_the_reason(machine, commands, reason):
    cache = machine(**commands)
    with pytest.raises(NotAvailableError, match=reason):
        await find(cache)
    assert cache.get(PROMETHEUS) is None


async def test_a_hanging_download_is_cancelled(machine, monkeypatch):
    monkeypatch.setattr(debian, "_TIMEOUT_SECONDS", 0.2)
    cache = machine(apt_get="exec /bin/sleep 60", dpkg_deb="")
    with pytest.raises(NotAvailableError, match="did not end"):
        await find(cache)


async def test_programs_without_a_package_are_not_found(machine):
    with pytest.raises(NotAvailableError, match="no Debian package"):
        await find(machine(), dataclasses.replace(PROMETHEUS, debian_package=None))
