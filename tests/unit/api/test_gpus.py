"""GPUs of one replica: containers times nodes."""

from typing import Any

import pytest
from dynamo_shared.api import gpus


def asking(**amounts: Any) -> dict[str, Any]:
    return {"name": "main", "resources": {"limits": {name.replace("__", ".com/"): n for name, n in amounts.items()}}}


@pytest.mark.parametrize(
    ("component", "expected"),
    [
        ({}, 0),
        ({"podTemplate": {"spec": {"containers": [{"name": "main"}]}}}, 0),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="4")]}}}, 4),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu=4), asking(amd__gpu="1")]}}}, 5),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="8")]}}, "multinode": {"nodeCount": 3}}, 24),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="8")]}}, "multinode": {}}, 16),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="many")]}}}, 0),
        (
            {
                "multinode": {"nodeCount": 3},
                "roles": [
                    {"name": "leader", "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=1)]}}},
                    {"name": "worker", "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=4)]}}},
                ],
            },
            9,
        ),
        (
            {
                "podTemplate": {"spec": {"containers": [asking(nvidia__gpu=2)]}},
                "multinode": {},
                "roles": [{"name": "leader"}, {"name": "worker", "podTemplate": {"spec": {"containers": []}}}],
            },
            2,
        ),
        # What no pod would get; less than none would give others' GPUs away.
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="-8"), asking(nvidia__gpu=1)]}}}, 1),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="1")]}}, "multinode": {"nodeCount": -3}}, 1),
        ({"podTemplate": {"spec": {"containers": [asking(nvidia__gpu="9E")]}}, "multinode": {}}, gpus.MOST),
    ],
)
def test_gpus_of_a_replica(component: dict[str, Any], expected: int) -> None:
    assert gpus.of_replica(component) == gpus.ReplicaGpus(expected)
