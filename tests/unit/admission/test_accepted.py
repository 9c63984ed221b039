"""The second webhook does not check an object again that the first one accepted, unless any input differs."""

import copy
from dataclasses import replace
from typing import Any

import pytest
from dynamo_admission import accepted
from dynamo_admission.accepted import AcceptedObjects
from dynamo_admission.review import ReviewVerdict, Webhook, World, review
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.validation import Facts

from .reviewing import NO_TYPES, graph, question

WORLD = World(facts=Facts(), platform_version="1.0.0")
GIVEN = {"uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1, "managedFields": [{"manager": "m"}]}


class Reviews:
    """Both webhooks, and the number of objects that they checked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.accepted = AcceptedObjects()
        self.checked = 0
        findings = review.__globals__["_findings"]

        def counted(*arguments: Any) -> Any:
            self.checked += 1
            return findings(*arguments)

        monkeypatch.setitem(review.__globals__, "_findings", counted)

    def ask(
        self, webhook: Webhook, obj: Any, old: Any = None, world: World = WORLD, checker: Checker = NO_TYPES, **of: Any
    ) -> ReviewVerdict:
        return review(question(obj, old, **of), webhook, world, checker, accepted=self.accepted)


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch) -> Reviews:
    return Reviews(monkeypatch)


def stored() -> dict[str, Any]:
    """A graph as the API server sends it after the first webhook, whose patch changes nothing here."""
    obj = graph()
    for each in obj["spec"]["components"]:
        each.setdefault("replicas", 1)
    obj["metadata"].setdefault("annotations", {})["nvidia.com/dynamo-operator-origin-version"] = "1.0.0"
    return obj


def given(obj: dict[str, Any]) -> dict[str, Any]:
    return {**copy.deepcopy(obj), "metadata": {**obj["metadata"], **GIVEN}}


def test_an_accepted_object_gets_the_same_answer_without_another_check(reviews: Reviews) -> None:
    obj = stored()
    assert reviews.ask(Webhook.MUTATE, obj).refusal is None
    verdict = reviews.ask(Webhook.VALIDATE, given(obj))
    assert reviews.checked == 1
    assert verdict == review(question(given(obj)), Webhook.VALIDATE, WORLD, NO_TYPES)


def test_an_answer_is_cached_for_one_request(reviews: Reviews) -> None:
    reviews.ask(Webhook.MUTATE, stored())
    for _ in range(2):
        reviews.ask(Webhook.VALIDATE, given(stored()))
    assert reviews.checked == 2


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda asked: asked["obj"]["spec"]["components"][0].update(replicas=2), id="another spec"),
        pytest.param(lambda asked: asked["obj"]["spec"]["components"][0].update(replicas=True), id="equal in Python"),
        pytest.param(lambda asked: asked["obj"]["metadata"]["annotations"].update(a="b"), id="another annotation"),
        pytest.param(lambda asked: asked["obj"]["metadata"].update(name="other"), id="another name"),
        pytest.param(lambda asked: asked.update(user="other"), id="another author"),
        pytest.param(
            lambda asked: asked.update(world=replace(WORLD, facts=Facts(gpu_discovery=not Facts().gpu_discovery))),
            id="another world",
        ),
        pytest.param(lambda asked: asked.update(checker=Checker.from_documents()), id="other definitions"),
    ],
)
def test_a_different_object_is_checked(reviews: Reviews, change: Any) -> None:
    reviews.ask(Webhook.MUTATE, stored())
    asked: dict[str, Any] = {"obj": given(stored())}
    change(asked)
    obj = asked.pop("obj")
    reviews.ask(Webhook.VALIDATE, obj, **asked)
    assert reviews.checked == 2


def test_rejected_objects_and_updates_are_not_cached(reviews: Reviews) -> None:
    bad = stored()
    bad["spec"]["backendFramework"] = "vlm"
    for old in (None, stored()):
        reviews.ask(Webhook.MUTATE, bad, old)
    reviews.ask(Webhook.MUTATE, stored(), stored())
    assert not reviews.accepted._known
    before = reviews.checked
    assert reviews.ask(Webhook.VALIDATE, bad).refusal is not None
    assert reviews.checked > before


def test_neither_many_nor_large_objects_are_cached(reviews: Reviews) -> None:
    for number in range(accepted.MOST + 3):
        obj = stored()
        obj["metadata"]["name"] = f"g{number}"
        reviews.ask(Webhook.MUTATE, obj)
    assert len(reviews.accepted._known) == accepted.MOST
    reviews.accepted._known.clear()
    obj["metadata"]["annotations"]["a"] = "x" * accepted.LARGEST
    reviews.ask(Webhook.MUTATE, obj)
    assert not reviews.accepted._known
