"""Simulations take turns: one of a user at once, a few of all users, and no endless queue."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dynamo_dynadmin.api import decisions
from dynamo_dynadmin.api.chat import OF_A_USER, Chat
from dynamo_dynadmin.api.decisions import DecisionReader
from dynamo_dynadmin.api.estimates import Estimates
from dynamo_dynadmin.api.kinds import DEPLOYMENTS
from dynamo_dynadmin.api.logs import OF_A_USER as LOGS_OF_A_USER
from dynamo_dynadmin.api.logs import Logs
from dynamo_dynadmin.api.turns import OF_ONE, CallerSlots, ConcurrencyLimit
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.streaming import StreamEnded
from dynamo_dynadmin.identity.who import Caller, identity_of
from dynamo_shared.aio import ended
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey

from tests.building.waiting import turns

from .test_log_following import RUNNING, pod


class Work:
    def __init__(self, slots: CallerSlots, user: str) -> None:
        self.started = asyncio.Event()
        self.end = asyncio.Event()
        self.task = asyncio.create_task(self._run(slots, user))

    async def _run(self, slots: CallerSlots, user: str) -> None:
        async with slots.taken(user):
            self.started.set()
            await self.end.wait()


async def test_a_user_with_many_tasks_delays_only_themselves() -> None:
    slots = CallerSlots("simulations", 2, 10)
    many = [Work(slots, "ann") for _ in range(4)]
    other = Work(slots, "bob")
    await turns()
    assert [each.started.is_set() for each in (*many, other)] == [True, False, False, False, True]
    third = Work(slots, "cat")
    await turns()
    assert not third.started.is_set(), "two work at once"
    other.end.set()
    await turns()
    assert third.started.is_set()
    for each in (*many, third):
        each.end.set()
    await asyncio.gather(*(each.task for each in (*many, other, third)))


async def test_tasks_beyond_the_queue_are_refused_until_later() -> None:
    slots = CallerSlots("simulations", 1, 1)
    working = Work(slots, "ann")
    await turns()
    waiting = Work(slots, "bob")
    await turns()
    with pytest.raises(ProblemError) as refused:
        async with slots.taken("cat"):
            pass
    assert (refused.value.status, refused.value.headers["Retry-After"]) == (429, "5")
    waiting.task.cancel()
    await asyncio.wait([waiting.task])
    next_one = Work(slots, "cat")
    working.end.set()
    await turns()
    assert next_one.started.is_set(), "who left is not counted"
    next_one.end.set()
    await asyncio.gather(working.task, next_one.task)


async def test_one_caller_does_not_fill_the_queue() -> None:
    slots = CallerSlots("simulations", 4)
    many = [Work(slots, "ann") for _ in range(100)]
    await turns()
    refused = {str(each.task.exception()) for each in many if each.task.done()}
    assert refused == {f"{OF_ONE} simulations of yours are waiting; retry later"}
    assert sum(not each.task.done() for each in many) == OF_ONE
    other = Work(slots, "bob")
    await turns()
    assert other.started.is_set()
    await ended(*(each.task for each in (*many, other) if not each.task.done()))


async def test_one_caller_does_not_keep_others_from_their_histories() -> None:
    """While NATS is slow, eight requests of one caller took all places."""
    subscribed: list[asyncio.Event] = []

    class SlowBus:
        async def subscribe(self, *_: Any, **__: Any) -> None:
            subscribed.append(asyncio.Event())
            await subscribed[-1].wait()

    reader = DecisionReader(cast(Any, SlowBus()), "c", cast(Any, None))

    def history(user: str) -> asyncio.Task[Any]:
        call = SimpleNamespace(caller=SimpleNamespace(limit_key=user))
        return asyncio.create_task(reader.history(cast(Any, call), ObjectKey("n", "g"), "u", 1))

    many = [history("ann") for _ in range(10)]
    await turns()
    assert len(subscribed) == 1
    other = history("bob")
    await turns()
    assert len(subscribed) == 2
    await ended(*many, other)


async def test_a_late_history_is_reported_as_a_fault_of_nats() -> None:
    """The words of a time-out are empty."""

    class SilentBus:
        async def subscribe(self, *_: Any, **__: Any) -> None:
            raise TimeoutError

    reader = DecisionReader(cast(Any, SilentBus()), "c", cast(Any, None))
    call = SimpleNamespace(caller=SimpleNamespace(limit_key="ann"))
    with pytest.raises(ProblemError, match=r"cannot be read now: NATS does not answer$"):
        await reader.history(cast(Any, call), ObjectKey("n", "g"), "u", 1)


async def test_a_history_whose_turn_does_not_come_does_not_blame_nats(monkeypatch: pytest.MonkeyPatch) -> None:
    class SilentBus:
        async def subscribe(self, *_: Any, **__: Any) -> None:
            await asyncio.Event().wait()

    reader = DecisionReader(cast(Any, SilentBus()), "c", cast(Any, None))
    call: Any = SimpleNamespace(caller=SimpleNamespace(limit_key="ann"))
    first = asyncio.create_task(reader.history(call, ObjectKey("n", "g"), "u", 1))
    await turns()
    monkeypatch.setattr(decisions, "_WITHIN", 0.0)
    with pytest.raises(ProblemError, match=r"cannot be read now: other histories are read first; retry later$"):
        await reader.history(call, ObjectKey("n", "g"), "u", 1)
    await ended(first)


class SlowStream:
    """A client that reads nothing while the simulation runs."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []
        self.kept = 0

    def timeout(self) -> float:
        return 0.0

    async def keep(self) -> None:
        self.kept += 1
        assert self.kept < 1000, "the stream has no end"
        await asyncio.sleep(0)

    async def send(self, event: str, data: Any) -> None:
        self.sent.append((event, data))


