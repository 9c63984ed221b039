"""Downloads: only files with the published checksum get into the cache."""

import asyncio
import hashlib
import io
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dynamo_devcluster import ChecksumMismatchError
from dynamo_devcluster.cache import ProgramCache
from dynamo_devcluster.catalog import CONTROL_PLANE, ETCD, KUBE_APISERVER, KUBECTL, PROGRAMS, Program
from dynamo_devcluster.download import DownloadSource, Release, checksum_in, release_of
from dynamo_devcluster.ports import free_port
from dynamo_devcluster.progress import Progress
from dynamo_devcluster.sources import NotAvailableError

from tests.building.http_server import Handler, served

BINARY = b"#!/bin/sh\necho hello\n"


@pytest.fixture
def site() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A web server, and its pages by path."""
    pages: dict[str, bytes] = {}

    class Site(Handler):
        def reply(self) -> None:
            page = pages.get(self.path)
            self.send_response(200 if page is not None else 404)
            self.send_header("Content-Length", str(len(page or b"") + (self.path == "/cut")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(page or b"")

    with served(Site) as address:
        yield f"http://{address}", pages


def source(cache: ProgramCache, base: str, file: str, sums: str, member: str | None = None) -> DownloadSource:
    def locate(program: Program, system: str, machine: str) -> Release:
        return Release(f"{base}/{file}", f"{base}/{sums}", member)

    return DownloadSource(cache, locate)


async def test_a_verified_file_is_installed(tmp_path: Path, site: tuple[str, dict[str, bytes]]) -> None:
    base, pages = site
    pages["/etcd"] = BINARY
    pages["/etcd.sha256"] = hashlib.sha256(BINARY).hexdigest().encode()
    cache = ProgramCache(tmp_path)
    path = await source(cache, base, "etcd", "etcd.sha256").find(ETCD, Progress())
    assert path == cache.get(ETCD)
    assert path.read_bytes() == BINARY


async def test_a_cancelled_download_ends_quickly(tmp_path: Path) -> None:
    """After Ctrl-C, the process waits for its threads."""
    sent, ended, chunk, chunks = threading.Event(), threading.Event(), b"x" * (1 << 20), 200

    class Slow(Handler):
        def reply(self) -> None:
            self.send_response(200)
            is_sums = self.path == "/sums"
            self.send_header("Content-Length", "64" if is_sums else str(len(chunk) * chunks))
            self.end_headers()
            if is_sums or self.command == "HEAD":
                self.wfile.write(b"0" * 64 if is_sums else b"")
                return
            try:
                for _ in range(chunks):
                    self.wfile.write(chunk)
                    sent.set()
                    time.sleep(0.05)
            except OSError:
                ended.set()

    with served(Slow) as address:
        download = source(ProgramCache(tmp_path), f"http://{address}", "etcd", "sums").find(ETCD, Progress())
        task = asyncio.create_task(download)
        await asyncio.to_thread(sent.wait, 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await asyncio.to_thread(ended.wait, 5)


async def test_a_wrong_checksum_leaves_no_file(tmp_path: Path, site: tuple[str, dict[str, bytes]]) -> None:
    base, pages = site
    pages["/etcd"] = BINARY + b"evil"
    pages["/etcd.sha256"] = hashlib.sha256(BINARY).hexdigest().encode()
    cache = ProgramCache(tmp_path)
    with pytest.raises(ChecksumMismatchError, match="the download was discarded"):
        await source(cache, base, "etcd", "etcd.sha256").find(ETCD, Progress())
    assert list((tmp_path / "bin").iterdir()) == []


async def test_an_interrupted_download_uses_the_next_source(tmp_path: Path, site: tuple[str, dict[str, bytes]]) -> None:
    base, pages = site
    pages["/cut"], pages["/sums"] = BINARY, b"0" * 64
    with pytest.raises(NotAvailableError, match=f"the download ended after {len(BINARY)} of {len(BINARY) + 1} bytes"):
        await source(ProgramCache(tmp_path), base, "cut", "sums").find(ETCD, Progress())


@pytest.mark.parametrize(
    ("sums", "reason"),
    [
        (b"00  another\n11  file\n", "no checksum of etcd is published"),
        # What a proxy answers in place of the site.
        (b"{login", "the download from .* failed: Expecting property name"),
        (b"\xff\xd8", "the download from .* failed: 'utf-8' codec"),
    ],
)
async def test_a_file_without_a_checksum_is_rejected(
    tmp_path: Path, site: tuple[str, dict[str, bytes]], sums: bytes, reason: str
) -> None:
    base, pages = site
    pages["/etcd"], pages["/SHA256SUMS"] = BINARY, sums
    with pytest.raises(NotAvailableError, match=reason):
        await source(ProgramCache(tmp_path), base, "etcd", "SHA256SUMS").find(ETCD, Progress())


async def test_a_missing_file_uses_the_next_source(tmp_path: Path, site: tuple[str, dict[str, bytes]]) -> None:
    with pytest.raises(NotAvailableError, match="failed: HTTP Error 404"):
        await source(ProgramCache(tmp_path), site[0], "etcd", "sums").find(ETCD, Progress())


async def test_a_member_of_an_archive_is_extracted(tmp_path: Path, site: tuple[str, dict[str, bytes]]) -> None:
    base, pages = site
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("etcd-v3/etcd")
        entry.size = len(BINARY)
        archive.addfile(entry, io.BytesIO(BINARY))
    pages["/etcd.tar.gz"] = packed.getvalue()
    pages["/SHA256SUMS"] = f"{hashlib.sha256(packed.getvalue()).hexdigest()}  etcd.tar.gz\n00  x\n".encode()
    cache = ProgramCache(tmp_path)
    path = await source(cache, base, "etcd.tar.gz", "SHA256SUMS", "etcd-v3/etcd").find(ETCD, Progress())
    assert path.read_bytes() == BINARY
    with pytest.raises(NotAvailableError, match="has no other"):
        await source(cache, base, "etcd.tar.gz", "SHA256SUMS", "other").find(ETCD, Progress())


async def test_a_host_that_does_not_answer_is_probed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[str] = []

    def answers(url: str) -> bool:
        probed.append(url)
        return False

    monkeypatch.setattr("dynamo_devcluster.download._answers", answers)
    silent = source(ProgramCache(tmp_path), f"http://127.0.0.1:{free_port()}", "etcd", "sums")
    for _ in range(3):
        with pytest.raises(NotAvailableError, match="is not reachable"):
            await silent.find(ETCD, Progress())
    assert len(probed) == 1


@pytest.mark.parametrize(
    ("answer", "digest"),
    [
        ("ABCD\n", "abcd"),
        ("0123  other\nabcd  etcd\n", "abcd"),
        ("0123  other\nabcd *etcd\n", "abcd"),
        ('{"assets": [{"name": "etcd", "digest": "sha256:abcd"}]}', "abcd"),
        ('{"assets": [{"name": "etcd", "digest": null}]}', None),
        ("0123  other\n4567  more\n", None),
    ],
)
def test_all_checksum_formats_are_read(answer: str, digest: str | None) -> None:
    assert checksum_in(answer, "etcd") == digest


def test_every_required_program_has_a_release_for_linux() -> None:
    for name in (*CONTROL_PLANE, "helm"):
        program = PROGRAMS[name]
        release = release_of(program, "linux", "arm64")
        assert release is not None
        assert release.url.startswith("https://")
        assert "arm64" in release.url
        assert program.version in release.url


def test_servers_have_releases_only_for_linux() -> None:
    assert release_of(KUBE_APISERVER, "darwin", "arm64") is None
    assert release_of(KUBECTL, "darwin", "arm64") is not None
