"""Traces are sent to the configured endpoint; without one, the SDK is not imported."""

import subprocess
import sys

import pytest
from dynamo_shared.runtime.tracing import traces_url

from tests.building.http_server import Handler, served

#: Prints "turns" for each line while its event loop runs, and its facts when nothing is left to send.
PROGRAM = """
import asyncio, sys
from dynamo_shared.bus.tracing import extract, inject, traceparent
from dynamo_shared.runtime.settings import load_settings
from dynamo_shared.runtime.tracing import tracer, tracing
settings = load_settings(None, {"DYNAMO_PLATFORM__TRACING__OTLP_ENDPOINT": sys.argv[1]})

async def main():
    async with tracing("watcher", settings.platform):
        headers = {}
        with tracer.start_as_current_span("first", attributes={"key": "default/llama"}):
            first = traceparent()
            inject(headers)
        with tracer.start_as_current_span("second", context=extract(headers)):
            second = traceparent()
        asked = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
        asked.add_done_callback(lambda _: print("turns", flush=True))
        await asyncio.sleep(0)
    same = first.split("-")[1:2] == second.split("-")[1:2] != []
    print(same, "opentelemetry.sdk.trace" in sys.modules, bool(first), flush=True)

asyncio.run(main())
"""


def start(endpoint: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, endpoint]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_tracing_is_off_without_an_endpoint() -> None:
    with start("") as program:
        output, _ = program.communicate("?\n", timeout=60)
    assert "False False False\n" in output


def test_spans_of_one_trace_reach_the_collector_and_the_loop_runs_while_it_does_not_answer() -> None:
    received: list[tuple[str, bytes]] = []
    said: list[str] = []

    class Collector(Handler):
        def reply(self) -> None:
            received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
            assert program.stdin is not None
            assert program.stdout is not None
            if not said:
                program.stdin.write("?\n")
                program.stdin.flush()
                said.append(program.stdout.readline())
            self.answer(200)

    with served(Collector) as address, start(f"http://{address}/") as program:
        assert program.wait(60) == 0
        assert program.stdout is not None
        said += program.stdout
    assert said == ["turns\n", "True True True\n"]
    assert {path for path, _ in received} == {"/v1/traces"}
    body = b"".join(body for _, body in received)
    assert b"watcher" in body
    assert b"default/llama" in body


@pytest.mark.parametrize("endpoint", ["http://collector:4318", "collector:4318", "http://collector:4318/"])
def test_an_endpoint_may_lack_its_scheme(endpoint: str) -> None:
    assert traces_url(endpoint) == "http://collector:4318/v1/traces"
