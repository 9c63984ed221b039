"""From the observed state to a plan: six steps, in this order. Each takes a plan and returns it with its own part."""

from collections.abc import Callable
from typing import TypeAlias

from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps.adoption import adopt
from dynamo_pod_builder.reconcilers.graph.steps.checkpoints import take_checkpoints
from dynamo_pod_builder.reconcilers.graph.steps.desired import desire
from dynamo_pod_builder.reconcilers.graph.steps.restart import restart
from dynamo_pod_builder.reconcilers.graph.steps.rollout import roll
from dynamo_pod_builder.reconcilers.graph.steps.switch import switch
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of

Step: TypeAlias = Callable[[Plan, Observed], Plan]
STEPS: tuple[Step, ...] = (desire, adopt, roll, restart, switch, take_checkpoints)


def planned(observed: Observed) -> Plan:
    """The plan of one reconcile. If a step is refused, nothing is written, and the plan has only the failure."""
    plan = Plan()
    for step in STEPS:
        try:
            plan = step(plan, observed)
        except REFUSALS as error:
            return Plan(failure=failure_of(error))
    return plan
