"""A webhook asks for every write: rules cost little next to reading the request."""

from __future__ import annotations

import time
import timeit
from typing import Any

import pytest
from dynamo_shared.api.validation import validate

from tests.unit.api.validation.building import GROVE, component, components, service, services

#: For a graph of 25 components, on one core. Three to nine times what it takes, so that busy machines pass. Seconds.
LIMIT = 0.0015


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(services({f"Service{i}": service(gpus="1", replicas=1) for i in range(25)}), id="v1alpha1"),
        pytest.param(components(*(component(f"c{i}", gpus="1", replicas=1) for i in range(25))), id="v1beta1"),
    ],
)
def test_twenty_five_components(graph: dict[str, Any]) -> None:
    assert validate(graph, graph, GROVE).errors == ()
    # Time of this process alone: what else runs on the machine does not count.
    runs = timeit.repeat(lambda: validate(graph, graph, GROVE), timer=time.process_time, number=20, repeat=10)
    assert min(runs) / 20 < LIMIT
