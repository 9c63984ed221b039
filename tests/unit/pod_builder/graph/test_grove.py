"""What Grove accepts."""

from typing import Any

import pytest
from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_shared.api.objects import KubeObject


def clique(name: str, replicas: int, least: int = 1) -> KubeObject:
    spec = {"replicas": replicas, "minAvailable": least}
    return {"name": name, "labels": {"nvidia.com/dynamo-component": name[0]}, "spec": spec}


def clique_set(a: int, b: int | None = None, least: int = 1) -> KubeObject:
    """Component a is a clique, component b a scaling group of two; both start that many replicas together."""
    template: dict[str, Any] = {"cliques": [clique("a", a, least)]}
    if b is not None:
        template["cliques"] += [clique("b-ldr", 1), clique("b-wkr", 3)]
        template["podCliqueScalingGroups"] = [
            {"name": "b", "cliqueNames": ["b-ldr", "b-wkr"], "replicas": b, "minAvailable": least}
        ]
    return {"metadata": {"name": "g"}, "spec": {"replicas": 1, "template": template}}


@pytest.mark.parametrize(
    ("desired", "written"),
    [
        (clique_set(2), clique_set(2)),
        (clique_set(0), clique_set(1)),
        (clique_set(0, 2), clique_set(1, 2)),
        (clique_set(2, 0), clique_set(2, 1)),
        (clique_set(0, 0), clique_set(1, 1)),
        (clique_set(0, 0, least=3), clique_set(3, 3, least=3)),
        (clique_set(4, 3, least=3), clique_set(4, 3, least=3)),
    ],
)
def test_a_set_is_not_written_with_a_component_of_0_replicas(desired: KubeObject, written: KubeObject) -> None:
    """Grove always rejects groups of 0, and cliques of 0 in a new set."""
    before = repr(desired)
    assert grove.accepted(desired) == written
    assert repr(desired) == before
