"""The source from which a program is obtained, and the error if no source has it."""

import asyncio
import contextlib
import fcntl
from pathlib import Path
from unittest.mock import AsyncMock

import pytest
from dynamo_devcluster import ChecksumMismatchError, Programs, ProgramUnavailableError
from dynamo_devcluster.__main__ import fetch, main
from dynamo_devcluster.cache import ProgramCache, default_cache_root
from dynamo_devcluster.catalog import CONTROL_PLANE, ETCD, KUBE_APISERVER, KUBECTL, PROGRAMS, Program, parse_version
from dynamo_devcluster.options import ControlPlaneOptions
from dynamo_devcluster.progress import Progress
from dynamo_devcluster.sources import CacheSource, InstalledSource, NotAvailableError


class Fake:
    def __init__(self, answer: Path | str | Exception, calls: list[str] | None = None, name: str = "") -> None:
        self.answer, self.calls, self.name = answer, calls if calls is not None else [], name

    async def find(self, program: Program, progress: Progress) -> Path:
        self.calls.append(self.name)
        if isinstance(self.answer, Exception):
            raise self.answer
        if isinstance(self.answer, str):
            raise NotAvailableError(self.answer)
        return self.answer


class Maker:
    """A slow source that counts its calls."""

    def __init__(self, cache: ProgramCache) -> None:
        self.cache, self.made = cache, 0

    async def find(self, program: Program, progress: Progress) -> Path:
        self.made += 1
        await asyncio.sleep(0.3)
        with self.cache.staging(program) as folder:
            (folder / "out").write_text("#!/bin/sh\n")
            return self.cache.install(program, folder / "out")


def script(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)
    return path


async def test_the_first_source_with_the_program_is_used(tmp_path: Path) -> None:
    calls: list[str] = []
    local = [Fake("no", calls, "installed"), Fake(tmp_path / "etcd", calls, "cache"), Fake("no", calls, "package")]
    programs = Programs(cache=ProgramCache(tmp_path), local=local, fetching=[Fake("no", calls, "build")])
    assert await programs.obtain("etcd") == tmp_path / "etcd"
    assert await programs.obtain("etcd") == tmp_path / "etcd"
    assert calls == ["installed", "cache"], "asked once, and no further than needed"


async def test_a_missing_program_is_reported_with_every_reason_and_advice(tmp_path: Path) -> None:
    programs = Programs(
        cache=ProgramCache(tmp_path), local=[Fake("not on PATH")], fetching=[Fake("no network"), Fake("no Go")]
    )
    with pytest.raises(ProgramUnavailableError) as caught:
        await programs.obtain("etcd")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("etcd (>= 3.6, < 4.0)", "not on PATH; no network; no Go", "KUBEBUILDER_ASSETS", "compose.yaml"):
        assert part in message


async def test_a_wrong_checksum_is_not_a_reason_to_try_the_next_source(tmp_path: Path) -> None:
    calls: list[str] = []
    programs = Programs(
        cache=ProgramCache(tmp_path), local=[], fetching=[Fake(ChecksumMismatchError("bad")), Fake("", calls, "build")]
    )
    with pytest.raises(ChecksumMismatchError):
        await programs.obtain("etcd")
    assert calls == []


async def test_an_unknown_program_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(
        ProgramUnavailableError, match="'minikube' is not a program of a local cluster; use one of etcd"
    ):
        await Programs(cache=ProgramCache(tmp_path)).obtain("minikube")


async def test_concurrent_requests_build_once(tmp_path: Path) -> None:
    maker = Maker(ProgramCache(tmp_path))
    first, second = (Programs(cache=ProgramCache(tmp_path), local=[], fetching=[maker]) for _ in range(2))
    paths = await asyncio.gather(first.obtain("kwok"), second.obtain("kwok"))
    assert maker.made == 1
    assert paths[0] == paths[1]


def test_a_folder_that_cannot_be_created_is_a_line_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "file").touch()
    monkeypatch.setattr(Programs, "obtain_all", AsyncMock(return_value={}))
    assert main(["--dir", str(file / "inside")]) == 1
    assert capsys.readouterr().err == f"[Errno 20] Not a directory: '{file}/inside'\n"


async def test_a_wait_for_another_process_is_shown_until_its_end(tmp_path: Path) -> None:
    shown: list[tuple[str, str]] = []

    class Shown(Progress):
        def started(self, step: str) -> None:
            shown.append(("started", step))
            other.close()

        def finished(self, step: str, seconds: float) -> None:
            shown.append(("finished", step))

    cache, other = ProgramCache(tmp_path), contextlib.ExitStack()
    (tmp_path / "locks").mkdir()
    other.enter_context(lock := (tmp_path / "locks" / f"{ETCD.file_name}.lock").open("a"))
    fcntl.flock(lock, fcntl.LOCK_EX)
    programs = Programs(Shown(), cache, local=[Fake("no")], fetching=[Fake(tmp_path / "etcd")])
    assert await programs.obtain("etcd") == tmp_path / "etcd"
    step = "waiting for another process that obtains etcd"
    assert shown == [("started", step), ("finished", step)]


