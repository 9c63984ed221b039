"""Step 6: the checkpoints that components ask for and that do not exist yet."""

from dataclasses import replace

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS
from dynamo_shared.api.v1beta1 import parse_component

from dynamo_pod_builder import render
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.reconcilers.refusals import REFUSALS, failure_of
from dynamo_pod_builder.render.checkpoint.auto import checkpoint_of


def take_checkpoints(plan: Plan, observed: Observed) -> Plan:
    """With one DynamoCheckpoint for each missing identity. The graph is written all the same where one cannot be rendered."""
    graph, missing = plan.parsed, plan.starts.missing
    if graph is None or not missing:
        return plan
    around = render.ObservedComponent(service_account=observed.service_account, pull_secrets=observed.pull_secrets)
    # An engine is the same whatever runs it: what it would be as a component deployment says all.
    components = [each for each in graph.spec.components if each.name in missing]
    part = graph.model_copy(update={"spec": graph.spec.model_copy(update={"components": components})})
    config = replace(observed.config, grove=False)
    checkpoints: list[KubeObject] = []
    try:
        for child in render.graph_children(part, config):
            if child["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
                identity = missing[child["spec"]["name"]]
                checkpoints.append(checkpoint_of(parse_component(child), identity, observed.config, around))
    except REFUSALS as error:
        return replace(plan, checkpoints=checkpoints, failure=failure_of(error))
    return replace(plan, checkpoints=checkpoints)
