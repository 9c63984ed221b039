import pytest
from dynamo_ctl import kinds
from dynamo_ctl.commands.get import ObjectQuery, objects
from dynamo_ctl.commands.parameters import graph_name
from dynamo_shared.api.crds.kinds import DEFINITIONS


def test_short_names_are_those_of_the_definitions() -> None:
    assert sorted(kinds.SHORT_NAMES.items()) == sorted(
        (short, each.kind.lower()) for each in DEFINITIONS for short in each.short_names
    )


@pytest.mark.parametrize(
    ("name", "short"),
    [
        *((name, "dgd") for each in DEFINITIONS[:1] for name in (each.kind, each.resource.plural, each.resource.id)),
        ("DGD", "dgd"),
        ("dynamographdeployments.v1alpha1.nvidia.com", "dgd"),
        ("dynamomodels", "dm"),
        ("dmodel", "dm"),
        ("dynamodeployments", "dynamodeployment"),
        ("dgd.example.com", "dgd.example.com"),
        ("pods", "pod"),
    ],
)
def test_a_kind_has_the_names_that_kubectl_takes(name: str, short: str) -> None:
    assert kinds.short_name(name) == short


@pytest.mark.parametrize(
    "written", ["chat", "dgd/chat", "DynamoGraphDeployments/chat", "dynamographdeployments.nvidia.com/chat"]
)
def test_commands_of_a_graph_take_its_kind_before_the_name(written: str) -> None:
    assert graph_name(written) == "chat"


@pytest.mark.parametrize(
    ("query", "resolved"),
    [
        (ObjectQuery(), ObjectQuery("all")),
        (ObjectQuery("DynamoGraphDeployment", "chat"), ObjectQuery("dgd", "chat")),
        (ObjectQuery("dgd/chat"), ObjectQuery("dgd", "chat")),
        (ObjectQuery("dynamocomponentdeployments/chat-decode"), ObjectQuery("dcd", "chat-decode")),
    ],
)
def test_get_takes_a_kind_and_a_name_as_kubectl_does(query: ObjectQuery, resolved: ObjectQuery) -> None:
    assert objects.resolved(query) == resolved
