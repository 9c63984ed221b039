"""The reflector after the data store of the API server was restored from a backup."""

import math
from typing import Any

import pytest
from dynamo_shared.kube import reflector

from . import steps
from .followed import Followed, bookmark, event, failure, listed, pod


@pytest.mark.parametrize(
    "sign",
    [
        event("ADDED", pod("x", 2)),
        failure(504, "Timeout", details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "too large"}]}),
    ],
)
async def test_a_restored_data_store_is_listed_again(server: Any, sign: dict[str, Any]) -> None:
    server.then(
        steps.answer(listed(500, pod("a", 400))),
        steps.watch(sign),
        steps.answer(listed(3, pod("x", 2))),
        steps.watch(then="hang"),
    )
    assert await Followed(server).take(5) == ["ADDED a@400", "SYNCED 500", "ADDED x@2", "DELETED a@3", "SYNCED 3"]


async def test_a_restored_server_that_has_passed_the_known_version_is_detected_soon(server: Any) -> None:
    server.then(
        steps.answer(listed(20, pod("a", 3), pod("b", 15))),
        steps.watch(then="break"),
        # Restored to 10, and at 25 now: "b" never existed, and no watch from 20 on reports "c".
        steps.answer(listed(25)),
        steps.watch(event("ADDED", pod("d", 26))),
        steps.answer(listed(26, pod("a", 3), pod("c", 18), pod("d", 26))),
        steps.answer(listed(26, pod("a", 3), pod("c", 18), pod("d", 26))),
        steps.watch(then="hang"),
    )
    followed = Followed(server, compare=True)
    assert await followed.take(7) == [
        *("ADDED a@3", "ADDED b@15", "SYNCED 20"),
        *("ADDED d@26", "ADDED c@18", "DELETED b@26", "SYNCED 26"),
    ]
    first, resumed = (server.requests[number].query for number in (1, 3))
    assert int(first["timeoutSeconds"]) >= 200
    assert 10 <= int(resumed["timeoutSeconds"]) <= 20


@pytest.mark.parametrize("compared_a_second", [math.inf, 1e-6], ids=["compared", "not-compared"])
async def test_a_restore_between_two_watches_is_detected_before_the_second(
    compared_a_second: float, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shutdown ends watches normally, and a request that is retried until the server is back hides it."""
    monkeypatch.setattr(reflector, "COMPARED_A_SECOND", compared_a_second)
    server.then(
        steps.answer(listed(20, pod("a", 2))),
        steps.watch(bookmark(21)),
        # Restored to 3, with the same object. A watch from 21 on would not report "b".
        steps.answer(listed(3, pod("a", 2))),
        steps.answer(listed(4, pod("a", 2), pod("b", 4))),
        steps.watch(then="hang"),
    )
    followed = Followed(server, compare=True)
    assert await followed.take(4) == ["ADDED a@2", "SYNCED 20", "ADDED b@4", "SYNCED 4"]


async def test_many_objects_are_compared_only_now_and_then_and_after_an_interruption(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reflector, "COMPARED_A_SECOND", 1e-6)
    server.then(
        steps.answer(listed(5, pod("a", 3))),
        steps.watch(bookmark(6)),
        # Between two consecutive watches only the resourceVersion is read.
        steps.answer(listed(6)),
        steps.watch(bookmark(7), then="break"),
        steps.answer(listed(8)),
        steps.watch(bookmark(9)),
        steps.answer(listed(9, pod("a", 3))),
        steps.watch(event("ADDED", pod("b", 10)), then="hang"),
    )
    followed = Followed(server, compare=True)
    assert await followed.take(3) == ["ADDED a@3", "SYNCED 5", "ADDED b@10"]
    assert [each.query.get("watch", "list") for each in server.requests] == [
        *("list", "true", "list", "true", "list", "true", "list", "true")
    ]
