"""Archives are unpacked within limits, and only below their folder."""

import errno
import io
import json
import random
import tarfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from dynamo_image_builder import fetch
from dynamo_image_builder.fetch import FetchError, credentials, unpack

from tests.building.python_versions import UNPACKS

pytestmark = UNPACKS


def archive(folder: Path, files: dict[str, bytes], mode: str = "w:gz", links: dict[str, str] | None = None) -> Path:
    file = folder / "archive"
    with tarfile.open(file, mode) as written:  # type: ignore[call-overload]
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            written.addfile(entry)
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            written.addfile(entry, io.BytesIO(content))
    return file


def test_a_negative_size_does_not_enlarge_the_limit(tmp_path: Path) -> None:
    # The name is not valid text, and the message must be.
    entry = tarfile.TarInfo("x\udcff")
    entry.size = -(10**6)
    file = tmp_path / "archive"
    file.write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(FetchError) as caught:
        unpack(file, tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert caught.value.reason == "InvalidArchive"
    message = caught.value.message.encode().decode()
    # Newer Python, from 3.14 on, refuses the size itself.
    assert "-1000000 bytes" in message or "invalid offset" in message


def test_unpacked_members_are_dropped_from_memory_and_hard_links_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 members with long headers do not fit into the memory of the build's pod."""
    kept: list[int] = []
    file, extract = tmp_path / "archive", tarfile.TarFile.extract
    with tarfile.open(file, "w:gz") as written:
        for name in ("Dockerfile", *(f"src/{number}" for number in range(9))):
            written.addfile(tarfile.TarInfo(name), io.BytesIO())
        link = tarfile.TarInfo("src/again")
        link.type, link.linkname = tarfile.LNKTYPE, "src/0"
        written.addfile(link)

    def counted(archive: tarfile.TarFile, *arguments: Any, **options: Any) -> None:
        kept.append(len(archive.members))  # type: ignore[attr-defined]
        extract(archive, *arguments, **options)

    monkeypatch.setattr(tarfile.TarFile, "extract", counted)
    unpack(file, tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert kept == [0] * 11
    assert (tmp_path / "context" / "src" / "again").samefile(tmp_path / "context" / "src" / "0")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz"])
@pytest.mark.parametrize(
    ("files", "chosen"),
    [
        ({"env/docker/Dockerfile": b"FROM a", "Dockerfile": b"FROM b", "src/x.py": b"1"}, "FROM a"),
        ({"Dockerfile": b"FROM b", "src/x.py": b"1"}, "FROM b"),
    ],
)
def test_the_dockerfile_of_the_archive_is_used(tmp_path: Path, mode: str, files: dict[str, bytes], chosen: str) -> None:
    unpack(archive(tmp_path, files, mode), tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert (tmp_path / "dockerfile" / "Dockerfile").read_text() == chosen
    assert (tmp_path / "context" / "src" / "x.py").read_bytes() == b"1"


@pytest.mark.parametrize(
    ("files", "links", "reason"),
    [
        ({"x": b""}, {}, "NoDockerfile"),
        ({"Dockerfile": b"x" * 4001}, {}, "ArchiveTooLarge"),
        ({"../Dockerfile": b""}, {}, "InvalidArchive"),
        ({"out/passwd": b""}, {"out": "/etc"}, "InvalidArchive"),
        ({"out/x": b""}, {"out": "../.."}, "InvalidArchive"),
    ],
)
def test_an_unusable_archive_is_rejected(
    tmp_path: Path, files: dict[str, bytes], links: dict[str, str], reason: str
) -> None:
    with pytest.raises(FetchError) as refused:
        unpack(archive(tmp_path, files, links=links), tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert refused.value.reason == reason


def leading_out(folder: Path, target: str) -> Path:
    """An archive whose Dockerfile links to a file outside, with a longer path than Python before 3.13.4 checks."""
    long, steps, below = "d" * 247, "abcdefghijklmnop", ""
    file = folder / "archive"

    def add(name: str, linkname: str = "") -> None:
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = tarfile.SYMTYPE if linkname else tarfile.DIRTYPE, linkname
        written.addfile(entry)

    with tarfile.open(file, "w") as written:
        for step in steps:
            add(f"{below}{long}")
            add(f"{below}{step}", long)
            below += f"{long}/"
        up = f"{'/'.join(steps)}/{'l' * 254}"
        add(up, "../" * len(steps))
        add("Dockerfile", f"{up}/../{target}")
    return file


def test_a_dockerfile_outside_the_archive_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("password")
    with pytest.raises(FetchError) as refused:
        unpack(leading_out(tmp_path, "secret"), tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert refused.value.reason in {"NoDockerfile", "InvalidArchive"}
    assert not (tmp_path / "dockerfile").exists()


def test_a_dockerfile_may_be_a_link_within_the_archive(tmp_path: Path) -> None:
    file = archive(tmp_path, {"docker/file": b"FROM a"}, links={"Dockerfile": "docker/file"})
    unpack(file, tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert (tmp_path / "dockerfile" / "Dockerfile").read_text() == "FROM a"


def test_a_file_that_is_not_an_archive_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "archive").write_bytes(b"<html>")
    with pytest.raises(FetchError, match="is not a tar archive"):
        unpack(tmp_path / "archive", tmp_path / "context", tmp_path / "dockerfile", 1000)


def test_too_many_files_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "MAX_FILES", 2)
    with pytest.raises(FetchError, match="or 2 files"):
        unpack(archive(tmp_path, {"a": b"", "b": b"", "Dockerfile": b""}), tmp_path / "c", tmp_path / "d", 1000)


@pytest.mark.parametrize(
    ("server", "key"),
    [("r.example.com:5000/team", "r.example.com:5000"), ("docker.io/team", "https://index.docker.io/v1/")],
)
def test_credentials_belong_to_the_registry(server: str, key: str) -> None:
    assert json.loads(credentials(server, "robot", "word")) == {"auths": {key: {"auth": "cm9ib3Q6d29yZA=="}}}


@pytest.mark.parametrize("mode", ["w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("cut", [False, True])
def test_a_damaged_archive_is_rejected(tmp_path: Path, mode: str, cut: bool) -> None:
    """Wherever the damage is: each compression has its own errors."""
    noise = random.Random(7).randbytes(20_000)
    content = archive(tmp_path, {"Dockerfile": b"FROM a", "noise": noise}, mode).read_bytes()
    for place in range(0, len(content), len(content) // 40):
        damaged = content[:place] if cut else content[:place] + b"\xff\x00\xff" + content[place + 3 :]
        (tmp_path / "damaged").write_bytes(damaged)
        with suppress(FetchError):
            unpack(tmp_path / "damaged", tmp_path / f"context{place}", tmp_path / "dockerfile", 1_000_000)


@pytest.mark.parametrize("headers", [{"path": "a\0b"}, {"mtime": "1e30"}], ids=["name", "time"])
def test_impossible_file_attributes_are_rejected(tmp_path: Path, headers: dict[str, str]) -> None:
    file = tmp_path / "archive"
    with tarfile.open(file, "w", format=tarfile.PAX_FORMAT) as written:
        entry = tarfile.TarInfo("x")
        entry.pax_headers = headers
        written.addfile(entry)
    with pytest.raises(FetchError) as refused:
        unpack(file, tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert refused.value.reason == "InvalidArchive"


def test_a_full_disk_is_not_reported_as_an_error_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    file = tmp_path / "archive"
    with tarfile.open(file, "w") as written:
        written.addfile(tarfile.TarInfo("x"))
    with pytest.raises(FetchError) as refused:
        unpack(file, tmp_path / "context", tmp_path / "dockerfile", 1000)
    assert refused.value.reason == "WorkspaceFull"
