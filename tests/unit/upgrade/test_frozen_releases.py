"""What a frozen release stored and sent is served by this one: objects, STATE, events and commands.

Each folder here is named by a release and was written by the code of that release: manifests as their users wrote them, the
same as the API server stored them, what the pod-builder made of graphs, and one message of each type.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dynamo_pod_builder import render
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import parse_graph
from dynamo_shared.api.validation import Facts, validate
from dynamo_shared.state import messages
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications import BY_TYPE

from tools.releases.history import releases

HERE = Path(__file__).parent
FROZEN = sorted(folder for folder in HERE.iterdir() if (folder / "objects.json").is_file())
OBJECTS: list[KubeObject] = [
    {"release": folder.name, **entry}
    for folder in FROZEN
    for entry in json.loads((folder / "objects.json").read_text())
]


def _named(entries: list[KubeObject]) -> list[Any]:
    return [
        pytest.param(each, id=f"{each['release']}-{each['source']}-{each['stored']['metadata']['name']}")
        for each in entries
    ]


ENTRIES, GRAPHS = _named(OBJECTS), _named([each for each in OBJECTS if "children" in each])
MESSAGES = [
    pytest.param(name, message, id=f"{folder.name}-{name}")
    for folder in FROZEN
    for name, message in json.loads((folder / "messages.json").read_text()).items()
]
CONFIG = render.RenderConfig(operator_version="1.2.0")
#: What says which pods there are: a change of these replaces pods, or names them again.
OF_PODS = ("DynamoComponentDeployment", "Deployment", "LeaderWorkerSet")


def test_every_frozen_release_exists() -> None:
    assert [folder.name for folder in FROZEN] == [each["release"] for each in releases(HERE.parents[2])]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_stored_object_is_still_valid(entry: KubeObject) -> None:
    stored = entry["stored"]
    assert schema_errors(stored) == []
    assert validate(stored, stored, Facts()).errors == ()


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_stored_object_is_read_as_its_user_wrote_it(entry: KubeObject) -> None:
    written, stored = entry["written"], entry["stored"]
    back = convert(stored, written["apiVersion"])
    assert _without_own(back) == _without_own(written)
    assert convert(back, stored["apiVersion"]) == stored


def _without_own(obj: KubeObject) -> KubeObject:
    """Without the annotation of the conversion, and without defaults that conversion writes out."""
    made: KubeObject = json.loads(json.dumps(obj))
    made["metadata"].pop("annotations", None)
    if made["kind"] == "DynamoGraphDeploymentRequest" and made["apiVersion"].endswith("v1alpha1"):
        # Today's conversion says of a request that is simulated that it is.
        made["spec"]["profilingConfig"].get("config", {}).pop("sweep", None)
    return made


@pytest.mark.parametrize("entry", GRAPHS)
def test_pods_of_a_stored_graph_are_not_replaced(entry: KubeObject) -> None:
    graph = json.loads(json.dumps(entry["stored"]))
    graph["metadata"]["uid"] = "u"
    now = _of_pods(json.loads(json.dumps(render.graph_children(parse_graph(graph), CONFIG))))
    assert now == _of_pods(entry["children"])


def _of_pods(children: list[KubeObject]) -> dict[str, Any]:
    return {f"{each['kind']}/{each['metadata']['name']}": each["spec"] for each in children if each["kind"] in OF_PODS}


def _as_sent(read: Any, sent: Any) -> Any:
    """What was read, without the optional fields that are new since."""
    if isinstance(read, dict) and isinstance(sent, dict):
        return {name: _as_sent(value, sent[name]) for name, value in read.items() if name in sent}
    if isinstance(read, list) and isinstance(sent, list) and len(read) == len(sent):
        return [_as_sent(*each) for each in zip(read, sent, strict=True)]
    return read


@pytest.mark.parametrize(("name", "message"), MESSAGES)
def test_a_message_of_an_earlier_release_is_read(name: str, message: KubeObject) -> None:
    """The next release of a frozen one reads what that one sent, so that both may run side by side."""
    subject, headers, payload = message["subject"], message["headers"], message["payload"]
    assert subject.startswith((subjects.STATE_PREFIX, subjects.EVENT_PREFIX, subjects.COMMAND_PREFIX))
    body = json.dumps(payload).encode()
    match name:
        case "state.object":
            assert messages.decode_object(body, headers) == payload
            assert not messages.is_tombstone(headers)
        case "state.tombstone":
            assert messages.is_tombstone(headers)
            assert messages.version_in(headers).uid == headers["uid"]
        case "state.synced":
            assert json.loads(messages.encode_marker(messages.decode_marker(body))) == payload
        case _:
            event = cloudevents.decode(body)
            read = msgspec.convert(event.data, BY_TYPE[event.type].data)
            assert _as_sent(msgspec.to_builtins(read), payload["data"]) == payload["data"]
