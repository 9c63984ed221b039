"""Canary requests of embedding workers: SGLang's of a runtime 1.5 refuse them, and would never become ready (dynamo#14680)."""

from typing import Any

import pytest
from dynamo_shared.api.objects import KubeObject

from .building import component, main, variables

ENABLED = "DYN_HEALTH_CHECK_ENABLED"
STARTS = ["python3", "-m", "dynamo.sglang", "--model-path", "m"]


def canary(*flags: str, version: str = "1.5.0", framework: str = "sglang", **container: Any) -> str | None:
    fields = {"command": STARTS, "args": list(flags), **container} if framework == "sglang" else container
    single = component(main=fields, runtimeVersionOverride=version)
    return variables(main(single, backendFramework=framework))[ENABLED]


@pytest.mark.parametrize("version", ["1.5.0", "1.5.1"])
def test_embedding_workers_of_1_5_get_none(version: str) -> None:
    assert canary("--embedding-worker", version=version) == "false"
    script = "exec python3 -m dynamo.sglang --model-path m \\\n  --embedding-worker"
    assert canary(version=version, command=["sh", "-c"], args=[script]) == "false"


@pytest.mark.parametrize("version", ["1.6.0", "2.0.0"])
def test_later_ones_answer_them(version: str) -> None:
    assert canary("--embedding-worker", version=version) == "true"


def test_other_workers_answer_them() -> None:
    assert canary() == "true"
    vllm = ["python3", "-m", "dynamo.vllm", "--embedding-worker"]
    assert canary(framework="vllm", command=vllm) == "true"


@pytest.mark.parametrize(
    "own", [{"name": ENABLED, "value": "true"}, {"name": "DYN_HEALTH_CHECK_PAYLOAD", "value": '{"input": "1"}'}]
)
def test_what_the_author_says_of_them_stands(own: KubeObject) -> None:
    assert canary("--embedding-worker", env=[own]) == "true"
