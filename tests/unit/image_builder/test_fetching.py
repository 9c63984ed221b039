"""Downloads of archives over connections that break."""

import asyncio
import hashlib
import io
import tarfile
import threading
import time
import urllib.error
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from pathlib import Path

import pytest
from dynamo_image_builder import fetch
from dynamo_image_builder.archives import ArchiveFinder
from dynamo_image_builder.builds import BentoTag
from dynamo_image_builder.fetch import ArchiveSource, FetchError, download, find, main
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from tests.building.http_server import Handler, served
from tests.building.python_versions import UNPACKS

LIMIT = 1 << 20


def packed() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = 6
        archive.addfile(entry, io.BytesIO(b"FROM a"))
    return buffer.getvalue()


CONTENT = packed()
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


@contextmanager
def store(breaks: int) -> Iterator[str]:
    """A store whose first connections break in the middle of the archive."""
    left = [breaks]

    class Answers(Handler):
        def reply(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if not left[0] else CONTENT[: len(CONTENT) // 2])
            left[0] -= bool(left[0])

    with served(Answers) as address:
        yield f"http://{address}"


def test_half_an_archive_is_not_accepted() -> None:
    """Python's client treats the end of a connection as the end of the content, whatever length was announced."""
    with store(breaks=1) as url:
        source = ArchiveSource(url, "a", "b")
        with pytest.raises(FetchError) as broken:
            find(source, LIMIT, 5.0)
        assert (broken.value.reason, broken.value.temporary) == ("StoreUnreachable", True)
        assert find(source, LIMIT, 5.0).digest == DIGEST


@UNPACKS
@pytest.mark.parametrize(("breaks", "code"), [(0, 0), (2, 0), (100, 1)])
def test_the_pod_of_a_build_retries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: int, code: int) -> None:
    """Its Job does not run again, so one broken connection ended the build."""
    monkeypatch.setattr(fetch, "PAUSE", 0.0)
    with store(breaks) as url:
        variables = {
            "WORKSPACE": str(tmp_path),
            "TERMINATION_LOG": str(tmp_path / "log"),
            "ARCHIVE_ENDPOINT": url,
            "ARCHIVE_NAME": "a",
            "ARCHIVE_VERSION": "b",
            "ARCHIVE_DIGEST": DIGEST,
            "ARCHIVE_LIMIT": str(LIMIT),
            "ARCHIVE_TIMEOUT": "5",
        }
        assert main(variables) == code
    if code:
        assert (tmp_path / "log").read_text().startswith("StoreUnreachable: ")
    else:
        assert (tmp_path / "context" / "Dockerfile").read_text() == "FROM a"


def test_credentials_of_a_registry_with_tls_are_not_sent_without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def get(url: str, authorization: str, _: str) -> None:
        asked.append(authorization)
        headers = Message()
        headers["WWW-Authenticate"] = 'Bearer realm="http://token.test/", service="r"'
        raise urllib.error.HTTPError(url, 401, "", headers, io.BytesIO())

    monkeypatch.setattr(fetch, "_get", get)
    source = ArchiveSource("oci://registry.test", "a", "1", "user", "secret")
    with pytest.raises(FetchError, match="does not name a realm for tokens with https://: Bearer realm="):
        find(source, LIMIT, 60.0)
    assert len(asked) == 1


def test_a_full_disk_is_not_reported_as_an_error_of_the_store() -> None:
    with store(breaks=0) as url, pytest.raises(FetchError) as full:
        download(ArchiveSource(url, "a", "b"), DIGEST, LIMIT, Path("/dev/full"), 5.0)
    assert (full.value.reason, full.value.temporary) == ("WorkspaceFull", False)


@contextmanager
def answering(answer: Callable[[str], tuple[int, str, str]], asked: list[str | None]) -> Iterator[str]:
    """A server that answers each path with a code and a header, and records the received credentials."""

    class Answers(Handler):
        def reply(self) -> None:
            asked.append(self.headers["Authorization"])
            code, header, value = answer(self.path)
            self.answer(code, **{header: value})

    with served(Answers) as address:
        yield f"http://{address}"


def test_credentials_are_not_sent_to_the_target_of_a_redirect() -> None:
    places: list[str] = []
    asked: list[str | None] = []

    def elsewhere(_: str) -> tuple[int, str, str]:
        return 401, "WWW-Authenticate", f'Bearer realm="{places[0]}/token"'

    with answering(elsewhere, asked) as other, answering(lambda _: (302, "Location", f"{other}/blob"), []) as url:
        places.append(other)
        with pytest.raises(FetchError) as refused:
            find(ArchiveSource(url.replace("http", "oci+http"), "a", "b", "robot", "word"), LIMIT, 5.0)
    assert refused.value.reason == "ArchiveDenied"
    assert asked == [None]


def test_an_archive_announced_as_too_large_is_not_read() -> None:
    """It is requested every half minute until it is smaller."""
    with slow_store(pause=60.0) as (url, _), pytest.raises(FetchError) as refused:
        find(ArchiveSource(url, "a", "b"), len(CONTENT) - 1, 5.0)
    assert refused.value.reason == "ArchiveTooLarge"


@contextmanager
def slow_store(pause: float) -> Iterator[tuple[str, threading.Event]]:
    """A store that sends a byte after each pause, and an event that ends it."""
    ended = threading.Event()

    class Answers(Handler):
        def reply(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            with suppress(OSError):
                for each in CONTENT:
                    self.wfile.write(bytes([each]))
                    if ended.wait(pause):
                        break

    with served(Answers) as address:
        timer = threading.Timer(5.0, ended.set)
        timer.start()
        try:
            yield f"http://{address}", ended
        finally:
            timer.cancel()
            ended.set()


def test_a_slow_store_does_not_exceed_the_deadline() -> None:
    """A byte now and then keeps the connection alive."""
    with slow_store(0.02) as (url, ended):
        with pytest.raises(FetchError) as caught:
            find(ArchiveSource(url, "a", "1"), LIMIT, 0.1)
        late = ended.is_set()
    assert (caught.value.reason, late) == ("StoreSlow", False)


async def test_a_slow_registry_does_not_exceed_the_deadline() -> None:
    """The builder waited for its manifest without end, in one of the four slots of its namespace."""
    with slow_store(0.02) as (url, ended):
        store = {"endpoint": url.replace("http://", "oci+http://")}
        archives = ArchiveFinder(ImageBuilder.model_validate({"store": store, "archiveTimeout": 0.1}))
        with pytest.raises(FetchError) as caught:
            await archives.find(BentoTag("a", "1"))
        late = ended.is_set()
    assert (caught.value.reason, caught.value.temporary, late) == ("StoreSlow", True, False)


@pytest.mark.parametrize("pause", [0.02, 60.0])
def test_a_process_that_stops_does_not_wait_for_a_store(pause: float) -> None:
    """A slow store took the whole `archiveTimeout`, five minutes, after which no caller waited for its answer."""

    async def cancelled(url: str) -> None:
        archives = ArchiveFinder(ImageBuilder.model_validate({"store": {"endpoint": url}}))
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await archives.find(BentoTag("a", "1"))

    with slow_store(pause) as (url, ended):
        asyncio.run(cancelled(url))
        late = ended.is_set()
        if pause < 1:
            deadline = time.monotonic() + 30
            while (left := _readers()) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not left, "the thread reads no more"
    assert not late


def _readers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("archive")]
