"""DynamoGraphDeployment -> access objects, and one DynamoComponentDeployment per component or one PodCliqueSet."""

from collections.abc import Callable, Mapping
from functools import partial

from dynamo_shared.api import objects
from dynamo_shared.api.containers import main_container
from dynamo_shared.api.defaults import DEFAULT_REPLICAS
from dynamo_shared.api.dynamo_namespace import dynamo_namespace
from dynamo_shared.api.legacy_fields import NO_SERVICE, LegacyGraph, legacy_graph
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels, ports
from dynamo_shared.api.registry.annotations import ENABLE_GROVE, ISTIO_INJECT, WORKLOAD_PROVIDER
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS
from dynamo_shared.api.role_templates import LEADER, all_templates, own_template, templates, with_templates
from dynamo_shared.api.v1beta1 import Component, ComponentType, DynamoGraphDeployment, to_dict
from dynamo_shared.api.workload_provider import OF_COMPONENTS, OF_GROVE

from dynamo_pod_builder.render import hashing, names
from dynamo_pod_builder.render.access.rbac import PICKER_RULES, PLANNER_RULES, discovery_access, shared_access
from dynamo_pod_builder.render.backends import engine_of_graph
from dynamo_pod_builder.render.checkpoint.allowed import check_checkpoint
from dynamo_pod_builder.render.config import NEW_GRAPH, ObservedGraph, RenderConfig, RunningPods
from dynamo_pod_builder.render.context import WORKERS, namespace_of, owner_of, templates_of
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.features import check_component, check_picker, check_sharing
from dynamo_pod_builder.render.legacy.deployment_config import ConfiguredComponent, apply_legacy_config, with_routing
from dynamo_pod_builder.render.legacy.v1alpha1 import with_legacy_fields, with_metadata, without_metadata
from dynamo_pod_builder.render.legacy.volume_claims import volume_claims
from dynamo_pod_builder.render.metadata import new_object_of
from dynamo_pod_builder.render.network import picker
from dynamo_pod_builder.render.network.gateway import gateway_children
from dynamo_pod_builder.render.pod.discovery import discovery_of
from dynamo_pod_builder.render.pod.kv_transfer import policy_of, with_topology
from dynamo_pod_builder.render.pod.template import (
    graph_annotations,
    graph_template,
    with_annotations,
    with_labels,
    with_priority,
)
from dynamo_pod_builder.render.sharing.claims import claim_templates
from dynamo_pod_builder.render.typed import typed
from dynamo_pod_builder.render.workloads import leader_wait, pod_clique_set
from dynamo_pod_builder.render.workloads.deployment import strategy
from dynamo_pod_builder.render.workloads.overrides import drop_overrides
from dynamo_pod_builder.render.workloads.scaling_adapter import scaling_adapters
from dynamo_pod_builder.render.workloads.volcano import in_queue, volcano_queue


def graph_children(
    graph: DynamoGraphDeployment, config: RenderConfig, observed: ObservedGraph = NEW_GRAPH
) -> list[KubeObject]:
    """All objects that a graph owns or shares, ready to be applied. Raises RenderError if it cannot be run.

    The objects share parts with each other and with the input, so they are read only.
    """
    return [typed(each) for each in children_as_given(graph, config, observed)]


