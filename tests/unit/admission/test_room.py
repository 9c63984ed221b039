"""Places, memory and turns of a replica, for clients that want all of them and for the API server."""

import asyncio
from contextlib import ExitStack

import pytest
from dynamo_admission import room
from dynamo_admission.room import Busy, Room
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Gauge

from tests.building.waiting import turns

API_SERVER = "10.0.0.1"
LARGE = room.LARGE_BODY + 1


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def rooms(registry: CollectorRegistry) -> Room:
    return Room(Gauge("in_flight", "Requests.", registry=registry))


def test_a_client_alone_may_have_all_places(rooms: Room, registry: CollectorRegistry) -> None:
    with ExitStack() as held:
        for _ in range(4):
            held.enter_context(rooms.place(API_SERVER, 4))
        with pytest.raises(Busy, match="4 requests are in progress"):
            rooms.check(API_SERVER, 4)
        assert registry.get_sample_value("in_flight") == 4
    assert registry.get_sample_value("in_flight") == 0
    rooms.check(API_SERVER, 1)


@pytest.mark.parametrize(("pods", "share"), [(1, 32), (3, 16), (63, 1), (200, 1)])
def test_pods_that_have_all_places_leave_the_api_server_its_share(rooms: Room, pods: int, share: int) -> None:
    with ExitStack() as held:
        for number in range(max(64, pods)):
            held.enter_context(rooms.place(f"pod-{number % pods}", 64))
        for _ in range(share):
            held.enter_context(rooms.place(API_SERVER, 64))
        with pytest.raises(Busy):
            rooms.check(API_SERVER, 64)


async def test_pods_with_all_memory_lose_it_to_the_api_server(rooms: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LARGE_OF_ALL", 100)
    lost, held = list[tuple[str, int]](), asyncio.Event()

    async def hold(client: str, size: int) -> None:
        try:
            async with rooms.large_body(client, size):
                await held.wait()
        except Busy:
            lost.append((client, size))

    async with asyncio.TaskGroup() as tasks:
        for client, size in (("pod-1", 30), ("pod-2", 25), ("pod-2", 20), ("pod-3", 20)):
            tasks.create_task(hold(client, size))
            await asyncio.sleep(0)
        async with rooms.large_body(API_SERVER, 20):
            await asyncio.sleep(0.001)
            assert lost == [("pod-2", 25)]
        held.set()
    assert lost == [("pod-2", 25)]
    async with rooms.large_body("pod-2", 100):
        pass


async def test_a_body_that_leaves_late_takes_nothing_from_the_count(
    rooms: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each client had a list: the last of its old bodies dropped the list with the new ones, which then took memory that
    no one counted.
    """
    monkeypatch.setattr(room, "LARGE_OF_ALL", 100)
    lost, held, may_leave = list[str](), asyncio.Event(), asyncio.Event()

    async def hold(name: str, size: int, *, late: bool = False) -> None:
        try:
            async with rooms.large_body("pod", size):
                try:
                    await held.wait()
                except asyncio.CancelledError:
                    if late:
                        await may_leave.wait()
                    raise
        except Busy:
            lost.append(name)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(hold("first", 50))
        tasks.create_task(hold("late", 50, late=True))
        await turns()
        async with rooms.large_body(API_SERVER, 40), rooms.large_body("other", 20):
            await turns()
        tasks.create_task(hold("new", 90))
        await turns()
        may_leave.set()
        await turns()
        async with rooms.large_body(API_SERVER, 60):
            await turns()
        held.set()
    assert lost == ["first", "late", "new"]


async def test_a_client_with_the_most_memory_is_refused(rooms: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LARGE_OF_ALL", 100)
    async with rooms.large_body("pod-1", 60), rooms.large_body("pod-2", 30):
        with pytest.raises(Busy):
            async with rooms.large_body("pod-1", 20):
                pass
        with pytest.raises(TimeoutError):
            async with rooms.large_body("pod-3", 5), asyncio.timeout(0):
                await asyncio.sleep(3600)


@given(st.lists(st.tuples(st.sampled_from("abcde"), st.integers(1, 60)), max_size=30))
async def test_memory_is_never_exceeded(bodies: list[tuple[str, int]]) -> None:
    rooms = Room(Gauge("in_flight", "Requests.", registry=CollectorRegistry()))
    held, most, ends = 0, 0, asyncio.Event()

    async def hold(client: str, size: int) -> None:
        nonlocal held, most
        try:
            async with rooms.large_body(client, size << 20):
                held += size
                try:
                    await ends.wait()
                finally:
                    held -= size
        except Busy:
            pass

    async with asyncio.TaskGroup() as tasks:
        for client, size in bodies:
            tasks.create_task(hold(client, size))
            for _ in range(4):
                await asyncio.sleep(0)
            most = max(most, held)
        ends.set()
    assert most <= room.LARGE_OF_ALL >> 20


async def test_clients_take_turns(rooms: Room) -> None:
    """A pod that sends a thousand reviews of 5 ms at once must not delay the API server by five seconds."""
    turns = list[str]()

    async def work(client: str) -> None:
        async with rooms.turn(client, 1, str) as run:
            await run(lambda: turns.append(client))

    await asyncio.gather(*(work("pod") for _ in range(10)), work(API_SERVER))
    assert turns.index(API_SERVER) == 1


async def test_namespaces_of_a_client_share_its_turns_at_large_bodies(rooms: Room) -> None:
    """A pod may name any namespace in its reviews."""
    turns, go_on = list[str](), asyncio.Event()

    async def work(client: str, namespace: str) -> None:
        async with rooms.turn(client, LARGE, lambda: namespace):
            turns.append(client)
            await go_on.wait()

    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            tasks.create_task(work("pod", f"team-{number}"))
        tasks.create_task(work(API_SERVER, "team-1"))
        await asyncio.sleep(0)
        assert turns == ["pod", "pod"]
        go_on.set()
    assert turns.index(API_SERVER) <= 4


async def test_large_bodies_of_one_namespace_wait_alone(rooms: Room) -> None:
    async with asyncio.TaskGroup() as tasks:
        go_on = asyncio.Event()

        async def work() -> None:
            async with rooms.turn(API_SERVER, LARGE, lambda: "team"):
                await go_on.wait()

        for _ in range(room.LARGE_OF_ONE):
            tasks.create_task(work())
        await asyncio.sleep(0)
        with pytest.raises(Busy, match="about namespace team"):
            async with rooms.turn(API_SERVER, LARGE, lambda: "team"):
                pass
        async with rooms.turn(API_SERVER, LARGE, lambda: "other"):
            go_on.set()
