"""The version of Dynamo that a request gives the components of its graph."""

import copy
from typing import Any

import pytest
from dynamo_profiler.profiling.generation.candidates import unmeasured
from dynamo_profiler.profiling.generation.finishing import VERSION, versioned
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.manifest import schema_errors

from tests.unit.profiler.profiling.profiling_world import layout, request
from tests.unit.profiler.profiling.test_generated_graphs import parts

ENGINES = {"prefill": EngineLayout(tp=2, gpus=2), "decode": EngineLayout(tp=4, gpus=4)}


def graph(**own: str) -> dict[str, Any]:
    """A generated graph, with versions of some of its components."""
    made = unmeasured(layout(**ENGINES), parts())[0].dgd
    for component in made["spec"]["components"]:
        if component["name"] in own:
            component[VERSION] = own[component["name"]]
    return made


def versions(obj: dict[str, Any]) -> dict[str, str | None]:
    return {each["name"]: each.get(VERSION) for each in obj["spec"]["components"]}


@pytest.mark.parametrize(
    ("asked", "own", "expected"),
    [
        ("1.5.0", {}, {"Frontend": "1.5.0", "prefill": "1.5.0", "decode": "1.5.0"}),
        ("1.5.0", {"decode": "1.4.2"}, {"Frontend": "1.5.0", "prefill": "1.5.0", "decode": "1.4.2"}),
        (None, {"decode": "1.4.2"}, {"Frontend": None, "prefill": None, "decode": "1.4.2"}),
    ],
)
def test_components_without_a_version_get_the_one_of_the_request(
    asked: str | None, own: dict[str, str], expected: dict[str, str | None]
):
    before = graph(**own)
    kept = copy.deepcopy(before)
    assert versions(versioned(before, request(runtimeVersionOverride=asked).spec)) == expected
    assert before == kept


@pytest.mark.parametrize(
    ("version", "is_one"),
    [
        *((each, True) for each in ("0.0.0", "1.5.0", "1.10.0", "9999.9999.9999")),
        *(
            (each, False)
            for each in ("", "1.5", "v1.5.0", "1.5.0-rc1", "1.5.0+a", "01.5.0", "1.5.00", "10000.0.0", "1.5.0\n")
        ),
    ],
)
def test_a_version_has_three_numbers(version: str, is_one: bool):
    obj = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "r", "namespace": "n"},
        "spec": {"model": "m", VERSION: version},
    }
    words = [str(each) for each in schema_errors(obj)]
    wrong = (
        f"spec.{VERSION}: {version!r} is not allowed; MAJOR.MINOR.PATCH, each from 0 to 9999 and without leading zeros"
    )
    assert words == ([] if is_one else [wrong])
