"""In every order of events, faults, restarts and changes, serving pods are kept, and the final state is the graph's."""

import json
import re
from typing import Any

from dynamo_shared.api import objects, resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, labels
from hypothesis import Phase, given
from hypothesis import strategies as st

from tests.examples import examples

from .story import Story, as_new
from .world import World

#: A seed cannot be simplified: if a story fails, `Story(seed, ...)` repeats it.
SEEDS = given(seed=st.integers(0, 2**32 - 1))
AS_IT_COMES = (Phase.explicit, Phase.reuse, Phase.generate)
#: Names of worker generations: a changed graph has other ones than a new graph.
HASH = re.compile(r"-[0-9a-f]{8}\b")


@examples(20, phases=AS_IT_COMES)
@SEEDS
async def test_serving_pods_are_kept_until_their_successors_serve(seed: int) -> None:
    story = Story(seed, careful=True)
    try:
        await story.run()
        assert story.outages == []
        assert_converged(story)
    finally:
        await story.close()


@examples(8, phases=AS_IT_COMES)
@SEEDS
async def test_the_final_state_equals_that_of_a_new_graph_and_the_status_reports_it(seed: int) -> None:
    story = Story(seed, careful=False)
    try:
        await story.run()
        assert_converged(story)
        assert await story.repeat() == [], "nothing more is written"
        assert story.user.graph is not None
        assert desired(story.world) == desired(await as_new(story.user.graph))
    finally:
        await story.close()


def assert_converged(story: Story) -> None:
    graph = story.user.graph
    assert graph is not None
    status = graph.get("status", {})
    reached = (status.get("state"), status.get("observedGeneration"))
    assert reached == ("successful", objects.generation(graph)), status.get("conditions")
    cache = story.process.cache
    for each in story.world.objects.values():
        assert cache.get(resources.of(each), resources.key_of(each)) == each, "the cache is the truth"


def desired(world: World) -> KubeObject:
    """All objects by kind and name, without metadata, status and the generation of workers."""
    left_out = ("metadata", "status", "apiVersion", "kind")
    all_of = {
        f"{each['kind']} {objects.name(each)}": {name: value for name, value in each.items() if name not in left_out}
        for each in world.objects.values()
    }
    return json.loads(HASH.sub("-HASH", json.dumps(_of_any_generation(all_of), sort_keys=True)))


def _of_any_generation(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _of_any_generation(each) for name, each in value.items() if name != labels.WORKER_HASH}
    if isinstance(value, list):
        named = (
            each
            for each in value
            if not (isinstance(each, dict) and each.get("name") == env.DYN_NAMESPACE_WORKER_SUFFIX)
        )
        return [_of_any_generation(each) for each in named]
    return value
