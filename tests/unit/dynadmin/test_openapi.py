"""The OpenAPI document says what the service does: problems, headers, and the ends of streams."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dynamo_dynadmin
import pytest
from dynamo_dynadmin.api.deploy_models import GpuFit
from dynamo_dynadmin.api.family import health, tree
from dynamo_dynadmin.api.fit import GpuDemand, NodeRoom, fit
from dynamo_dynadmin.api.models import TreeNode
from dynamo_dynadmin.api.table import described
from dynamo_dynadmin.document import openapi
from dynamo_dynadmin.http import problems
from dynamo_dynadmin.http.routes import SSE, Route

SOURCES = sorted(Path(dynamo_dynadmin.__file__).parent.rglob("*.py"))
STREAMED = [each for each in described() if 200 in each.answers and SSE in each.answers[200].content]


def kinds_answered() -> set[str]:
    """Kinds of problems that some line of the service answers with."""
    calls = (node for file in SOURCES for node in ast.walk(ast.parse(file.read_text("utf-8"))))
    of_calls: set[str] = {
        str(node.args[0].value)
        for node in calls
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "ProblemError"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
    return of_calls | {kind for _, kind in problems._KINDS} | set(problems._KINDS_BY_STATUS.values())


def operations() -> Iterator[dict[str, Any]]:
    return (operation for path in openapi()["paths"].values() for operation in path.values())


def parameters(operation: dict[str, Any]) -> set[str]:
    return {each["name"] for each in operation.get("parameters", ())}


def test_every_kind_of_problem_is_one_that_the_service_answers_with() -> None:
    assert set(problems.KINDS) - kinds_answered() == set()


def test_what_can_answer_not_modified_takes_the_version_that_the_caller_has() -> None:
    conditional = [each for each in operations() if "304" in each["responses"]]
    assert conditional
    assert [each["operationId"] for each in conditional if "If-None-Match" not in parameters(each)] == []


def test_a_problem_that_passes_says_when_to_come_back() -> None:
    shared = openapi()["components"]["responses"]
    assert [name for name, each in shared.items() if "Retry-After" in each.get("headers", {})] == [
        "Problem429",
        "Problem503",
    ]


def test_what_a_key_creates_once_says_whether_it_was_there_before_and_where_it_is() -> None:
    keyed = {each["operationId"]: each["responses"] for each in operations() if "Idempotency-Key" in parameters(each)}
    assert keyed
    headers = {
        (name, status): keyed[name][status].get("headers", {}).keys() for name in keyed for status in ("200", "201")
    }
    where = {"ETag", "Location"}
    assert headers == {
        (name, status): where | ({"Idempotency-Replayed"} if status == "200" else set()) for name, status in headers
    }


@pytest.mark.parametrize("route", STREAMED, ids=lambda route: route.operation)
def test_a_stream_names_the_events_that_end_every_stream(route: Route) -> None:
    text = " ".join([route.summary, *(each.description for each in route.query)])
    assert [event for event in ("unauthorized", "error") if f"`{event}`" not in text] == []


def test_a_scaling_says_what_was_scaled() -> None:
    scaled = openapi()["components"]["schemas"]["Scaled"]
    assert scaled["properties"].keys() >= {"component", "adapter"}
    assert scaled["properties"]["via"]["enum"] == ["graph", "adapter"]
    assert {"component", "adapter"}.isdisjoint(scaled["required"])


def test_a_change_of_a_session_also_sends_the_csrf_token() -> None:
    document = openapi()
    assert document["components"]["securitySchemes"]["csrf"]["name"] == "X-CSRF-Token"
    session = {
        (method == "get", str(operation.get("security", document["security"])))
        for path in document["paths"].values()
        for method, operation in path.items()
        if operation.get("security") != []
    }
    assert session == {
        (True, str([{"token": []}, {"session": []}])),
        (False, str([{"token": []}, {"session": [], "csrf": []}])),
    }


def test_a_body_needs_neither_a_name_nor_what_the_path_says() -> None:
    schemas = openapi()["components"]["schemas"]
    assert schemas["ObjectBody"]["required"] == ["metadata"]
    assert "generateName" in schemas["BodyMetadata"]["properties"]
    assert "required" not in schemas["BodyMetadata"]


def test_changes_of_a_replay_have_no_defaults_that_a_client_could_send() -> None:
    schemas = openapi()["components"]["schemas"]
    described = {"changes": schemas["ReplayBody"]["properties"]["changes"], **schemas["PlannerChanges"]["properties"]}
    assert [name for name, each in described.items() if "default" in each] == []


def test_descriptions_use_the_words_of_json() -> None:
    texts = [str(each) for each in described_texts(openapi())]
    assert [each for each in texts if re.search(r"\b(None if|True|False|dict)\b", each)] == []


def described_texts(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        yield from (each for name, each in node.items() if name == "description" and isinstance(each, str))
    if isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from described_texts(each)


@pytest.mark.parametrize("demands", [[], [GpuDemand("worker", 3, 4)]], ids=["nothing", "more than there is"])
def test_answers_about_gpus_have_the_described_fields(demands: list[GpuDemand]) -> None:
    nodes = [NodeRoom("a", "H200", 8, 8, {}, ({"key": "gpu", "effect": "NoExecute"},)), NodeRoom("b", "", 8, 4, {})]
    answer = fit(demands, nodes, exact=True)
    assert GpuFit.model_validate(answer).model_dump(by_alias=True) == answer


def test_a_node_of_a_tree_has_the_described_fields() -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "uid": "1"}, "spec": {"nodeName": "n"}}
    node = tree(pod, [], {"1": health(pod)})
    assert node.keys() - TreeNode.model_fields.keys() == set()
    TreeNode.model_validate(node)
