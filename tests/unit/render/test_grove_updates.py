"""How Grove replaces the pods of a graph, according to the graph's annotation."""

from dataclasses import replace
from typing import Any

import pytest

from .building import CONFIG, component, graph, graph_children, of_kind

STRATEGY = "nvidia.com/grove-update-strategy"


def spec_of_set(**annotations: str) -> dict[str, Any]:
    obj = graph(component("Worker"), annotations=annotations)
    (result,) = of_kind(graph_children(obj, replace(CONFIG, grove=True)), "PodCliqueSet")
    spec: dict[str, Any] = result["spec"]
    return spec


@pytest.mark.parametrize("strategy", ["RollingRecreate", "OnDelete"])
def test_the_set_has_the_strategy_of_its_graph(strategy: str) -> None:
    assert spec_of_set(**{STRATEGY: strategy})["updateStrategy"] == {"type": strategy}


@pytest.mark.parametrize("annotations", [{}, {STRATEGY: "Coherent"}], ids=["none", "stored before it was refused"])
def test_without_the_annotation_the_strategy_is_left_to_grove(annotations: dict[str, str]) -> None:
    assert "updateStrategy" not in spec_of_set(**annotations)
