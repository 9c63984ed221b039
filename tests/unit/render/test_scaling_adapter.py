"""The components of a graph that have a scaling adapter, and its initial replicas."""

from .building import component, graph, graph_children, of_kind


def test_components_that_request_an_adapter_get_one_with_their_replicas() -> None:
    made = graph_children(
        graph(
            component("Worker", scalingAdapter={}),
            component("Many", replicas=3, scalingAdapter={}),
            component("None", replicas=0, scalingAdapter={}),
            component("Plain"),
        )
    )
    result = of_kind(made, "DynamoGraphDeploymentScalingAdapter")
    assert {each["metadata"]["name"]: each["spec"]["replicas"] for each in result} == {
        "graph-worker": 1,
        "graph-many": 3,
        "graph-none": 0,
    }
    assert result[0]["apiVersion"] == "nvidia.com/v1beta1"
    assert result[0]["spec"]["dgdRef"] == {"name": "graph", "componentName": "Worker"}
    assert result[0]["metadata"]["ownerReferences"][0]["controller"] is True
