"""Fairness: however many keys a namespace has, those of others get their turn, their own retry delays, and a worker."""

import asyncio
from collections import Counter, defaultdict

from dynamo_shared.aio import Turns, ended
from dynamo_shared.runtime.metrics import Metrics
from dynamo_shared.runtime.ratelimit import Budgets
from dynamo_shared.runtime.workqueue import HOLD_WITHIN, RETRIES_AT_ONCE, Result, WorkQueue
from hypothesis import given
from hypothesis import strategies as st

from tests.building.clock import ManualClock
from tests.building.waiting import turns


def lane(key: str) -> str:
    return key.partition("/")[0]


def is_urgent(key: str) -> bool:
    return key.endswith("!")


def queue(clock: ManualClock | None = None) -> WorkQueue[str]:
    return WorkQueue(
        metrics=Metrics().queue("test"), clock=clock or ManualClock(), jitter=lambda: 1.0, urgent=is_urgent, lane=lane
    )


async def take(work: WorkQueue[str], count: int) -> list[str]:
    """The next keys; each is handled before the next one is taken."""
    results = []
    for _ in range(count):
        results.append(await work.get())
        work.done(results[-1])
    return results


async def test_a_quiet_namespace_is_next_whatever_a_noisy_one_has() -> None:
    work = queue()
    for number in range(3000):
        work.add(f"noisy/{number}")
    work.add("quiet/a")
    work.add("quiet/b")
    assert await take(work, 5) == ["noisy/0", "quiet/a", "noisy/1", "quiet/b", "noisy/2"]


async def test_failures_of_a_noisy_namespace_do_not_delay_the_retries_of_a_quiet_one() -> None:
    work = queue()
    noisy = [work.retry(f"noisy/{number}") for number in range(5000)]
    assert noisy[RETRIES_AT_ONCE - 1] < 0.01
    assert noisy[-1] > 10
    assert work.retry("quiet/a") < 0.01


async def test_keys_that_are_due_together_take_turns() -> None:
    clock = ManualClock()
    work = queue(clock)
    for number in range(1000):
        work.add(f"noisy/{number}", 1.0)
    work.add("quiet/a", 2.0)
    clock.now += 3
    assert "quiet/a" in await take(work, 2)


async def test_urgent_keys_come_first_and_take_turns() -> None:
    work = queue()
    for key in ("quiet/a", "noisy/1!", "noisy/2!", "noisy/3!", "other/1!"):
        work.add(key)
    assert await work.get() == "noisy/1!"
    # Other keys of other namespaces get every second turn; those of the same namespace wait.
    assert await work.get() == "quiet/a"
    assert [await work.get(), await work.get(), await work.get()] == ["other/1!", "noisy/2!", "noisy/3!"]


async def test_urgent_keys_delay_only_other_keys_of_their_own_namespace_and_not_for_long() -> None:
    clock = ManualClock()
    work = queue(clock)
    work.add("a/1!")
    assert await work.get() == "a/1!"
    work.add("a/rest")
    work.add("b/rest")
    assert await work.get() == "b/rest"
    waiting = asyncio.create_task(work.get())
    await turns()
    assert not waiting.done()
    clock.now += HOLD_WITHIN
    work.add("b/more")
    assert await waiting == "b/more"
    assert await work.get() == "a/rest"


async def test_an_endless_stream_of_urgent_keys_leaves_every_second_turn_to_others() -> None:
    work = queue()
    storm = iter(range(10**6))
    for number in range(50):
        work.add(f"quiet/{number}")
    results: list[str] = []
    while len(results) < 20:
        work.add(f"storm/{next(storm)}!")
        results += await take(work, 1)
    assert sum(lane(key) == "quiet" for key in results) == 10


async def test_hanging_work_of_one_namespace_leaves_workers_for_others() -> None:
    work, released = queue(), asyncio.Event()
    begun: Counter[str] = Counter()

    async def handle(key: str) -> Result:
        begun[lane(key)] += 1
        if lane(key) == "hanging":
            await released.wait()
        return Result()

    running = asyncio.create_task(work.run(8, handle, reserved=2))
    for number in range(100):
        work.add(f"hanging/{number}")
    await turns()
    assert begun == {"hanging": 6}
    for number in range(100):
        work.add(f"quiet/{number}")
    for _ in range(10):
        await turns()
    assert begun == {"hanging": 6, "quiet": 100}
    released.set()
    for _ in range(10):
        await turns()
    assert begun == {"hanging": 100, "quiet": 100}
    await ended(running)


