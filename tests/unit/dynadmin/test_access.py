"""What callers may do is asked of the API server once for all who want to know at the same time."""

import asyncio
from typing import Any, cast

from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.identity.access import Access, AccessVerdict, ResourceAttributes
from dynamo_dynadmin.identity.who import Caller
from dynamo_shared.kube import Identity, Unavailable

LIST = ResourceAttributes("list", DEPLOYMENTS.resource, "ns")
ANN = Caller(Identity("ann", "", (), {}))


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