async def test_assets_come_before_path(tmp_path: Path) -> None:
    good = script(tmp_path / "assets", "etcd", "etcd Version: 3.6.7")
    script(tmp_path / "path", "etcd", "etcd Version: 3.6.1")
    environ = {"KUBEBUILDER_ASSETS": str(good.parent), "PATH": str(tmp_path / "path")}
    assert await InstalledSource(environ).find(ETCD, Progress()) == good


async def test_an_unsuitable_version_is_skipped(tmp_path: Path) -> None:
    script(tmp_path / "assets", "etcd", "etcd Version: 3.5.1")
    good = script(tmp_path / "path", "etcd", "etcd Version: 3.6.1")
    environ = {"KUBEBUILDER_ASSETS": str(tmp_path / "assets"), "PATH": str(good.parent)}
    assert await InstalledSource(environ).find(ETCD, Progress()) == good
    with pytest.raises(NotAvailableError, match=r"assets/etcd \(KUBEBUILDER_ASSETS\) has version 3\.5\.1"):
        await InstalledSource({"KUBEBUILDER_ASSETS": str(tmp_path / "assets")}).find(ETCD, Progress())
    chosen = InstalledSource({**environ, "DYNAMO_ANY_VERSION": "1"})
    assert await chosen.find(ETCD, Progress()) == tmp_path / "assets" / "etcd"


@pytest.mark.parametrize(
    ("output", "version"),
    [
        ("etcd Version: 3.6.6\nGit SHA: a1b2c3\nGo Version: go1.24.10", (3, 6, 6)),
        ("Kubernetes v1.35.4", (1, 35, 4)),
        ("Client Version: v1.32.4-dispatcher\nKustomize Version: v5.5.0", (1, 32, 4)),
        ("nats-server: v2.15.1", (2, 15, 1)),
        ("kwok version v0.7.0 go1.26.0 (linux/amd64)", (0, 7, 0)),
        ("Kubernetes v0.0.0-master+$Format:%H$", (0, 0, 0)),
        ("", None),
        ("usage: etcd", None),
    ],
)
def test_versions_are_parsed(output: str, version: tuple[int, int, int] | None) -> None:
    assert parse_version(output) == version


@pytest.mark.parametrize(
    ("program", "version", "accepted"),
    [
        (KUBE_APISERVER, (1, 35, 0), True),
        (KUBE_APISERVER, (1, 34, 9), False),
        (KUBE_APISERVER, (1, 36, 0), False),
        (KUBECTL, (1, 30, 0), True),
        (KUBECTL, (1, 29, 9), False),
        (KUBECTL, (1, 36, 0), True),
        (ETCD, (3, 5, 26), False),
        (ETCD, (3, 6, 0), True),
        (ETCD, None, False),
    ],
)
def test_suitable_versions_are_accepted(program: Program, version: tuple[int, int, int] | None, accepted: bool) -> None:
    assert program.accepts(version) is accepted


def test_every_pinned_version_is_suitable() -> None:
    for program in PROGRAMS.values():
        assert program.accepts(parse_version(program.version)), program.name


async def test_an_interrupted_build_leaves_no_file(tmp_path: Path) -> None:
    cache = ProgramCache(tmp_path)
    with contextlib.suppress(KeyboardInterrupt), cache.staging(ETCD) as folder:
        (folder / "half").write_text("half")
        raise KeyboardInterrupt
    assert list((tmp_path / "bin").iterdir()) == []
    with pytest.raises(NotAvailableError):
        await CacheSource(cache).find(ETCD, Progress())


def test_the_cache_directory_follows_the_environment() -> None:
    assert default_cache_root({"XDG_CACHE_HOME": "/c"}) == Path("/c/dynamo-platform")
    assert default_cache_root({}) == Path.home() / ".cache" / "dynamo-platform"


def test_only_the_requested_programs_are_obtained() -> None:
    bare = ControlPlaneOptions(controller_manager=False, scheduler=False, kwok_nodes=0)
    assert bare.programs == ("etcd", "kube-apiserver")
    assert set(ControlPlaneOptions().programs) == set(CONTROL_PLANE) - {"kubectl", "nats-server"}


async def test_optional_programs_may_be_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class ButOne:
        async def find(self, program: Program, progress: Progress) -> Path:
            if program.name == without:
                raise NotAvailableError("no Go")
            return tmp_path / program.name

    programs = Programs(cache=ProgramCache(tmp_path), local=[ButOne()], fetching=[])
    without = "cert-manager"
    assert set(await programs.obtain_all()) == set(CONTROL_PLANE)
    assert await fetch(programs) == 0
    assert "cert-manager: skipped, with the tests that need it: cert-manager (" in capsys.readouterr().out
    without = "etcd"
    with pytest.raises(ProgramUnavailableError):
        await fetch(Programs(cache=ProgramCache(tmp_path), local=[ButOne()], fetching=[]))
