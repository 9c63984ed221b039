"""An update that is corrected or reverted while it runs: at all times one worker generation serves as a whole."""

from dataclasses import dataclass, field
from typing import Any

from dynamo_pod_builder.reconcilers.graph.steps.rollout import roll
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

from .building import deployment, desiring, observed, stored, stored_graph
from .workers import component

#: After that many reconciles nothing fails any more, and every pod that can start starts at once.
CALM = 40


@dataclass
class Cluster:
    """Component deployments by name, their numbers of available pods, and `status.rollingUpdate` of their graph."""

    sizes: dict[str, int]
    there: dict[str, KubeObject] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    status: dict[str, Any] | None = None

    def generation(self, hash_: str) -> list[KubeObject]:
        return [component(f"{name}-{hash_}", hash_, size, component=name) for name, size in self.sizes.items()]

    def reconcile(self, hash_: str, unready: set[str]) -> None:
        """One reconcile towards a generation, while one pod of each of `unready` fails a probe."""
        workloads = {
            name: deployment(name, dcd["spec"]["replicas"], max(0, self.started[name] - (name in unready)))
            for name, dcd in self.there.items()
        }
        of = stored_graph(status={"rollingUpdate": self.status} if self.status else {})
        children = [stored(dcd, created=f"2026-01-01T00:00:0{age}Z") for age, dcd in enumerate(self.there.values())]
        plan = roll(desiring(*self.generation(hash_)), observed(*children, of=of, workloads=workloads))
        self.status = plan.rollout.status
        desired = {dcd["metadata"]["name"]: dcd for dcd in plan.desired}
        drained = {dcd["metadata"]["name"]: replicas for dcd, replicas in plan.rollout.drain}
        kept = {
            name: {**dcd, "spec": {**dcd["spec"], "replicas": drained.get(name, dcd["spec"]["replicas"])}}
            for name, dcd in self.there.items()
            if name in desired or f"uid-of-{name}" in plan.rollout.kept
        }
        self.there = {**kept, **desired}
        # If the number of pods shrinks, unavailable pods are removed first.
        self.started = {
            name: min(self.started.get(name, 0), dcd["spec"]["replicas"]) for name, dcd in self.there.items()
        }

    def serves(self) -> bool:
        generations: dict[str, dict[str, int]] = {}
        for name, dcd in self.there.items():
            its = dcd["metadata"]["labels"]
            generations.setdefault(its[labels.WORKER_HASH], {})[its[labels.COMPONENT]] = self.started[name]
        return any(counts.keys() == self.sizes.keys() and min(counts.values()) > 0 for counts in generations.values())


@examples(30)
@given(
    sizes=st.lists(st.integers(1, 3), min_size=2, max_size=3),
    correction=st.sampled_from(["old", "fix"]),
    data=st.data(),
)
def test_one_generation_serves_at_all_times(sizes: list[int], correction: str, data: st.DataObject) -> None:
    cluster = Cluster({f"w{number}": size for number, size in enumerate(sizes)})
    cluster.there = {dcd["metadata"]["name"]: dcd for dcd in cluster.generation("old")}
    cluster.started = {name: dcd["spec"]["replicas"] for name, dcd in cluster.there.items()}
    broken = {f"{name}-bad" for name in data.draw(st.sets(st.sampled_from(list(cluster.sizes))))}
    corrected_after = data.draw(st.integers(1, 8))
    for turn in range(4 * CALM):
        desired = "bad" if turn < corrected_after else correction
        # The only pod of a component: while it fails, its generation does not serve, and the rest of it cannot be
        # judged.
        candidates = [name for name, count in cluster.started.items() if count > 1 or desired == "bad"]
        fails = turn < CALM and bool(candidates)
        cluster.reconcile(desired, data.draw(st.sets(st.sampled_from(candidates), max_size=1)) if fails else set())
        for name, dcd in cluster.there.items():
            if name not in broken and (turn >= CALM or data.draw(st.booleans())):
                cluster.started[name] = dcd["spec"]["replicas"]
        assert cluster.serves(), f"{cluster.there.keys()}: {cluster.started}"
    assert cluster.started == {f"{name}-{correction}": size for name, size in cluster.sizes.items()}
    assert cluster.status is None or cluster.status["phase"] == "Completed"
