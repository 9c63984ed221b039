"""Whatever happens to replicas, Secret and registration, served certificates can be verified, and replicas agree."""

import asyncio

from hypothesis import HealthCheck, event, example, given
from hypothesis import strategies as st

from tests.examples import examples

from .certificates import START
from .world import TICK, TIMING, World, served

REPLICAS = 3
EVENTS = (
    *("nothing", "nothing", "sleep", "sleep", "restart", "cut off"),
    *("failing", "unheard", "slow", "check", "force", "delete"),
)

steps = st.lists(
    st.tuples(st.sampled_from(EVENTS), st.integers(0, REPLICAS - 1), st.integers(1, 12)), min_size=20, max_size=120
)


@examples(5, suppress_health_check=[HealthCheck.too_slow])
@given(steps)
@example([("nothing", 0, 6), ("sleep", 0, 10), ("sleep", 0, 11), ("failing", 0, 1), ("sleep", 0, 12), ("delete", 0, 1)])
def test_no_handshake_fails(story: list[tuple[str, int, int]]) -> None:
    with asyncio.Runner() as runner:
        runner.run(_play(story))


async def _play(story: list[tuple[str, int, int]]) -> None:
    world = World()
    for number in range(REPLICAS):
        await world.start(number)
    try:
        for happening, number, size in story:
            await _happen(world, happening, number, size)
        for _ in range(int(3 * (TIMING.settle + TIMING.overlap) / TICK)):
            await world.tick()
        # What became due in the last of these ticks is done within two polls.
        for _ in range(int(2 * TIMING.poll / TICK)):
            if not world.quiet:
                await world.tick()
        assert world.quiet, "everything is reported, and all replicas agree"
        event(f"authorities: {min(len(world.authorities), 5)}")
    finally:
        await world.end()


async def _happen(world: World, happening: str, number: int, size: int) -> None:
    replica = world.replicas.get(number)
    if happening == "sleep" and world.idle_for(size * 25.0):
        # Nothing is in progress, so nothing happens in between.
        await world.tick(size * 25.0)
        return
    if replica is not None:
        match happening:
            case "restart" if world.whole and world.store.content is not None:
                world.stop(number, size * TICK)
            case "cut off" if world.whole:
                world.cut_off(number, size * TICK)
            case "failing":
                replica.network.failing = True
            case "unheard":
                replica.network.unheard = True
            case "slow":
                replica.delay = (size % 3) * TICK
            case "check":
                world.check(number)
            case "force" if world.store.content is not None:
                world.store.forced = True
            case "delete" if world.whole:
                world.store.set(None)
    for _ in range(size):
        await world.tick()


async def test_a_ca_is_replaced_in_time_while_nothing_else_happens() -> None:
    world = World()
    for number in range(REPLICAS):
        await world.start(number)
    first = served(world.replicas[0])
    try:
        while world.clock.now < START + 2 * TIMING.authority:
            await world.tick(60.0 if world.idle_for(60.0) else TICK)
        assert len(world.authorities) == 3, "after two thirds of the life of each"
        assert served(world.replicas[0]) != first
        assert world.store.writes < 20, "only what is due is written"
    finally:
        await world.end()
