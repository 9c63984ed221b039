"""Who may read /metrics: the answers, what is cached, and for how long."""

import asyncio
from typing import Any

import pytest
from dynamo_shared.api.resources import TOKEN_REVIEWS, Resource
from dynamo_shared.kube.errors import Unavailable
from dynamo_shared.runtime import scrapers as module
from dynamo_shared.runtime.scrapers import ALLOWED_FOR, AT_ONCE, REFUSED_FOR, WAITING, Scrapers

from tests.building.clock import ManualClock
from tests.building.waiting import turns

AWAY = Unavailable(503, "ServiceUnavailable", "no leader")


class Reviews:
    """An API server with tokens of users, of whom prometheus may read metrics."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def create(self, resource: Resource, review: Any) -> dict[str, Any]:
        spec = review["spec"]
        if resource is not TOKEN_REVIEWS:
            assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            return {"status": {"allowed": spec["user"] == "prometheus"}}
        self.asked.append(spec["token"])
        await self.may_answer.wait()
        if spec["token"] == "away":
            raise AWAY
        known = spec["token"] in ("prometheus", "ann")
        return {"status": {"authenticated": known, "user": {"username": spec["token"]} if known else {}}}


def scrapers(reviews: Reviews, clock: ManualClock) -> Scrapers:
    kube: Any = reviews
    return Scrapers(kube, clock)


@pytest.mark.parametrize(
    ("authorization", "status", "counts"),
    [
        ("Bearer prometheus", 200, ALLOWED_FOR),
        ("bearer  prometheus ", 200, ALLOWED_FOR),
        ("Bearer ann", 403, REFUSED_FOR),
        ("Bearer mallory", 401, REFUSED_FOR),
        # Not cached: it may pass at once.
        ("Bearer away", 503, 0.0),
    ],
)
async def test_an_answer_is_cached_for_a_while(authorization: str, status: int, counts: float) -> None:
    reviews, clock = Reviews(), ManualClock()
    asked = scrapers(reviews, clock)
    assert (await asked.verdict(authorization, "")).status == status
    clock.now += max(0.0, counts - 0.1)
    assert (await asked.verdict(authorization, "")).status == status
    assert len(reviews.asked) == (1 if counts else 2)
    clock.now += 0.2
    await asked.verdict(authorization, "")
    assert len(reviews.asked) == (2 if counts else 3)


@pytest.mark.parametrize("authorization", ["", "Basic cHJvbWV0aGV1cw==", "Bearer ", f"Bearer {'x' * 20_000}"])
async def test_a_scrape_without_a_bearer_token_sends_no_request_to_the_api_server(authorization: str) -> None:
    reviews = Reviews()
    assert (await scrapers(reviews, ManualClock()).verdict(authorization, "")).status == 401
    assert reviews.asked == []


async def test_concurrent_token_reviews_waiting_scrapes_and_cached_answers_are_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ENTRIES", 8)
    reviews = Reviews()
    reviews.may_answer.clear()
    asked = scrapers(reviews, ManualClock())
    waiting = [asyncio.create_task(asked.verdict(f"Bearer t{number}", "pod")) for number in range(WAITING)]
    await turns()
    assert len(reviews.asked) == AT_ONCE
    assert (await asked.verdict("Bearer another", "pod")).status == 503
    reviews.may_answer.set()
    assert {verdict.status for verdict in await asyncio.gather(*waiting)} == {401}
    assert (await asked.verdict("Bearer another", "pod")).status == 401
    assert len(asked._known) == 8


async def test_many_pods_with_invented_tokens_do_not_refuse_prometheus() -> None:
    """Its token is reviewed again each minute, and the scrape of that moment was refused."""
    reviews = Reviews()
    reviews.may_answer.clear()
    asked = scrapers(reviews, ManualClock())
    pods = [asyncio.create_task(asked.verdict(f"Bearer t{n}", f"pod-{n % 4}")) for n in range(2 * WAITING)]
    await turns()
    scrape = asyncio.create_task(asked.verdict("Bearer prometheus", "prometheus"))
    await turns()
    reviews.may_answer.set()
    assert (await scrape).status == 200
    await asyncio.gather(*pods)
    # Two of each of four pods may be under review or come next.
    assert reviews.asked.index("prometheus") <= 2 * 4
