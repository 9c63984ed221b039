"""What a planner among a graph's components reads from the graph: which generation of workers serves. Pure.

Dynamo's planner listens to engines in the Dynamo namespace of one generation, which annotations of its graph name. If
they name no generation, or a deleted one, the planner hears of no engine, and reactive scaling does nothing.
"""

from datetime import datetime

from dynamo_shared.api import objects
from dynamo_shared.api.conditions import Condition, condition_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import CURRENT_WORKER_HASH, CURRENT_WORKER_HASH_V2
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed, place_of
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps.rollout import IN_PROGRESS
from dynamo_pod_builder.status.component import Failure

INFORMED = "PlannerInformed"
"""Condition of a graph whose planner cannot learn which workers serve; other graphs do not have it."""


def lacking(plan: Plan, observed: Observed) -> dict[str, str | None]:
    """Annotations to change on the graph, None for those to remove; empty if there is nothing to change.

    `plan` was carried out.
    """
    components = observed.graph["spec"].get("components") or ()
    if all(each.get("type") != ComponentType.PLANNER for each in components):
        return {}
    serving = _serving(plan, observed)
    if serving is None:
        return {}
    there, desired = objects.annotations(observed.graph), serving or None
    if (there.get(CURRENT_WORKER_HASH) or there.get(CURRENT_WORKER_HASH_V2)) == desired:
        # The planner reads them in this order. The other one may be the Go operator's, which replaces the workers after
        # a move back if it does not find it.
        return {}
    return {name: desired for name in (CURRENT_WORKER_HASH, CURRENT_WORKER_HASH_V2) if there.get(name) != desired}


def planner_condition(graph: KubeObject, refused: Failure, now: datetime) -> Condition:
    """The condition of a graph whose annotations are refused."""
    names = " and ".join((CURRENT_WORKER_HASH, CURRENT_WORKER_HASH_V2))
    message = (
        f"the planner among the components cannot know which engines serve now: the API server refused annotations {names} "
        f"of the graph: {refused.message}"
    )
    return condition_of(graph, INFORMED, False, refused.reason, message, now=now)


def _serving(plan: Plan, observed: Observed) -> str | None:
    """Hash of the workers that serve, "" if they have none; None while one generation replaces another."""
    if plan.pod_clique_set is not None:
        there = observed.children.get(place_of(plan.pod_clique_set))
        if there is None or grove.is_updating(there) or not grove.is_observed(there):
            return None
        return grove.generation([there])
    if (plan.rollout.status or {}).get("phase") == IN_PROGRESS:
        return None
    hashes = (objects.labels(child).get(labels.WORKER_HASH, "") for child in plan.desired)
    return next(filter(None, hashes), "")
