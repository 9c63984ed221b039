"""What callers may do is asked of the API server once for all who want to know at the same time."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.identity import access as module
from dynamo_dynadmin.identity.access import Access, AccessVerdict, ResourceAttributes
from dynamo_dynadmin.identity.who import Caller
from dynamo_shared.kube import Identity, Unavailable

from tests.building.waiting import turns

LIST = ResourceAttributes("list", DEPLOYMENTS.resource, "ns")
ANN, MALLORY = Caller(Identity("ann", "", (), {})), Caller(Identity("mallory"))


class Kube:
    """Answers reviews; `fails` says whether it answers that it cannot."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked = 0
        self.fails = fails

    async def create(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.fails:
            raise Unavailable(503, "", "not now")
        return {"status": {"allowed": True, "reason": "so"}}


async def answers(access: Access, count: int) -> list[Any]:
    return await asyncio.gather(*(access.may(ANN, LIST) for _ in range(count)), return_exceptions=True)


async def test_callers_share_an_answer_which_is_remembered() -> None:
    kube = Kube()
    access = Access(cast("Any", kube), 60.0)
    assert await answers(access, 5) == [AccessVerdict(allowed=True, reason="so")] * 5
    await access.may(ANN, LIST)
    assert kube.asked == 1
    await access.may(ANN, LIST, again=True)
    assert kube.asked == 2


async def test_callers_share_a_failure_which_is_not_remembered() -> None:
    """Where each asked for itself after a time-out, the last of a page's would wait for all of them."""
    kube = Kube(fails=True)
    access = Access(cast("Any", kube), 60.0)
    assert {str(each) for each in await answers(access, 5)} == {str(Unavailable(503, "", "not now"))}
    assert kube.asked == 1
    kube.fails = False
    assert (await access.may(ANN, LIST)).allowed


async def test_a_user_with_many_tokens_displaces_only_answers_of_the_same_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each token of a service account is an identity of its own, and its owner creates thousands."""
    monkeypatch.setattr(module, "_ENTRIES", 4)
    kube = Kube()
    access = Access(cast("Any", kube), 60.0)
    await access.may(ANN, LIST)
    for number in range(8):
        await access.may(Caller(Identity(f"system:serviceaccount:team:owner-{number}")), LIST)
    await access.may(ANN, LIST)
    assert kube.asked == 1 + 8


async def test_reviews_of_a_user_with_many_do_not_delay_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ALL_AT_ONCE", 1)
    monkeypatch.setattr(module, "_EACH_AT_ONCE", 1)
    users, may_answer = list[str](), asyncio.Event()

    async def create(_: Any, review: dict[str, Any]) -> dict[str, Any]:
        in_namespace = "namespace" in review["spec"]["resourceAttributes"]
        if in_namespace:
            users.append(review["spec"]["user"])
            await may_answer.wait()
        return {"status": {"allowed": in_namespace}}

    access, act = Access(cast("Any", SimpleNamespace(create=create)), 60.0), LIST._replace(namespace="")
    many = [asyncio.create_task(access.where(MALLORY, act._replace(verb=str(n)), ["a", "b"])) for n in range(5)]
    await turns()
    few = asyncio.create_task(access.where(ANN, act, ["a"]))
    await turns()
    may_answer.set()
    await asyncio.gather(few, *many)
    # One is in progress, and one comes next.
    assert users.index("ann") <= 2