async def streamed(simulate: Any, stream: Any) -> None:
    """An estimate as a stream."""
    estimating = Estimates(
        cast(Any, None),
        cast(Any, None),
        cast(Any, None),
        platform=cast(Any, None),
        simulation=None,
        turns=CallerSlots("simulations", 4),
        within=60,
    )
    await estimating._streamed(partial(estimating._answer, "ada", "key", simulate, []), stream)


async def test_a_client_that_reads_slowly_gets_the_newest_reports_and_the_end():
    async def chatty(report: Any) -> dict[str, Any]:
        for number in range(1000):
            report("progress", {"phase": number})
        return {"notes": []}

    stream = SlowStream()
    await streamed(chatty, stream)
    *reports, estimate, end = stream.sent
    assert ("progress", {"phase": 999}) in reports
    assert (estimate[0], end) == ("estimate", ("end", {}))


async def test_rights_are_reviewed_while_progress_is_reported() -> None:
    """A simulation that reports all the time left no silence to ask in."""

    async def chatty(report: Any) -> None:
        while True:
            report("progress", {})
            await asyncio.sleep(0)

    class LosingRights(SlowStream):
        def timeout(self) -> float:
            return 1.0

        async def keep(self) -> None:
            if len(self.sent) == 3:
                raise StreamEnded("unauthorized", "ada may no longer")

    with pytest.raises(StreamEnded, match="no longer"):
        async with asyncio.timeout(60):
            await streamed(chatty, LosingRights())


def refusal_of(at_once: ConcurrencyLimit, user: str) -> ProblemError:
    with pytest.raises(ProblemError) as refused, at_once.taken(user):
        pass
    return refused.value


def test_concurrent_tasks_of_a_user_and_of_all_users_are_limited() -> None:
    chats = ConcurrencyLimit("chats", of_a_user=2, total=3)
    with chats.taken("ann"), chats.taken("ann"):
        refused = refusal_of(chats, "ann")
        assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
        assert refused.detail == "2 chats of yours are in progress, the limit of a user; wait for one to end"
        with chats.taken("bob"):
            refused = refusal_of(chats, "cat")
            assert (refused.status, refused.headers["Retry-After"]) == (429, "5")
            assert refused.detail == "3 chats are in progress, the limit of all users; retry later"
        with chats.taken("cat"):
            pass
    with pytest.raises(ZeroDivisionError), chats.taken("ann"):
        raise ZeroDivisionError
    with chats.taken("ann"), chats.taken("ann"):
        pass


class Endless:
    """An API server with the log of a container, and the answer of a frontend, that do not end."""

    def __init__(self) -> None:
        self.opened = 0

    @asynccontextmanager
    async def stream_log(self, *_: object, **__: object) -> AsyncIterator[Any]:
        self.opened += 1
        await asyncio.Event().wait()
        yield None

    service_proxy = stream_log

    async def get(self, *_: object) -> KubeObject:
        return {"spec": {"components": [{"name": "Frontend", "type": "frontend"}]}}


def call_of(user: str, kube: Endless) -> Any:
    async def body() -> KubeObject:
        return {"model": "m", "messages": [{"role": "user", "content": "hello"}]}

    request = SimpleNamespace(headers={})
    # Each request has a token of its own: Kubernetes gives as many as are asked for.
    token = {"authentication.kubernetes.io/credential-id": (f"JTI={uuid.uuid4()}",)}
    return SimpleNamespace(
        caller=Caller(identity_of(user, "", (), token)),
        kube=kube,
        namespace="n",
        name="g",
        object=body,
        request=request,
        text=lambda _: "",
        flag=lambda _: False,
    )


async def allowed(*_: object) -> None:
    return None


@pytest.mark.parametrize("what", ["chats", "answers with logs"])
async def test_chats_and_logs_of_a_user_are_bounded_across_requests(what: str) -> None:
    kube, rights = Endless(), SimpleNamespace(require=allowed)
    chat = Chat(cast("Any", rights), cast("Any", None), 600.0, cast("Any", allowed))

    async def pods(*_: object) -> list[KubeObject]:
        return [pod("p", RUNNING)]

    hub = SimpleNamespace(entries=lambda _: {})
    logs = Logs(cast("Any", hub), cast("Any", SimpleNamespace(pods_of=pods)), cast("Any", rights), cast("Any", None))

    def asked(user: str) -> Coroutine[Any, Any, Any]:
        call = call_of(user, kube)
        return chat.chat(call) if what == "chats" else logs.logs(call, DEPLOYMENTS)

    most = OF_A_USER if what == "chats" else LOGS_OF_A_USER
    open_ = [asyncio.create_task(asked("ann")) for _ in range(most)]
    await turns()
    assert kube.opened == most
    with pytest.raises(ProblemError) as refused:
        await asked("ann")
    assert (refused.value.status, refused.value.detail.partition(" of yours")[0]) == (429, f"{most} {what}")
    open_.append(asyncio.create_task(asked("bob")))
    await turns()
    assert kube.opened == most + 1
    for each in open_:
        await ended(each)
    again = asyncio.create_task(asked("ann"))
    await turns()
    assert kube.opened == most + 2
    await ended(again)
