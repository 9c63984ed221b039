"""Canary requests of embedding workers: SGLang's of runtime 1.5 reject them, and never became ready (dynamo#14680)."""

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


SCRIPT = {"command": ["sh", "-c"], "args": ["exec python3 -m dynamo.sglang --model-path m \\\n  --embedding-worker"]}
VLLM = {"command": ["python3", "-m", "dynamo.vllm", "--embedding-worker"]}


@pytest.mark.parametrize(
    ("flags", "fields", "enabled"),
    [
        (["--embedding-worker"], {"version": "1.5.0"}, "false"),
        (["--embedding-worker"], {"version": "1.5.1"}, "false"),
        ([], {"version": "1.5.1", **SCRIPT}, "false"),
        (["--embedding-worker"], {"version": "1.6.0"}, "true"),
        (["--embedding-worker"], {"version": "2.0.0"}, "true"),
        ([], {}, "true"),
        ([], {"framework": "vllm", **VLLM}, "true"),
    ],
)
def test_embedding_workers_of_1_5_send_none(flags: list[str], fields: dict[str, Any], enabled: str) -> None:
    assert canary(*flags, **fields) == enabled


@pytest.mark.parametrize(
    "own", [{"name": ENABLED, "value": "true"}, {"name": "DYN_HEALTH_CHECK_PAYLOAD", "value": '{"input": "1"}'}]
)
def test_the_authors_variable_is_kept(own: KubeObject) -> None:
    assert canary("--embedding-worker", env=[own]) == "true"