def children_as_given(
    graph: DynamoGraphDeployment, config: RenderConfig, observed: ObservedGraph = NEW_GRAPH
) -> list[KubeObject]:
    """`graph_children`, with quantities and empty fields as their author wrote them. Raises RenderError."""
    _check(graph, config)
    owner, namespace = owner_of(graph), namespace_of(graph)
    legacy = legacy_graph(graph)
    specs = _component_specs(graph, config)
    engine = _engine(graph, specs)
    grove = on_grove(graph, config)
    for component in graph.spec.components:
        check_sharing(component.name, component, engine, claims=config.device_claims, grove=grove)
    # Grove itself replaces the pods of a clique; otherwise each generation of workers has its own objects.
    named = "" if grove else _generation(graph, specs)
    generation = observed.generation if grove else named
    worker_labels = {labels.WORKER_HASH: generation} if generation else {}
    if any(component.type is ComponentType.EPP for component in graph.spec.components):
        worker_labels[labels.COMPONENT_CLASS] = ComponentType.WORKER.value

    children = [*volume_claims(graph, legacy.claims), *gateway_children(graph, config), *scaling_adapters(graph)]
    components: list[KubeObject] = []
    registering = [
        template
        for spec in specs
        if discovery_of(_annotations(spec), config).kubernetes
        for template, _ in templates(spec)
    ]
    if registering:
        children += discovery_access(graph.metadata.name, namespace, owner, registering)
    children += _shared_access(graph, config)
    if any(component.multinode is not None for component in graph.spec.components):
        children.append(leader_wait.script(graph))
    for component, unlabelled in zip(graph.spec.components, specs, strict=True):
        is_worker = component.type in WORKERS
        name = names.component_deployment(graph.metadata.name, component.name, named if is_worker else "")
        added = worker_labels if is_worker else {}
        spec = _each_template(unlabelled, partial(with_labels, label_set=added)) if added else unlabelled
        # After the hash, which covers only the workers, so that no pod is replaced when its checkpoint becomes ready.
        _start_from_checkpoint(spec, component.name, observed, observed.running.get(component.name if grove else name))
        backend = observed.backends.get(name) or engine
        if backend:
            spec["backendFramework"] = backend
        service = legacy.services.get(component.name, NO_SERVICE)
        own = without_metadata(spec, service, _given(graph, component, config)) if service.has_metadata else spec
        # The graph's own labels are only in the template, as with the reference.
        label_set = {**objects.labels(templates_of(component)[0]), **added}
        components.append(with_legacy_fields(_component_deployment(graph, name, own, label_set), service))
        children += claim_templates(
            graph.metadata.name, component.name, namespace, component, spec.get("podTemplate") or {}, owner=owner
        )
        if component.type is ComponentType.EPP:
            children += picker.picker_children(graph, spec, _dynamo_namespace(graph, spec))
    return children + (pod_clique_set.children(graph, components, config, observed) if grove else components)


def _given(graph: DynamoGraphDeployment, component: Component, config: RenderConfig) -> dict[str, set[str]]:
    """Names of labels and annotations that a component's pods get from v1beta1: the graph, and its own templates."""
    own = [*all_templates(to_dict(component))]
    return {
        "labels": {*graph.spec.labels, *(name for each in own for name in objects.labels(each))},
        "annotations": {
            *graph_annotations(graph, config),
            *(name for each in own for name in objects.annotations(each)),
        },
    }


def _start_from_checkpoint(spec: KubeObject, name: str, observed: ObservedGraph, there: RunningPods | None) -> None:
    """Annotate the pods that may start from a PodSnapshot, and start no new pod of those that wait for a checkpoint.

    Running pods stay unchanged if a checkpoint is lost: ending them would help no one.
    """
    candidate, waits = observed.candidates.get(name), name in observed.waiting
    if waits:
        runs = there.replicas if there is not None else 0
        spec["replicas"] = min(spec.get("replicas", DEFAULT_REPLICAS), runs)
    is_unknown = candidate == {}
    if there is not None and ((waits and there.replicas) or is_unknown):
        candidate = there.candidate
    if candidate:
        spec["podTemplate"] = with_annotations(spec.get("podTemplate") or {}, candidate)


def on_grove(graph: DynamoGraphDeployment, config: RenderConfig) -> bool:
    """Whether a graph runs as a PodCliqueSet: by its annotation, otherwise if Grove is available, unless it opts out."""
    if provider := graph.metadata.annotations.get(WORKLOAD_PROVIDER):
        return provider == OF_GROVE
    return config.grove and graph.metadata.annotations.get(ENABLE_GROVE, "").lower() != "false"


