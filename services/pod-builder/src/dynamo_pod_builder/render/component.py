"""DynamoComponentDeployment -> Deployment or LeaderWorkerSet, and Services."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, controller_reference
from dynamo_shared.api.v1beta1 import DynamoComponentDeployment

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.access.rbac import discovery_access
from dynamo_pod_builder.render.backends import backend_of
from dynamo_pod_builder.render.checkpoint.allowed import check_checkpoint
from dynamo_pod_builder.render.config import NEW_COMPONENT, ObservedComponent, RenderConfig
from dynamo_pod_builder.render.context import context_of, templates_of
from dynamo_pod_builder.render.features import check_component, check_sharing
from dynamo_pod_builder.render.network.ingress import external_routes
from dynamo_pod_builder.render.network.service import component_service, model_service, needs_service
from dynamo_pod_builder.render.sharing.claims import claim_templates
from dynamo_pod_builder.render.typed import typed
from dynamo_pod_builder.render.workloads.deployment import deployment
from dynamo_pod_builder.render.workloads.leader_worker_set import leader_worker_set


def component_children(
    component: DynamoComponentDeployment, config: RenderConfig, observed: ObservedComponent = NEW_COMPONENT
) -> list[KubeObject]:
    """All objects that a component deployment owns, ready to be applied. Raises RenderError if it cannot be run.

    The objects share parts with each other and with the input, so they are read only.
    """
    context = context_of(component, config, observed)
    check_component(context.component, component.spec, multinode=config.leader_worker_sets)
    engine = backend_of(context).name
    check_sharing(context.component, component.spec, engine, claims=config.device_claims, grove=False)
    check_checkpoint(context.component, component.spec, config.checkpoints)
    names.check(context.component, context.name, context.dynamo_namespace)
    owner = controller_reference(DYNAMO_COMPONENT_DEPLOYMENTS, component.metadata.name, component.metadata.uid)
    own = component.metadata.labels
    children: list[KubeObject] = []
    if not context.of_graph:
        # A graph creates these for its components; a component without a graph would wait for them without end.
        if context.discovery.kubernetes:
            children += discovery_access(context.graph, context.namespace, owner, templates_of(component.spec))
        children += claim_templates(
            context.graph, context.component, context.namespace, component.spec, context.template, owner=owner
        )
    workload = leader_worker_set if context.nodes > 1 else deployment
    children.append(workload(context, own, owner))
    if needs_service(context):
        children.append(component_service(context, own, owner))
        children += external_routes(context, own, owner)
    if component.spec.model_ref is not None:
        children.append(model_service(component.spec.model_ref.name, context.namespace, owner))
    return [typed(each) for each in children]
