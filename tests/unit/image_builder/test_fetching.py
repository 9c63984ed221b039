"""Archives over connections that break."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from dynamo_image_builder import fetch
from dynamo_image_builder.fetch import ArchiveSource, FetchError, download, find, main

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

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            self.wfile.write(CONTENT if not left[0] else CONTENT[: len(CONTENT) // 2])
            left[0] -= bool(left[0])

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_half_an_archive_is_not_taken() -> None:
    """Python's client takes the end of a connection for the end of the content, whatever length was announced."""
    with store(breaks=1) as url:
        source = ArchiveSource(url, "a", "b")
        with pytest.raises(FetchError) as broken:
            find(source, LIMIT, 5.0)
        assert (broken.value.reason, broken.value.temporary) == ("StoreUnreachable", True)
        assert find(source, LIMIT, 5.0).digest == DIGEST


@pytest.mark.parametrize(("breaks", "code"), [(0, 0), (2, 0), (100, 1)])
def test_the_pod_of_a_build_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: int, code: int
) -> None:
    """Its Job is not run again, so that one broken connection was the end of the build."""
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


def test_a_full_disk_is_not_the_stores_fault() -> None:
    with store(breaks=0) as url, pytest.raises(FetchError) as full:
        download(ArchiveSource(url, "a", "b"), DIGEST, LIMIT, Path("/dev/full"), 5.0)
    assert (full.value.reason, full.value.temporary) == ("WorkspaceFull", False)


def test_a_store_that_drips_does_not_pass_the_deadline() -> None:
    """A byte now and then keeps the connection alive."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(CONTENT)))
            self.end_headers()
            with suppress(OSError):
                for each in CONTENT:
                    self.wfile.write(bytes([each]))
                    if ended.wait(0.02):
                        break

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        timer = threading.Timer(5.0, ended.set)
        timer.start()
        try:
            source = ArchiveSource(f"http://127.0.0.1:{server.server_address[1]}", "a", "1")
            with pytest.raises(FetchError) as caught:
                find(source, LIMIT, 0.1)
        finally:
            late = ended.is_set()
            timer.cancel()
            ended.set()
            server.shutdown()
            thread.join()
    assert (caught.value.reason, late) == ("StoreSlow", False)
