"""HTTP servers on this machine whose answers a test writes."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers requests of every method by `reply`."""

    def do_GET(self) -> None:
        self.reply()

    do_HEAD = do_POST = do_GET  # noqa: N815 - names of the base class

    def reply(self) -> None:
        raise NotImplementedError

    def answer(self, code: int, content: bytes = b"", /, **headers: str) -> None:
        """Send a whole answer. Underscores in names of headers stand for hyphens."""
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Tests read what handlers record."""


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """Run a server during the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def served(handler: type[Handler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The host and port of a server with this handler."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    with running(server):
        yield f"127.0.0.1:{server.server_port}"
