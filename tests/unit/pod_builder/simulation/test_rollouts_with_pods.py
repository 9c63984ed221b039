"""Roll-outs and restarts with pods and limited room: serving pods are kept, all ends, no flapping, explained waits."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from typing import Any

import pytest
from dynamo_pod_builder import rollout
from dynamo_pod_builder.reconcilers.graph import carry_out, report, serving
from dynamo_pod_builder.reconcilers.graph.serving import NO_ROOM
from dynamo_pod_builder.reconcilers.graph.steps import rollout as rollout_step
from dynamo_pod_builder.status.graph import graph_status
from dynamo_shared.api import objects
from dynamo_shared.api.registry.annotations import RESTART_AT
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_COMPONENT_DEPLOYMENTS
from hypothesis import given
from hypothesis import strategies as st

from tests.building.tables import rows
from tests.examples import examples

from .pods import ABSENT, CRASHES, serves
from .rollout import RolloutStory, Worker, room_for

#: The name in its package is that of the step.
restart_step = import_module("dynamo_pod_builder.reconcilers.graph.steps.restart")
COUNT = count()
#: Less than any share of replicas.
NOTHING = 1e-9
NAMES = ("Decode", "Prefill", "Third")
MARGINS = [("25%", "25%"), ("1", "0"), ("0", "1"), ("50%", "50%"), ("2", "0")]
#: Pauses between two changes: pods start, are ready, are admitted by frontends, or have waited long for room.
PAUSES = st.sampled_from([0, 3, 31, 36, 95, 700])


@dataclass(frozen=True)
class Change:
    """A change of the graph, and the seconds that pass afterwards."""

    name: str
    what: Any = None
    component: int = 0
    then: float = 0

    @property
    def is_sudden(self) -> bool:
        """Whether late controllers would act on outdated objects."""
        return self.name not in ("update", "start_again")


def workers(names: Sequence[str] = NAMES, most: int = 4) -> st.SearchStrategy[list[Worker]]:
    def of_name(name: str) -> st.SearchStrategy[Worker]:
        return st.builds(
            lambda replicas, margins, nodes: Worker(
                name, replicas, nodes=nodes, surge=margins[0], unavailable=margins[1]
            ),
            st.integers(1, most),
            st.sampled_from(MARGINS),
            st.sampled_from([1, 1, 1, 2]),
        )

    return st.integers(1, len(names)).flatmap(lambda number: st.tuples(*map(of_name, names[:number]))).map(list)


UPDATES = st.builds(Change, st.just("update"), st.sampled_from([ABSENT, CRASHES, "nowhere", "img:3"]), then=PAUSES)
STARTS = st.builds(Change, st.just("start_again"), then=PAUSES)
SCALES = st.builds(Change, st.just("scale"), st.integers(1, 5), st.integers(0, 2), PAUSES)
FAULTS = st.builds(
    Change, st.sampled_from(["fail", "evict", "delete", "delete_in_foreground"]), st.integers(0, 9), then=PAUSES
)


@asynccontextmanager
async def story(of: Sequence[Worker], **fields: Any) -> AsyncIterator[RolloutStory]:
    made = RolloutStory(of, **fields)
    try:
        assert await made.calm()
        assert made.is_updated
        yield made
    finally:
        await made.close()


async def carry_out_change(of: RolloutStory, change: Change) -> None:
    match change.name:
        case "start_again":
            await of.start_again()
        case "update":
            of.update(change.what)
        case "scale":
            names = list(of.workers)
            of.scale(names[change.component % len(names)], change.what)
        case "delete_in_foreground":
            kinds = (DYNAMO_COMPONENT_DEPLOYMENTS, DEPLOYMENTS)
            there = [each for kind in kinds for each in of.world.stored(kind) if not objects.is_deleting(each)]
            of.pods.delete_in_foreground(there[change.what % len(there)])
        case fault:
            there = [pod for pod in of.pods.all() if serves(pod)]
            if there:
                pod = there[change.what % len(there)]
                {
                    "fail": lambda: of.pods.fail(pod, 20),
                    "evict": lambda: of.pods.evict(pod),
                    "delete": lambda: of.pods.end(pod),
                }[fault]()


def assert_nothing_taken_too_early(of: RolloutStory) -> None:
    """Controllers removed only serving pods that the margins allow, or whose generation did not serve as a whole."""
    for each in of.pods.taken:
        before, after = of.share(each.before), of.share(each.after)
        kept = min(of.promised, before)
        shares = {name: of.share({name: serving}) for name, serving in each.before.items()}
        new = shares.pop(of.generation, 0.0)
        if sum(share > 0 for share in shares.values()) > 1:
            # An update was corrected while it ran: of the former generations only one stays as a whole.
            kept = min(kept, new + max(shares.values()))
        if each.no_room and before > 0:
            # Each component continues its update by itself, and pods that lose their counterparts make way.
            worker = of.workers[each.component]
            kept, after = (
                min(worker.replicas - worker.margins[1], together(each.before, each.component)),
                together(each.after, each.component),
            )
        assert after >= kept - NOTHING, f"{each.component} {each.generation}: {each.before} -> {each.after}"
    of.pods.taken.clear()


def together(serving: dict[str, dict[str, int]], component: str) -> float:
    return sum(each.get(component, 0) for each in serving.values())


async def assert_ended(of: RolloutStory) -> None:
    """The update is over, nothing of another generation is left, and no more is written."""
    assert await of.calm(), of.ready
    assert of.is_updated, (of.ready, of.pods.serving())
    assert of.leftovers() == set()
    (serving,) = of.pods.serving().values()
    assert serving == {name: each.replicas for name, each in of.workers.items()}
    assert await of.repeat() == []


def assert_reasons_are_given(of: RolloutStory) -> None:
    """If an update waits for a user to make room, and old pods have that room, the condition says so."""
    message, new = of.ready.get("message", ""), of.generation
    has_room = any(sum(each.values()) for name, each in of.pods.serving().items() if name not in ("", new))
    waits = has_room and of.pods.lacks_room() and of.clock.now > of.moved_at + 60
    assert not waits or "may not delete another old pod before a new pod serves" in message, message


async def roll_out(
    of: Sequence[Worker], changes: Sequence[Change], spare: int, seed: int, *, late: bool = False
) -> None:
    prompt = any(each.is_sudden for each in changes)
    async with story(of, spare=spare, seed=seed, prompt=prompt, late=late) as made:
        made.watch = lambda: assert_nothing_taken_too_early(made)
        for each in (*changes, Change("update", "img:2")):
            await made.catch_up()
            await carry_out_change(made, each)
            await made.go_on(each.then)
        missing = room_for(list(made.workers.values())) - made.pods.room[0]
        if missing > 0:
            await made.go_on(NO_ROOM.seconds + 60)
            assert_reasons_are_given(made)
            made.pods.room[0] += missing
            made.pods.touch()
        await assert_ended(made)


@examples(10)
@given(of=workers(), changes=st.lists(UPDATES, max_size=3), seed=st.integers(0, 99))
async def test_updates_and_corrections_with_room_for_both_generations(of, changes, seed):
    """With exactly the room that an update may take: pods that never serve must not keep it."""
    await roll_out(of, changes, room_for(of) - room_for(of, exchange=False), seed)


@examples(10)
@given(of=workers(), changes=st.lists(UPDATES | STARTS, max_size=4), seed=st.integers(0, 99))
async def test_updates_with_late_reads_and_restarts_of_the_platform(of, changes, seed):
    """Serving pods are kept even if decisions are based on outdated objects."""
    await roll_out(of, changes, room_for(of) - room_for(of, exchange=False), seed, late=True)


@examples(10)
@given(
    of=workers(),
    changes=st.lists(UPDATES | SCALES | FAULTS, max_size=4),
    spare=st.integers(0, 4),
    seed=st.integers(0, 99),
)
async def test_updates_in_a_full_or_nearly_full_cluster(of, changes, spare, seed):
    """Finally there is room, whatever is scaled, deleted or fails meanwhile."""
    await roll_out(of, changes, spare, seed)


@examples(8)
@given(
    of=workers(most=2),
    times=st.lists(PAUSES, min_size=1, max_size=3),
    orders=st.lists(st.permutations(("Front", *NAMES)), min_size=3, max_size=3),
    seed=st.integers(0, 99),
)
async def test_a_restart_during_a_restart(of, times, orders, seed):
    """Each new id comes during the former restart."""
    async with story([Worker("Front", 2, gpus=0, type_="frontend"), *of], spare=9, seed=seed) as made:
        made.watch = lambda: assert_one_moves(made)
        for number, (pause, order) in enumerate(zip(times, orders, strict=False)):
            made.restart(str(number), [name for name in order if name in made.workers])
            await made.go_on(pause)
        await assert_restarted(made, str(len(times) - 1))


def assert_one_moves(of: RolloutStory) -> None:
    assert len(of.pods.moving()) <= 1


async def assert_restarted(of: RolloutStory, id_: str) -> None:
    assert await of.calm(), of.ready
    assert of.status["restart"] == {"observedID": id_, "phase": "Completed"}
    assert {objects.annotations(pod).get(RESTART_AT) for pod in of.pods.all()} == {id_}
    assert await of.repeat() == []


PAIR = [Worker("Decode"), Worker("Prefill")]


@pytest.mark.parametrize("advice", [{"unavailable": "1"}, {"strategy": "Recreate"}])
async def test_the_advice_of_the_condition_helps_in_a_full_cluster(advice):
    async with story(PAIR) as made:
        made.update("img:2")
        await made.go_on(NO_ROOM.seconds + 60)
        assert_reasons_are_given(made)
        for each in PAIR:
            made.change(each.name, **advice)
        await assert_ended(made)


def without_end(*given: Any) -> rollout.RolloutStep:
    return replace(rollout.step(*given), done=False)


def with_a_count(*given: Any) -> Any:
    return {**graph_status(*given), "count": next(COUNT)}


async def two_restarts() -> None:
    async with story([Worker("A", 2), Worker("B", 2)], spare=2) as made:
        made.watch = lambda: assert_one_moves(made)
        for id_, order in (("1", ["B", "A"]), ("2", ["A", "B"])):
            made.restart(id_, order)
            await made.go_on(1)
        await assert_restarted(made, "2")


def updated(spare: int = 2) -> Callable[[], Awaitable[None]]:
    return lambda: roll_out(PAIR, [], spare, 1)


#: A fault of the platform, and the story that detects it.
WRONG = {
    "pods count that have no counterparts": (serving, "paired", lambda available, _: dict(available), updated()),
    "what has taken over does not count": (rollout_step, "step", without_end, updated()),
    "old generations are not deleted": (carry_out, "surplus", lambda *_, **__: [], updated()),
    "each status is another one": (report, "graph_status", with_a_count, updated()),
    "what is waited for is not said": (rollout_step, "_waits_for_room", lambda *_: "more room", updated(0)),
    "a new id forgets what is on its way": (restart_step, "_unfinished", lambda *_: [], two_restarts),
}


@rows("module, name, wrong, happens", WRONG)
async def test_each_fault_of_the_platform_is_detected(module, name, wrong, happens, monkeypatch):
    monkeypatch.setattr(module, name, wrong)
    with pytest.raises(AssertionError):
        await happens()
