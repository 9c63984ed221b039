"""`make bench-admission`: how long the API server waits for admission, and what that costs.

One replica, a process of its own on a real control plane, is sent reviews of a v1alpha1 graph of 25 components, 200 a
second for five seconds each of `/validate`, `/mutate` and `/convert`. Latencies count from the time at which a request
was due, in milliseconds, TLS included. `peak_rss_mib` is the most memory that the process ever had.
"""

import argparse
import asyncio
import base64
import json
import sys
from collections.abc import Sequence
from typing import Any

from dynamo_devcluster import free_port
from dynamo_shared.api.resources import VALIDATING_WEBHOOK_CONFIGURATIONS

from .platform import Bench, Stage, bench, percentile, servers

PATHS = ("validate", "mutate", "convert")
#: If the generator is later than this, it measures itself. Milliseconds at the 99th percentile.
LATE = 5.0
#: Time for a new API server, on the same cores, to become idle. Seconds.
SETTLE = 5.0


async def run(rate: float, seconds: float) -> str:
    """Measure, and return the line."""
    port = free_port()
    async with servers(scheduler=False, kwok_nodes=0) as stage, bench(stage, "admission", webhooks=port) as process:
        authorities = stage.directory / "ca.pem"
        authorities.write_bytes(await _bundle(process))
        await asyncio.sleep(SETTLE)
        figures = []
        for path in PATHS:
            result = await _load(stage, port, path, rate, seconds)
            milliseconds = result["latencies"]
            figures.append(
                f"{path}_p50_ms={percentile(milliseconds, 0.5):.1f} {path}_p99_ms={percentile(milliseconds, 0.99):.1f}"
            )
            if result["refused"]:
                sys.exit(f"{result['refused']} of {len(milliseconds)} requests to /{path} were not allowed")
            if percentile(result["late"], 0.99) > LATE:
                print(f"/{path}: the load generator itself was late; the machine is busy", file=sys.stderr)
        return f"{' '.join(figures)} peak_rss_mib={process.peak_rss_mib():.0f} rate={rate:g} seconds={seconds:g}"


async def _bundle(process: Bench) -> bytes:
    """The CA bundle that the service registered with the API server."""
    for each in await process.kube.list(VALIDATING_WEBHOOK_CONFIGURATIONS):
        for webhook in each["webhooks"]:
            if webhook["clientConfig"].get("caBundle"):
                return base64.b64decode(webhook["clientConfig"]["caBundle"])
    sys.exit("admission registered no webhooks")


async def _load(stage: Stage, port: int, path: str, rate: float, seconds: float) -> dict[str, Any]:
    arguments: Sequence[str] = (
        *("--host", "127.0.0.1", "--port", str(port), "--authorities", str(stage.directory / "ca.pem")),
        *("--path", path, "--rate", str(rate), "--seconds", str(seconds)),
    )
    generator = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.benchmarks.load", *arguments, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await generator.communicate()
    if generator.returncode:
        sys.exit(f"the load generator ended with {generator.returncode}")
    document: dict[str, Any] = json.loads(output)
    return document


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=5.0, help="for each of the three")
    options = parser.parse_args()
    print(asyncio.run(run(options.rate, options.seconds)))
