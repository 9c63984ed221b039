"""One component deployment, prepared for its pods: everything that this package reads from it, computed once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

from dynamo_shared.api.defaults import DEFAULT_REPLICAS
from dynamo_shared.api.device_claims import ClaimedGpus
from dynamo_shared.api.dynamo_namespace import dynamo_namespace
from dynamo_shared.api.legacy_fields import NO_SERVICE, LegacyService, legacy_component
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, controller_reference
from dynamo_shared.api.role_templates import LEADER, WORKER
from dynamo_shared.api.v1beta1 import (
    ComponentSpec,
    ComponentType,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    DynamoGraphDeployment,
)

from dynamo_pod_builder.render.config import ObservedComponent, RenderConfig
from dynamo_pod_builder.render.pod.discovery import PodDiscovery, discovery_of
from dynamo_pod_builder.render.pod.placement import ALONE, PodPlacement, PodRole
from dynamo_pod_builder.render.pod.template import runtime_sidecar
from dynamo_pod_builder.render.sharing.spec import ENGINES_WITHIN_POD, engine_name, fails_over_within_pod

WORKERS = (ComponentType.WORKER, ComponentType.PREFILL, ComponentType.DECODE)


@dataclass(frozen=True, slots=True)
class PodContext:
    """A component deployment, its place in a graph, and the installation."""

    spec: DynamoComponentDeploymentSpec
    config: RenderConfig
    name: str
    namespace: str
    component: str
    #: Component type of the pods: from the spec, or `worker` for selectors from v1alpha1; "" without a type.
    type: str
    graph: str
    #: False for a component deployment that a user created directly.
    of_graph: bool
    dynamo_namespace: str
    template: KubeObject
    template_labels: Mapping[str, str]
    template_annotations: Mapping[str, str]
    discovery: PodDiscovery
    worker_hash: str
    observed: ObservedComponent
    legacy: LegacyService = NO_SERVICE
    placement: PodPlacement = ALONE

    @property
    def nodes(self) -> int:
        """Nodes that a replica spans."""
        return self.spec.multinode.node_count if self.spec.multinode is not None else 1

    @property
    def replicas(self) -> int:
        """Replicas that the component desires, unless something else decides their number."""
        return DEFAULT_REPLICAS if self.spec.replicas is None else self.spec.replicas

    def placed(self, placement: PodPlacement) -> Self:
        """The same component at one place of its replica, with the template of its role there."""
        own = _template_of_workers(self.spec) if placement.role is PodRole.WORKER else None
        if own is None:
            return replace(self, placement=placement)
        of_labels, annotations = metadata_of(own, self.legacy)
        return replace(
            self, placement=placement, template=own, template_labels=of_labels, template_annotations=annotations
        )

    @property
    def serving_template(self) -> KubeObject:
        """The template of the serving pods: the leader's if that role has its own template, otherwise the component's."""
        return _serving_template(self.spec)

    @property
    def has_own_commands(self) -> bool:
        """Whether roles have their own templates, with their author's commands: then no engine flags are added."""
        return has_role_templates(self.spec)

    @property
    def claimed(self) -> ClaimedGpus:
        """GPUs that main claims in the pods of this place, instead of counting them."""
        of_role = self.observed.claimed
        return of_role.workers if self.placement.role is PodRole.WORKER else of_role.serving

    @property
    def engines(self) -> tuple[str, ...]:
        """Containers of a pod that run the component's own process."""
        if fails_over_within_pod(self.spec):
            return tuple(map(engine_name, range(ENGINES_WITHIN_POD)))
        return (MAIN,)

    @property
    def runtime_sidecar(self) -> KubeObject | None:
        """The init container that runs the Dynamo runtime, as its author wrote it; None if main runs it."""
        return runtime_sidecar(self.template) if self.is_worker else None

    @property
    def is_worker(self) -> bool:
        """Whether the component runs an inference engine."""
        return self.spec.type in WORKERS


def context_of(component: DynamoComponentDeployment, config: RenderConfig, observed: ObservedComponent) -> PodContext:
    """Context of one component deployment."""
    metadata, spec = component.metadata, component.spec
    namespace = namespace_of(component)
    graph = metadata.labels.get(labels.GRAPH_DEPLOYMENT_NAME) or _owning_graph(component)
    template = _serving_template(spec)
    legacy = legacy_component(component)
    template_labels, template_annotations = metadata_of(template, legacy)
    return PodContext(
        spec=spec,
        config=config,
        name=metadata.name,
        namespace=namespace,
        component=spec.name or metadata.name,
        type=observed.legacy_type or (spec.type.value if spec.type else _unknown_type(legacy)),
        graph=graph or metadata.name,
        of_graph=bool(graph),
        dynamo_namespace=dynamo_namespace(namespace, graph or metadata.name, shared=bool(spec.global_dynamo_namespace)),
        template=template,
        template_labels=template_labels,
        template_annotations=template_annotations,
        discovery=discovery_of(template_annotations, config),
        worker_hash=template_labels.get(labels.WORKER_HASH, ""),
        observed=observed,
        legacy=legacy,
    )


def namespace_of(obj: DynamoGraphDeployment | DynamoComponentDeployment) -> str:
    """Namespace of an object; without one, as when rendered without a server, kubectl's default."""
    return obj.metadata.namespace or "default"


def owner_of(graph: DynamoGraphDeployment) -> KubeObject:
    """The owner reference of the objects of a graph."""
    return controller_reference(DYNAMO_GRAPH_DEPLOYMENTS, graph.metadata.name, graph.metadata.uid)


def _serving_template(spec: ComponentSpec) -> KubeObject:
    return role_template(spec, LEADER) or spec.pod_template or {}


def has_role_templates(spec: ComponentSpec) -> bool:
    """Whether a role of a component has its own template."""
    return any(each.pod_template is not None for each in spec.roles or ())


def role_template(spec: ComponentSpec, role: str) -> KubeObject | None:
    """The own template of a component's role, or None."""
    return next((each.pod_template for each in spec.roles or () if each.name == role), None)


def templates_of(spec: ComponentSpec) -> list[KubeObject]:
    """The templates of a component's pods: of those that serve, and of workers if theirs differs."""
    workers = _template_of_workers(spec)
    return [_serving_template(spec), *([] if workers is None else [workers])]


def _template_of_workers(spec: ComponentSpec) -> KubeObject | None:
    """The template of a component's workers; None if it is the one in the context, which is the leader's."""
    own = role_template(spec, WORKER)
    if own is None and role_template(spec, LEADER) is not None:
        return spec.pod_template
    return own


def metadata_of(template: KubeObject, legacy: LegacyService) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations of a template's pods."""
    metadata = template.get("metadata") or {}
    return (
        {**legacy.labels, **(metadata.get("labels") or {})},
        {**legacy.annotations, **(metadata.get("annotations") or {})},
    )


def _unknown_type(legacy: LegacyService) -> str:
    """A component type that v1beta1 does not know, such as `default`; "" otherwise."""
    return "" if legacy.type in set(ComponentType) else legacy.type


def _owning_graph(component: DynamoComponentDeployment) -> str:
    owners = component.metadata.owner_references
    return next((owner.name for owner in owners if owner.kind == DYNAMO_GRAPH_DEPLOYMENTS.kind), "")
