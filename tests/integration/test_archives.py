"""Archives are resolved and fetched over HTTP, from a store's routes and from a registry."""

import hashlib
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from dynamo_image_builder.archives import ArchiveFinder
from dynamo_image_builder.builds import BentoTag
from dynamo_image_builder.fetch import ArchiveSource, FetchError, download, find
from dynamo_image_builder.job import source
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from tests.building.python_versions import UNPACKS

from .archive_store import Store, archive_store

TAG = "frontend:v1"


def packed(dockerfile: str = "FROM scratch\n") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo("env/docker/Dockerfile")
        entry.size = len(dockerfile)
        archive.addfile(entry, io.BytesIO(dockerfile.encode()))
    return buffer.getvalue()


CONTENT = packed()
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@pytest.fixture
def store() -> Iterator[Store]:
    with archive_store() as running:
        running.archives[TAG] = CONTENT
        yield running


def of(store: Store, *, registry: bool = False, version: str = "v1", password: str = "") -> ArchiveSource:
    return ArchiveSource(
        store.registry if registry else store.url, "frontend", version, "robot" if password else "", password
    )


@pytest.mark.parametrize("old", [False, True])
def test_an_archive_is_fetched_from_a_route_of_a_store(store: Store, tmp_path: Path, old: bool) -> None:
    store.old = old
    result = find(of(store), 10_000, 30)
    assert (result.digest, result.size) == (DIGEST, len(CONTENT))
    download(of(store), DIGEST, 10_000, tmp_path / "a", 30)
    assert (tmp_path / "a").read_bytes() == CONTENT


@pytest.mark.parametrize("login", ["", "robot:word"])
def test_an_archive_is_fetched_from_the_only_layer_of_an_artifact(store: Store, tmp_path: Path, login: str) -> None:
    store.login = login
    where = of(store, registry=True, password=login.partition(":")[2])
    assert find(where, 10_000, 30).digest == DIGEST
    # Only the manifest is read, not the archive itself.
    assert not any("blobs" in path for path in store.paths)
    download(where, DIGEST, 10_000, tmp_path / "a", 30)
    assert (tmp_path / "a").read_bytes() == CONTENT
    assert any(path.startswith("/token?service=s&scope=pull") for path in store.paths) is bool(login)


@pytest.mark.parametrize("registry", [False, True])
def test_errors_say_why_an_archive_cannot_be_fetched(store: Store, tmp_path: Path, registry: bool) -> None:
    def refusal(version: str = "v1", limit: int = 10_000, password: str = "") -> tuple[str, bool]:
        with pytest.raises(FetchError) as refused:
            find(of(store, registry=registry, version=version, password=password), limit, 30)
        return refused.value.reason, refused.value.temporary

    assert refusal(version="v2") == ("ArchiveNotFound", False)
    assert refusal(limit=len(CONTENT) - 1) == ("ArchiveTooLarge", False)
    store.login = "robot:word"
    assert refusal(password="other") == ("ArchiveDenied", False)
    store.failing = 503
    assert refusal() == ("StoreFailed", True)
    store.failing = 418
    assert refusal() == ("StoreFailed", False)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (b"[" * 100_000, "StoreFailed"),
        (b"[]", "StoreFailed"),
        (b"<html>", "StoreFailed"),
        (b'{"layers": 1}', "InvalidArtifact"),
    ],
)
def test_an_invalid_manifest_is_rejected(store: Store, manifest: bytes, reason: str) -> None:
    store.manifest = manifest
    with pytest.raises(FetchError) as refused:
        find(of(store, registry=True), 10_000, 30)
    assert (refused.value.reason, refused.value.temporary) == (reason, reason == "StoreFailed")
    assert "reached" not in str(refused.value)


def test_an_archive_that_changed_is_not_built(store: Store, tmp_path: Path) -> None:
    store.archives[TAG] = packed("FROM other\n")
    with pytest.raises(FetchError) as refused:
        download(of(store), DIGEST, 10_000, tmp_path / "a", 30)
    assert refused.value.reason == "ArchiveChanged"


def test_an_unreachable_store_is_retried() -> None:
    with archive_store() as store:
        gone = of(store)
    with pytest.raises(FetchError) as refused:
        find(gone, 10_000, 30)
    assert (refused.value.reason, refused.value.temporary) == ("StoreUnreachable", True)


async def test_the_service_reads_the_password_from_its_file(store: Store, tmp_path: Path) -> None:
    store.login = "robot:word"
    (tmp_path / "password").write_text("word\n")
    where = {"endpoint": store.url, "username": "robot", "passwordFile": str(tmp_path / "password"), "secret": "s"}
    archives = ArchiveFinder(ImageBuilder.model_validate({"store": where}))
    assert (await archives.find(BentoTag("frontend", "v1"))).digest == DIGEST
    (tmp_path / "password").unlink()
    with pytest.raises(FetchError, match="passwordFile cannot be read"):
        await archives.find(BentoTag("frontend", "v1"))


def fetched(store: Store, workspace: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command of a build's init container."""
    environment = {
        "ARCHIVE_ENDPOINT": store.url,
        "ARCHIVE_NAME": "frontend",
        "ARCHIVE_VERSION": "v1",
        "ARCHIVE_DIGEST": DIGEST,
        "ARCHIVE_LIMIT": "10000",
        "ARCHIVE_TIMEOUT": "30",
        "WORKSPACE": str(workspace),
        "TERMINATION_LOG": str(workspace / "message"),
        **variables,
    }
    # Isolated: no package of the project is importable.
    command = [sys.executable, "-I", "-S", "-c", source("fetch.py")]
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=60)


@UNPACKS
def test_the_pod_of_a_build_fetches_with_only_the_standard_library(store: Store, tmp_path: Path) -> None:
    login = {"REGISTRY_SERVER": "r:5000", "REGISTRY_USERNAME": "robot", "REGISTRY_PASSWORD": "word"}
    ran = fetched(store, tmp_path, **login)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "context" / "env" / "docker" / "Dockerfile").read_text() == "FROM scratch\n"
    assert (tmp_path / "dockerfile" / "Dockerfile").read_text() == "FROM scratch\n"
    assert not (tmp_path / "archive").exists()
    assert "r:5000" in json.loads((tmp_path / "docker" / "config.json").read_text())["auths"]


def test_the_pod_of_a_build_says_why_it_has_no_archive(store: Store, tmp_path: Path) -> None:
    ran = fetched(store, tmp_path, ARCHIVE_VERSION="v2")
    assert ran.returncode == 1
    assert (tmp_path / "message").read_text().startswith("ArchiveNotFound: 127.0.0.1:")
