"""The scale request that a command carries: its namespace, and the limits on its size."""

from typing import Any

import pytest
from dynamo_scaler.commands.request import ScaleRequest, namespace_of
from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.wire import cloudevents
from dynamo_shared.wire.specifications.scaling import ScaleData, ScaleTarget


def command(source: str = "/clusters/c/namespaces/team", time: str = "2026-01-01T00:00:00Z") -> cloudevents.Event:
    return cloudevents.Event(specversion="1.0", id="one", source=source, type="t", subject="s", time=time, data={})


def asked(**data: Any) -> ScaleData:
    return ScaleData(**{"graph_deployment": "g", "targets": [ScaleTarget(component="Decode", replicas=2)], **data})


def test_the_subject_of_a_command_names_its_namespace() -> None:
    assert namespace_of(command(), "c") == "team"
    # It is the whole rest of the subject, not a part: no namespace has such a name, so no graph is in it.
    assert namespace_of(command("/clusters/c/namespaces/a/team"), "c") == "a/team"
    for source in ("/clusters/c", "/clusters/c/namespaces", "/clusters/other/namespaces/team"):
        with pytest.raises(CommandRefusedError, match="no namespace"):
            namespace_of(command(source), "c")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (asked(graph_deployment="g" * 254), "graphDeployment: longer than 253"),
        (asked(requester="r" * 254), "requester: longer than 253"),
        (asked(targets=[ScaleTarget(component="c" * 254)]), "targets[0]: longer than 253"),
        (asked(targets=[ScaleTarget(sub_component_type="c" * 254)]), "targets[0]: longer than 253"),
        (asked(targets=[ScaleTarget(component="c")] * 101), "targets: 101 are more than 100"),
        (
            asked(targets=[ScaleTarget(component="c", replicas=10**7)]),
            "targets[0]: 10000000 replicas are more than the 150000",
        ),
        (asked(expected_generation="1" * 5000), "expectedGeneration: not a 64-bit integer"),
    ],
)
def test_a_request_larger_than_any_valid_command_is_rejected(data: ScaleData, words: str) -> None:
    with pytest.raises(CommandRefusedError) as caught:
        ScaleRequest.of(command(), "team", data)
    assert (caught.value.reason, words in str(caught.value)) == ("InvalidCommand", True)


def test_long_texts_are_cut_before_they_are_stored() -> None:
    ask = ScaleRequest.of(command(time="9" * 1000), "team", asked(reason="why " * 1000))
    assert (len(ask.reason), len(ask.sent)) == (500, 64)
