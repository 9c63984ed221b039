import pytest
from dynamo_dynadmin.api.logs import require_component
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.problems import ProblemError, invalid, of_kube
from dynamo_shared.kube import NamespaceTerminating

GRAPH = {"spec": {"components": [{"name": "Frontend"}, {"name": "Decode"}]}}


def test_the_detail_of_one_error_is_the_error() -> None:
    problem = invalid([FieldProblem("/name", "required, and missing")]).document("id")
    assert problem["detail"] == "/name: required, and missing"
    assert problem["errors"] == [{"pointer": "/name", "detail": "required, and missing"}]


def test_the_detail_of_several_errors_is_the_first_and_their_number() -> None:
    errors = [FieldProblem(f"/{name}", "required, and missing") for name in ("mode", "name", "model")]
    assert invalid(errors).detail == "/mode: required, and missing; and 2 more, in errors"


def test_an_error_of_the_whole_body_has_no_pointer() -> None:
    assert invalid([FieldProblem("", "must be an object")]).detail == "the whole: must be an object"


def test_logs_of_a_component_that_the_graph_does_not_have_are_refused() -> None:
    require_component("Decode", GRAPH)
    with pytest.raises(ProblemError) as refused:
        require_component("decode", GRAPH)
    assert refused.value.detail == "component: decode is not a component of this graph; one of Frontend, Decode"
    assert [each.pointer for each in refused.value.errors] == ["?component"]


def test_a_namespace_that_is_being_deleted_is_a_conflict_and_not_a_right_that_lacks() -> None:
    message = "namespace ns is being terminated"
    problem = of_kube(NamespaceTerminating(403, "Forbidden", message))
    assert (problem.kind, problem.detail) == ("conflict", message)
