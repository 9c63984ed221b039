"""The table of inference engines matches every place that publishes their names."""

import re
from enum import StrEnum
from typing import get_args

import pytest
from dynamo_dynadmin.deploy.intent import Backend
from dynamo_pod_builder.render.backends import backend_named
from dynamo_shared.api.contracts.planner import PlannerBackend
from dynamo_shared.api.contracts.profiler import Engine
from dynamo_shared.api.engines import BACKENDS, CHOICE, MODULE
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.v1alpha1.enums import RequestBackend
from dynamo_shared.api.v1beta1.enums import BackendFramework


@pytest.mark.parametrize(
    "words",
    [BackendFramework, RequestBackend, PlannerBackend, Backend],
    ids=["graphs", "requests", "planner", "intents"],
)
def test_enumerations_have_the_names_of_the_table(words: type[StrEnum]) -> None:
    assert {word.value for word in words} - {"auto", "mocker"} == set(BACKENDS)


def test_the_profiler_accepts_the_names_of_the_table() -> None:
    literal, _none = get_args(Engine.model_fields["backend"].annotation)
    assert get_args(literal) == tuple(BACKENDS)


@pytest.mark.parametrize("name", BACKENDS)
def test_every_engine_is_rendered_and_detected_by_its_module(name: str) -> None:
    assert backend_named(name).traits == BACKENDS[name].pods
    assert re.findall(MODULE, f"python3 -m dynamo.{name} --model x") == [name]


def test_the_choice_is_a_sentence() -> None:
    assert CHOICE == "vllm, sglang or trtllm"


@pytest.mark.parametrize(
    ("gpus", "per_node", "nodes"),
    [
        (1, 8, 1),
        (8, 8, 1),
        (16, 8, 2),
        (12, 8, 2),
        (10, 8, 2),
        (14, 8, 2),
        (7, 4, 7),
        (30, 8, 5),
        (4 * 500_000_003, 7, 500_000_003),
    ],
)
def test_nodes_have_equal_shares_of_an_engine_of_any_size(gpus: int, per_node: int, nodes: int) -> None:
    assert EngineLayout(gpus=gpus).nodes(per_node) == nodes