_KEYS = st.builds("{}/{}".format, st.sampled_from("abc"), st.sampled_from(["1", "2", "3!", "4!"]))
_STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "retry"]), _KEYS),
        st.tuples(st.just("take"), st.sampled_from(["any", "urgent"])),
        st.tuples(st.just("done"), st.just("")),
        st.tuples(st.just("drop"), _KEYS),
        st.tuples(st.just("time"), st.just("")),
    ),
    max_size=60,
)


@given(_STEPS, st.sampled_from([0, 1]))
def test_no_key_is_lost_or_handled_twice_at_once(steps: list[tuple[str, str]], reserved: int) -> None:
    """In every order of events, each requested key is finally handled after its request."""

    async def scenario() -> None:
        clock = ManualClock()
        work = queue(clock)
        work._most_of_lane = 2 if reserved else 0
        owed: set[str] = set()
        held: list[str] = []

        def took(key: str) -> None:
            assert key not in held
            held.append(key)
            owed.discard(key)

        async def try_to_take(*, urgent: bool = False) -> bool:
            task = asyncio.create_task(work.get(urgent=urgent))
            await turns()
            if not task.done():
                await ended(task)
                return False
            took(task.result())
            return True

        for step, what in steps:
            if step == "add":
                work.add(what)
                owed.add(what)
            elif step == "retry":
                work.retry(what)
                owed.add(what)
            elif step == "take":
                await try_to_take(urgent=what == "urgent")
            elif step == "done" and held:
                work.done(held.pop(0))
            elif step == "drop" and what not in held:
                await work.drain(lambda key: key == what)  # noqa: B023
                owed.discard(what)
            elif step == "time":
                clock.now += HOLD_WITHIN / 2
        clock.now += 1000
        for _ in range(100):
            if not await try_to_take() and not held:
                break
            if held:
                work.done(held.pop(0))
        assert owed == set()
        assert (len(work), work._urgent_of, work._busy, work._ready._parked) == (0, {}, {}, set())

    asyncio.run(scenario())


@given(st.lists(st.one_of(st.integers(0, 4), st.none()), max_size=200))
def test_no_namespace_waits_for_more_than_one_round(steps: list[int | None]) -> None:
    """A number adds a key to that namespace, None takes one. While one waits, each other one gets at most one turn."""
    work = Turns[tuple[int, int]](lambda key: str(key[0]))
    since: dict[int, Counter[int]] = defaultdict(Counter)
    waiting: Counter[int] = Counter()
    for number, namespace in enumerate(steps):
        if namespace is not None:
            work.add((namespace, number), 0.0)
            waiting[namespace] += 1
        elif len(work):
            (taken, _), _ = work.pop()
            waiting[taken] -= 1
            since.pop(taken, None)
            for other in range(5):
                if other != taken and waiting[other]:
                    since[other][taken] += 1
                    assert since[other][taken] <= 1
    assert len(work) == waiting.total()


def test_keys_of_one_namespace_keep_their_order() -> None:
    work = Turns[str](lane)
    for key in ("a/1", "a/2", "b/1", "a/3"):
        work.add(key, 5.0)
    assert work.discard("a/2")
    assert not work.discard("a/2")
    assert "a/3" in work
    assert [work.pop()[0] for _ in range(len(work))] == ["a/1", "b/1", "a/3"]
    assert not work.available


def test_a_parked_lane_is_skipped_and_keeps_its_keys() -> None:
    work = Turns[str](lane)
    work.park("a", True)
    work.add("a/1", 0.0)
    assert (len(work), work.available) == (1, False)
    work.park("a", False)
    assert work.pop() == ("a/1", 0.0)


def test_retry_budgets_of_namespaces_without_failures_are_forgotten() -> None:
    clock = ManualClock()
    budgets = Budgets(rate=10.0, burst=5, clock=clock)
    for number in range(1000):
        assert budgets.take(f"ns-{number}") == 0.0
        clock.now += 0.05
    assert len(budgets) < 20
    assert [budgets.take("noisy") for _ in range(7)] == [0.0] * 5 + [0.1, 0.2]
    assert budgets.take("quiet") == 0.0
