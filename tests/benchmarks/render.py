"""`dynamoctl render` of a graph of 25 components, from text to text: `make bench-render`.

The first run includes Python's one-time costs; the figures are of the twenty runs after it.
"""

import statistics
import time

import yaml
from dynamo_ctl import offline
from dynamo_pod_builder import render
from dynamo_shared.api.validation import Facts
from dynamo_shared.api.yaml_output import to_yaml

from tests.benchmarks.platform import percentile
from tests.integration.platform import frontend, graph, worker

COMPONENTS = 25
RUNS = 20


def main() -> None:
    """Prints one line."""
    components = [frontend(), *(worker(f"Worker{number}") for number in range(1, COMPONENTS))]
    text = yaml.safe_dump(graph("bench", components=components))
    config = render.RenderConfig(operator_version="1.2.0")
    times: list[float] = []
    for _ in range(RUNS + 1):
        started = time.perf_counter()
        objects = offline.objects_of(offline.manifests_of(text, "bench", Facts()), "bench", config, {})
        output = "---\n".join(map(to_yaml, objects))
        times.append((time.perf_counter() - started) * 1000)
    times = times[1:]
    print(
        f"render: {COMPONENTS} components, {len(objects)} objects, {len(output) / 1000:.0f} kB of YAML: "
        f"p50 {statistics.median(times):.1f} ms, p99 {percentile(times, 0.99):.1f} ms"
    )


if __name__ == "__main__":
    main()