def worker_hash(graph: DynamoGraphDeployment, config: RenderConfig) -> str:
    """Hash that the workers of a graph have in their names; "" for a graph without workers."""
    return _generation(graph, _component_specs(graph, config))


def _check(graph: DynamoGraphDeployment, config: RenderConfig) -> None:
    if not graph.spec.components:
        raise RenderError("", "spec.components", "names no component", "add at least one")
    _check_provider(graph, config)
    names_taken: dict[str, str] = {}
    for component in graph.spec.components:
        other = names_taken.get(component.name.lower())
        if other is not None:
            raise RenderError(
                component.name, "name", f"is already the name of {other}; case is ignored", "rename one of them"
            )
        names_taken[component.name.lower()] = component.name
        check_component(component.name, component, multinode=config.leader_worker_sets or on_grove(graph, config))
        check_picker(component.name, component, config)
        check_checkpoint(component.name, component, config.checkpoints)


def _check_provider(graph: DynamoGraphDeployment, config: RenderConfig) -> None:
    """Raise RenderError if a graph's orchestrator is unavailable: a fallback to another one would replace all its pods."""
    provider = graph.metadata.annotations.get(WORKLOAD_PROVIDER)
    at = f'metadata.annotations["{WORKLOAD_PROVIDER}"]'
    if provider == OF_GROVE and not config.grove:
        remedy = "install and enable Grove, or recreate the graph without the annotation"
        raise RenderError("", at, "is grove, but Grove is not installed or is disabled", remedy)
    if provider not in (None, "", OF_GROVE, OF_COMPONENTS):
        raise RenderError("", at, "is neither grove nor component", "recreate the graph without it")


def _shared_access(graph: DynamoGraphDeployment, config: RenderConfig) -> list[KubeObject]:
    """Accounts that all graphs of a namespace share. In restricted mode the chart binds ClusterRoles to them."""
    types = {component.type for component in graph.spec.components}
    children: list[KubeObject] = []
    for component_type, account, rules, cluster_role, always in (
        (ComponentType.PLANNER, names.PLANNER_ACCOUNT, PLANNER_RULES, config.planner_cluster_role, True),
        (ComponentType.EPP, names.EPP_ACCOUNT, PICKER_RULES, config.epp_cluster_role, False),
    ):
        if cluster_role and config.restricted_namespace:
            continue
        # Others may add planners to a graph's namespace, so a named role is bound for every graph.
        if component_type in types or (always and cluster_role):
            children += shared_access(account, namespace_of(graph), rules, cluster_role)
    return children


def _component_specs(graph: DynamoGraphDeployment, config: RenderConfig) -> list[KubeObject]:
    """DCD specs without engine and worker hash; each is a new dict at the first level."""
    annotations, legacy = graph_annotations(graph, config), legacy_graph(graph)
    scheduled = _scheduled(graph, config)
    # A picker serves TLS itself, as its DestinationRule says: with a sidecar proxy, TLS would be applied twice.
    of_pickers = {**annotations, ISTIO_INJECT: "false"} if config.mesh.destination_rules else annotations
    return with_routing(
        [
            _component_spec(
                each,
                graph,
                of_pickers if each.type is ComponentType.EPP else annotations,
                legacy,
                scheduled,
                config=config,
            )
            for each in graph.spec.components
        ]
    )


def _scheduled(graph: DynamoGraphDeployment, config: RenderConfig) -> Callable[[KubeObject], KubeObject]:
    """Puts the graph's scheduling settings into a pod template. On Grove the priority belongs to whole gangs."""
    queue = volcano_queue(graph, config)
    priority = "" if on_grove(graph, config) else graph.spec.priority_class_name or ""
    return lambda template: with_priority(in_queue(template, queue), priority)


