"""One review of rules answers for a whole namespace, where it says all; a caller never gets more than reviews would say."""

import asyncio
import time
from typing import Any, cast

import pytest
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.identity import access as access_module
from dynamo_dynadmin.identity.access import Access, ResourceAttributes
from dynamo_dynadmin.identity.rules import RULES_REVIEWS, grants
from dynamo_dynadmin.identity.who import Caller
from dynamo_shared.api.resources import NODES, PODS, Resource
from dynamo_shared.kube import Forbidden, Identity, Unavailable
from dynamo_shared.kube.errors import ResponseTooLarge

ANN, BOB = (Caller(Identity(name, "", (), {})) for name in ("ann", "bob"))
GRAPHS = DEPLOYMENTS.resource
LIST = ResourceAttributes("list", GRAPHS, "ns")
ACTS = {
    "list": LIST,
    "delete": ResourceAttributes("delete", GRAPHS, "ns"),
    "log": ResourceAttributes("get", PODS, "ns", subresource="log"),
    "nodes": ResourceAttributes("list", NODES),
    "elsewhere": ResourceAttributes("list", GRAPHS, "other"),
}
ELSEWHERE = [("list", "nodes", ""), ("list", "dynamographdeployments", "other")]
READER = {"verbs": ["list"], "apiGroups": ["nvidia.com"], "resources": ["dynamographdeployments"]}


class Reviewing:
    """An API server: the status of its rules reviews, or the error, and what its access reviews allow."""

    def __init__(self, status: Any, *allowed: tuple[str, str, str]) -> None:
        self.status = status
        self.allowed = set(allowed)
        self.asked: list[Any] = []

    async def create(self, resource: Resource, review: dict[str, Any]) -> dict[str, Any]:
        spec = review["spec"]
        if resource is RULES_REVIEWS:
            self.asked.append(spec["namespace"])
            if isinstance(self.status, Exception):
                raise self.status
            return {"status": self.status}
        act = spec["resourceAttributes"]
        asked = act["verb"], act["resource"], act.get("namespace", "")
        self.asked.append(asked)
        return {"status": {"allowed": asked in self.allowed}}


async def allowed(kube: Reviewing, caller: Caller = ANN) -> dict[str, bool]:
    return await Access(cast("Any", kube), 60.0).allowed(caller, cast("Any", kube), "ns", ACTS)


@pytest.mark.parametrize(
    ("rule", "held"),
    [
        ({}, ["list"]),
        ({"verbs": ["*"]}, ["list", "delete"]),
        ({"apiGroups": ["*"]}, ["list"]),
        ({"apiGroups": ["", "apps"]}, []),
        ({"resources": ["*"]}, ["list"]),
        ({"resources": ["dynamographdeployments/status", "dynamographdeployments/*"]}, []),
        ({"resourceNames": ["one"]}, []),
        ({"resourceNames": []}, ["list"]),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, []),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}, ["log"]),
        ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, ["log"]),
        ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, ["list", "delete", "log"]),
        ({"verbs": None, "apiGroups": None, "resources": None}, []),
    ],
)
async def test_a_rule_grants_what_the_api_server_reads_in_it(rule: dict[str, Any], held: list[str]) -> None:
    kube = Reviewing({"resourceRules": [{**READER, **rule}], "incomplete": False})
    assert [name for name, may in (await allowed(kube)).items() if may] == held
    # A role of a namespace grants nothing of the cluster, or in another namespace, whatever it says.
    assert kube.asked == ["ns", *ELSEWHERE]


def test_a_rule_for_names_grants_these() -> None:
    rules = [{**READER, "verbs": ["get"], "resourceNames": ["one"]}]
    assert [grants(rules, "get", GRAPHS, name=name) for name in ("one", "two", "")] == [True, False, False]


@pytest.mark.parametrize(
    "status",
    [
        {"resourceRules": [{**READER, "verbs": ["*"]}], "incomplete": True},
        {"resourceRules": [{**READER, "verbs": ["*"]}], "evaluationError": "webhook does not support rules"},
        {"resourceRules": [{**READER, "verbs": ["*"]}] * 5000},
        {"resourceRules": [{**READER, "verbs": ["*"], "resourceNames": ["x"] * 30_000}, {**READER, "verbs": ["*"]}]},
        {},
        Forbidden(403, "Forbidden", "no"),
        ResponseTooLarge(200, "ResponseTooLarge", "64 MiB"),
    ],
    ids=["incomplete", "an error", "many", "long", "no rules", "not allowed", "too large"],
)
async def test_with_incomplete_rules_each_act_has_its_own_review(status: Any) -> None:
    """A webhook may deny what a role grants: what its rules say is not used."""
    kube = Reviewing(status, ("list", "dynamographdeployments", "ns"))
    assert await allowed(kube) == {name: name == "list" for name in ACTS}
    assert len(kube.asked) == 1 + len(ACTS)


