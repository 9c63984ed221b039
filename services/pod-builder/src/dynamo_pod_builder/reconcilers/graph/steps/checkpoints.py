"""Step 6: the checkpoints that components request and that do not exist yet."""

from dataclasses import replace

from dynamo_shared.api.objects import KubeObject

from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.graph.steps.desired import as_components
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of
from dynamo_pod_builder.render.checkpoint.auto import checkpoint_of


def take_checkpoints(plan: Plan, observed: Observed) -> Plan:
    """The plan with one DynamoCheckpoint per missing identity. If one cannot be rendered, the graph is still written."""
    graph, missing = plan.parsed, plan.starts.missing
    if graph is None or not missing:
        return plan
    checkpoints: list[KubeObject] = []
    try:
        checkpoints.extend(
            checkpoint_of(child, missing[child.spec.name or ""], observed.config, observed.around)
            for child in as_components(graph, missing, observed.config)
        )
    except REFUSALS as error:
        return replace(plan, checkpoints=checkpoints, failure=failure_of(error))
    return replace(plan, checkpoints=checkpoints)
