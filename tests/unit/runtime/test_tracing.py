"""Traces go to the configured endpoint; without one nothing of the SDK is even imported."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

PROGRAM = """
import sys
from dynamo_shared.bus.tracing import extract, inject, traceparent
from dynamo_shared.runtime.settings import load_settings
from dynamo_shared.runtime.tracing import tracer, tracing
settings = load_settings(None, {"DYNAMO_PLATFORM__TRACING__OTLP_ENDPOINT": sys.argv[1]})
with tracing("watcher", settings.platform):
    headers = {}
    with tracer.start_as_current_span("first", attributes={"key": "default/llama"}):
        first = traceparent()
        inject(headers)
    with tracer.start_as_current_span("second", context=extract(headers)):
        second = traceparent()
print(first.split("-")[1:2] == second.split("-")[1:2] != [], "opentelemetry.sdk.trace" in sys.modules, bool(first))
"""


def run(endpoint: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, endpoint], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.strip()


def test_off() -> None:
    assert run("") == "False False False"


def test_spans_of_one_trace_reach_the_collector() -> None:
    received: list[tuple[str, bytes]] = []

    class Collector(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            pass

    server = HTTPServer(("127.0.0.1", 0), Collector)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert run(f"http://127.0.0.1:{server.server_port}/") == "True True True"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert {path for path, _ in received} == {"/v1/traces"}
    body = b"".join(body for _, body in received)
    assert b"watcher" in body
    assert b"default/llama" in body