@pytest.mark.parametrize(
    ("extra", "first"),
    [
        ("scopes.authorization.openshift.io", ("list", "dynamographdeployments", "ns")),
        ("authentication.kubernetes.io/pod-name", "ns"),
    ],
)
async def test_rules_are_not_used_for_callers_whose_extras_may_narrow_them(extra: str, first: Any) -> None:
    """A token of OpenShift for `role:system:basic-user:*` may ask for rules, and may nothing of what they say."""
    kube = Reviewing({"resourceRules": [{**READER, "verbs": ["*"]}], "incomplete": False})
    held = await allowed(kube, Caller(Identity("ann", "", (), {extra: ("role:system:basic-user:*",)})))
    assert kube.asked[0] == first
    assert held["list"] is (first == "ns")


async def test_answers_are_remembered_for_one_caller() -> None:
    kube = Reviewing({"resourceRules": [READER], "incomplete": False})
    access = Access(cast("Any", kube), 60.0)
    for _ in range(2):
        assert (await access.allowed(ANN, cast("Any", kube), "ns", ACTS))["list"]
    assert (await access.may(ANN, LIST)).allowed
    assert kube.asked == ["ns", *ELSEWHERE]
    kube.status = {"resourceRules": []}
    assert not (await access.allowed(BOB, cast("Any", kube), "ns", ACTS))["list"]


async def test_remembered_answers_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: moment)
    kube = Reviewing({"resourceRules": [READER]})
    access = Access(cast("Any", kube), 60.0)
    everywhere = LIST._replace(namespace="")
    kube.allowed = {("list", "dynamographdeployments", "a")}
    assert (await access.allowed(ANN, cast("Any", kube), "ns", ACTS))["list"]
    assert await access.where(ANN, everywhere, {"a", "b"}) == ["a"]
    kube.status, kube.allowed = {"resourceRules": []}, set()
    moment = 59.0
    assert (await access.allowed(ANN, cast("Any", kube), "ns", ACTS))["list"]
    assert await access.where(ANN, everywhere, {"a", "b"}) == ["a"]
    moment = 60.0
    assert not (await access.allowed(ANN, cast("Any", kube), "ns", ACTS))["list"]
    assert await access.where(ANN, everywhere, {"a", "b"}) == []


async def test_without_the_api_server_no_right_is_assumed() -> None:
    with pytest.raises(Unavailable):
        await allowed(Reviewing(Unavailable(503, "", "not now")))


async def test_a_right_in_all_namespaces_needs_no_review_for_each() -> None:
    kube = Reviewing({}, ("list", "dynamographdeployments", ""))
    access = Access(cast("Any", kube), 60.0)
    assert await access.where(ANN, LIST._replace(namespace=""), {"b", "a"}) == ["a", "b"]
    assert kube.asked == [("list", "dynamographdeployments", "")]


async def test_only_new_namespaces_are_reviewed() -> None:
    kube = Reviewing({}, *(("list", "dynamographdeployments", name) for name in ("a", "new")))
    access = Access(cast("Any", kube), 60.0)
    everywhere = LIST._replace(namespace="")
    assert await access.where(ANN, everywhere, ["b", "a"]) == ["a"]
    before = len(kube.asked)
    assert await access.where(ANN, everywhere, ["b", "a", "new"]) == ["a", "new"]
    assert [namespace for _, _, namespace in kube.asked[before:]] == ["new"]
    assert await access.where(ANN, everywhere, ["b"]) == []


async def test_concurrent_reviews_are_limited_and_end_at_the_first_failure() -> None:
    """Of thousands of namespaces each waited for its time-out where the API server was away."""
    under_way: list[int] = []

    class Failing(Reviewing):
        async def create(self, resource: Resource, review: dict[str, Any]) -> dict[str, Any]:
            answer = await super().create(resource, review)
            if not review["spec"]["resourceAttributes"].get("namespace"):
                return answer
            under_way.append(1)
            await asyncio.sleep(0)
            raise Unavailable(503, "", "not now")

    kube = Failing({})
    names = [f"n{number}" for number in range(1000)]
    with pytest.raises(Unavailable):
        await Access(cast("Any", kube), 60.0).where(ANN, LIST._replace(namespace=""), names)
    assert len(under_way) < 2 * access_module._EACH_AT_ONCE
