"""The relay hands over what was measured, whatever the API server, or what is in front of it, answers at first."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from dynamo_profiler.requests.thorough import relay
from dynamo_shared.runtime.tls import self_signed_tls
from hypothesis import given
from hypothesis import strategies as st

WRITTEN = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


@pytest.fixture
def answers() -> list[bytes]:
    """What the server sends, one after the other."""
    return []


@pytest.fixture
def serving(answers: list[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[threading.Thread]:
    tls, listener = self_signed_tls(), socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while answers:
            plain, _ = listener.accept()
            with tls.wrap_socket(plain, server_side=True) as connection:
                received = b""
                while not received.endswith(b'"data": {"phase": "Done"}}'):
                    received += connection.recv(1 << 16)
                connection.sendall(answers.pop(0))

    thread = threading.Thread(target=serve, daemon=True)
    (tmp_path / "token").write_text("t")
    monkeypatch.setattr(relay, "ACCOUNT", tmp_path)
    monkeypatch.setattr(ssl, "create_default_context", lambda **_: ssl._create_unverified_context())
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(listener.getsockname()[1]))
    monkeypatch.setenv("RELAY_CONFIG_MAP", json.dumps({"metadata": {"namespace": "ns", "name": "c"}}))
    with listener:
        yield thread
        thread.join(10)


@pytest.mark.parametrize("first", [b"HT", b"<html>busy</html>\r\n", b"", b"HTTP/1.1 503 Busy\r\n\r\n"])
def test_a_failed_write_is_retried(serving: threading.Thread, answers: list[bytes], first: bytes) -> None:
    answers += [first, WRITTEN]
    serving.start()
    assert relay.deliver({"phase": "Done"}, 2)
    assert not answers


WORDS = st.sampled_from(["word", "it's", '"q"', "\n", " ", "\\", "a: b", "# c", "é", "\t", "\n\n", "✓"])


@given(st.text(max_size=100) | st.lists(WORDS, max_size=60).map(" ".join))
def test_a_status_of_any_length_is_read_as_written(message: str) -> None:
    """PyYAML folds what is longer than a line: of errors the first eighty characters were relayed, with half of the quotation."""
    written = {"status": "failed", "message": message, "outputs": {"final": "x", "more": ["y"]}, "phase": "Done"}
    reported = relay.status_of(yaml.safe_dump(written, sort_keys=False))
    assert reported == {"status": "failed", "message": message, "outputs": "", "phase": "Done"}


@pytest.mark.parametrize("escape", ["xzz", "uzzzz", "Uffffffff"])
def test_an_invalid_escape_in_the_status_does_not_end_the_relay(escape: str) -> None:
    """Results were never delivered: the relay ended at each attempt to read the status."""
    text = f'message: "a \\{escape} b"\nphase: Done\n'
    assert relay.status_of(text) == {"message": f"a {escape} b", "phase": "Done"}
