"""Subjects: every name is encoded as one token, and is decoded again."""

import re
from pathlib import Path

import pytest
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus.permissions import EVENT_READER, rights
from dynamo_shared.wire import subjects
from hypothesis import given
from hypothesis import strategies as st

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=40)


@given(TEXT)
def test_a_name_is_one_token_and_is_decoded_again(text: str) -> None:
    token = subjects.encode(text)
    assert subjects.decode(token) == text
    assert not set(token) & set(". *>\t\r\n")
    assert token.isascii()


@given(TEXT, TEXT, TEXT)
def test_state_subjects_are_decoded_again(cluster: str, namespace: str, name: str) -> None:
    key = ObjectKey(namespace if namespace != "_" else "n", name)
    subject = subjects.state_subject(cluster, "deployments.apps", key)
    assert subjects.parse_state(subject) == (cluster, "deployments.apps", key)
    assert subjects.parse_synced(subject) is None


def test_examples() -> None:
    key = ObjectKey("team-a", "llama-3.1")
    assert subjects.state_subject("prod", "deployments.apps", key) == (
        "dynamo.state.v1.prod.deployments%2Eapps.team-a.llama-3%2E1"
    )
    assert subjects.state_subject("prod", "nodes", ObjectKey("", "n1")) == "dynamo.state.v1.prod.nodes._.n1"
    assert subjects.event_subject("prod", "ns", "DynamoGraphDeployment", "x.y", "ready") == (
        "dynamo.evt.v1.prod.ns.dynamographdeployment.x%2Ey.ready"
    )
    assert subjects.command_subject("prod", "ns", "scaler", "scale") == "dynamo.cmd.v1.prod.ns.scaler.scale"
    assert subjects.dead_letter_subject("dynamo.cmd.v1.prod.ns.scaler.scale") == "dynamo.dlq.v1.prod.ns.scaler.scale"


def test_the_marker_is_not_an_object_and_no_object_is_a_marker() -> None:
    marker = subjects.synced_subject("c", "deployments.apps")
    assert subjects.parse_synced(marker) == ("c", "deployments.apps")
    with pytest.raises(ValueError, match="not a dynamo"):
        subjects.parse_state(marker)
    hostile = subjects.state_subject("c", "pods", ObjectKey("ns", "_synced"))
    assert subjects.parse_synced(hostile) is None


@pytest.mark.parametrize(
    "subject", ["", "dynamo.evt.v1.c.ns.k.n", "x.dynamo.evt.v1.c.ns.k.n.e", "dynamo.evt.v1.c..k.n.e"]
)
def test_foreign_subjects_are_rejected(subject: str) -> None:
    with pytest.raises(ValueError, match="not a dynamo"):
        subjects.parse_event(subject)


def test_an_empty_token_is_invalid() -> None:
    with pytest.raises(ValueError, match="empty"):
        subjects.encode("")


ROOT = Path(__file__).parents[3]
#: The clusters of `dynamoctl up` and of `make demo`.
CLUSTERS = ("local", "demo")
_SUBSCRIPTION = re.compile(r"""subscribe(?: |\()['"](dynamo\.evt\.[^'"]+)['"]""")


@pytest.mark.parametrize("page", ["README.md", "docs/events.md"])
def test_a_documented_subscription_is_allowed(page: str) -> None:
    subscriptions = _SUBSCRIPTION.findall((ROOT / page).read_text(encoding="utf-8"))
    allowed = tuple(
        subject.removesuffix(">") for cluster in CLUSTERS for subject in rights(EVENT_READER, cluster).subscribe
    )
    assert subscriptions
    assert [each for each in subscriptions if not each.startswith(allowed)] == []
