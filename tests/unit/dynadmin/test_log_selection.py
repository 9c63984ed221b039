"""Whose logs are read: a pod or a container that is not there is an error, and a component without pods is not."""

import pytest
from dynamo_dynadmin.api.logs import require_selected
from dynamo_dynadmin.api.logs.sources import LogSelection, starts
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels


def pod(name: str) -> KubeObject:
    metadata = {"name": name, "namespace": "ns", "uid": name, "labels": {labels.COMPONENT: "Decode"}}
    return {"metadata": metadata, "spec": {"containers": [{"name": "main"}, {"name": "frontend-sidecar"}]}}


PODS = [pod("g-0"), pod("g-1")]


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (LogSelection(pod="g-2"), "pod: there is no pod g-2 here; one of g-0, g-1"),
        (LogSelection(container="nope"), "container: there is no container nope here; one of main, frontend-sidecar"),
        (
            LogSelection(pod="g-1", container="nope"),
            "container: there is no container nope here; one of main, frontend-sidecar",
        ),
    ],
)
def test_an_unknown_pod_or_container_is_refused_with_the_existing_ones(selection: LogSelection, said: str) -> None:
    assert not starts(PODS, selection)
    with pytest.raises(ProblemError, match=said):
        require_selected(PODS, selection)


def test_before_there_are_pods_none_can_be_named() -> None:
    with pytest.raises(ProblemError, match="there is no pod g-0 here; there are none yet"):
        require_selected([], LogSelection(pod="g-0"))
    require_selected([], LogSelection(container="main"))
    require_selected(PODS, LogSelection(component="Prefill"))
