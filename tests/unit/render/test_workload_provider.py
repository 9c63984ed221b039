"""What runs a graph: its annotation has precedence over the one that disables Grove, and over what the cluster has."""

from dataclasses import replace

import pytest
from dynamo_pod_builder.render import RenderError
from dynamo_shared.api.objects import KubeObject

from .building import CONFIG, component, graph, graph_children

PROVIDER, OPT_OUT = "nvidia.com/workload-provider", "nvidia.com/enable-grove"


def kinds(*, grove: bool, **annotations: str) -> set[str]:
    obj: KubeObject = graph(component(), annotations=annotations)
    made = graph_children(obj, replace(CONFIG, grove=grove))
    return {child["kind"] for child in made} & {"PodCliqueSet", "DynamoComponentDeployment"}


@pytest.mark.parametrize(
    ("annotations", "grove", "expected"),
    [
        ({PROVIDER: "grove"}, True, "PodCliqueSet"),
        ({PROVIDER: "grove", OPT_OUT: "false"}, True, "PodCliqueSet"),
        ({PROVIDER: "component"}, True, "DynamoComponentDeployment"),
        ({PROVIDER: "component"}, False, "DynamoComponentDeployment"),
        ({}, True, "PodCliqueSet"),
        ({OPT_OUT: "false"}, True, "DynamoComponentDeployment"),
        ({}, False, "DynamoComponentDeployment"),
    ],
)
def test_the_annotation_decides(annotations: dict[str, str], grove: bool, expected: str) -> None:
    assert kinds(grove=grove, **annotations) == {expected}


@pytest.mark.parametrize(
    ("value", "grove", "why"),
    [("grove", False, "Grove is not installed or is disabled"), ("Grove", True, "neither grove nor component")],
)
def test_no_other_provider_runs_the_graph_instead(value: str, grove: bool, why: str) -> None:
    with pytest.raises(RenderError, match=why):
        kinds(grove=grove, **{PROVIDER: value})