def _component_spec(
    component: Component,
    graph: DynamoGraphDeployment,
    annotations: dict[str, str],
    legacy: LegacyGraph,
    scheduled: Callable[[KubeObject], KubeObject],
    *,
    config: RenderConfig,
) -> KubeObject:
    spec = to_dict(component)
    drop_overrides(spec)

    def in_graph(own: KubeObject) -> KubeObject:
        with_legacy = with_metadata(own, legacy.services.get(component.name, NO_SERVICE))
        template = graph_template(with_legacy, graph, annotations, config, component.frontend_sidecar)
        if component.type is ComponentType.PLANNER and not on_grove(graph, config):
            account = {"serviceAccountName": names.PLANNER_ACCOUNT}
            template = {**template, "spec": {**(template.get("spec") or {}), **account}}
        if component.type in WORKERS:
            template = with_topology(template, policy_of(graph))
        return scheduled(template)

    spec = _each_template(_with_template_of_leader(spec), in_graph)
    if "eppConfig" in spec:
        spec["eppConfig"] = picker.complete(spec["eppConfig"])
    # Invalid rollout annotations are reported here, before anything is written.
    strategy(component.name, _annotations(spec))
    service = names.service(names.component_deployment(graph.metadata.name, component.name))
    address = f"http://{service}.{namespace_of(graph)}.svc:{ports.HTTP.number}"
    place = ConfiguredComponent(_dynamo_namespace(graph, spec), address)
    # Also if the graph names none: a number that is not applied would be whatever another client writes.
    return {"replicas": DEFAULT_REPLICAS, **apply_legacy_config(spec, place)}


def _with_template_of_leader(spec: KubeObject) -> KubeObject:
    """A component with its leader's template, if the leader has its own: the serving pods define the component.

    Workers that used the component's template then get it as their own.
    """
    leader = own_template(spec, LEADER)
    if leader is None:
        return spec
    of_workers = {"podTemplate": spec["podTemplate"]} if "podTemplate" in spec else {}
    roles = [
        {name: value for name, value in role.items() if name != "podTemplate"}
        if role["name"] == LEADER
        else {**of_workers, **role}
        for role in spec["roles"]
    ]
    return {**spec, "podTemplate": leader, "roles": roles}


def _each_template(spec: KubeObject, change: Callable[[KubeObject], KubeObject]) -> KubeObject:
    """A component with its templates changed; an empty pod template is removed."""
    changed = with_templates({"podTemplate": {}, **spec}, change)
    if not changed["podTemplate"]:
        del changed["podTemplate"]
    return changed


def _dynamo_namespace(graph: DynamoGraphDeployment, spec: KubeObject) -> str:
    is_shared = bool(spec.get("globalDynamoNamespace"))
    return dynamo_namespace(namespace_of(graph), graph.metadata.name, shared=is_shared)


def _component_deployment(
    graph: DynamoGraphDeployment, name: str, spec: KubeObject, own: Mapping[str, str]
) -> KubeObject:
    space = _dynamo_namespace(graph, spec)
    names.check(spec["name"], name, space)
    label_set = {
        **own,
        labels.COMPONENT: spec["name"],
        labels.DYNAMO_NAMESPACE: space,
        labels.GRAPH_DEPLOYMENT_NAME: graph.metadata.name,
    }
    return new_object_of(graph, DYNAMO_COMPONENT_DEPLOYMENTS, name, label_set, spec=spec)


def _annotations(spec: KubeObject) -> Mapping[str, str]:
    return objects.annotations(spec.get("podTemplate") or {})


def _generation(graph: DynamoGraphDeployment, specs: list[KubeObject]) -> str:
    workers = [spec for component, spec in zip(graph.spec.components, specs, strict=True) if component.type in WORKERS]
    return hashing.worker_hash(workers) if workers else ""


def _engine(graph: DynamoGraphDeployment, specs: list[KubeObject]) -> str:
    workers = (
        (component.name, main_container(spec.get("podTemplate") or {}))
        for component, spec in zip(graph.spec.components, specs, strict=True)
        if component.type in WORKERS
    )
    return engine_of_graph(workers, graph.spec.backend_framework)
