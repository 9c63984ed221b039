"""Step 1: the desired objects of the graph, rendered from its spec, its adapters' replicas, and what must be kept.

Workers of two generations never serve one request together: frontends refuse a worker whose model card differs from
those of the workers that they already know in its namespace. Component deployments have the worker hash in their names.
On Grove, pods get the hash from the first change of the workers on: before that, there is only one generation.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import WORKLOAD_PROVIDER
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS
from dynamo_shared.api.snapshots import OF_CANDIDATES
from dynamo_shared.api.v1beta1 import DynamoComponentDeployment, DynamoGraphDeployment, parse_component, parse_graph

from dynamo_pod_builder import render
from dynamo_pod_builder.legacy_types import legacy_types, missing_from_cliques
from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.parts import replicas_by_component
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.remembered import GRAPHS, remembered
from dynamo_pod_builder.render.checkpoint.capture import capture_of
from dynamo_pod_builder.render.config import RunningPods
from dynamo_pod_builder.render.workloads.topology import fields_of
from dynamo_pod_builder.starts import Catalogue, Starts, starts_from_one, starts_from_snapshot, starts_of


@dataclass(frozen=True, slots=True)
class GraphInputs:
    """One graph and everything else that decides how it is rendered; its status does not."""

    graph: KubeObject
    config: render.RenderConfig
    checkpoints: Catalogue
    kept: render.ObservedGraph


@dataclass(frozen=True, slots=True)
class Rendered:
    """All objects of a graph, and the inputs that later steps need."""

    parsed: DynamoGraphDeployment
    starts: Starts
    children: list[KubeObject]
    #: SnapshotJobs that take the checkpoints of components.
    captures: list[KubeObject]
    #: Replicas that the graph desires of each component, including those that wait; {} if none waits.
    replicas: dict[str, int]


def desire(plan: Plan, observed: Observed) -> Plan:
    """The plan with all objects of the graph. Raises InvalidManifest and RenderError."""
    graph = objects.without_status(observed.graph_as_scaled)
    inputs = GraphInputs(graph, observed.config, observed.checkpoints, _kept(observed))
    rendered = _rendered(inputs)
    clique_set = plan.with_children(rendered.children).pod_clique_set
    if clique_set is not None and any(grove.renews_workers(clique_set, existing) for existing in observed.sets):
        generation = render.worker_hash(rendered.parsed, observed.config)
        # The running pods belong to other workers.
        rendered = _rendered(replace(inputs, kept=replace(inputs.kept, generation=generation, running={})))
    return replace(
        plan.with_children(grove.with_amounts_of(rendered.children, observed.sets)),
        parsed=rendered.parsed,
        starts=rendered.starts,
        captures=rendered.captures,
        replicas=rendered.replicas,
    )


@remembered(lambda inputs: inputs.graph, GRAPHS)
def _rendered(inputs: GraphInputs) -> Rendered:
    parsed = parse_graph(inputs.graph)
    captures = _captures(parsed, inputs)
    components = ((each.name, each) for each in parsed.spec.components)
    starts = starts_of(components, inputs.checkpoints, inputs.config, captures)
    # An automatic checkpoint is annotated even if its candidate is unknown, so that no pod is replaced for it later.
    known = [(name, each) for name, each in starts.snapshots.items() if each.candidate or each.is_automatic]
    candidates = {name: each.candidate for name, each in known}
    kept = replace(inputs.kept, restores=starts.restores, candidates=candidates, waiting=starts.waiting)
    is_served = inputs.config.checkpoints.snapshots
    taken = (captures[name] for name, each in starts.snapshots.items() if each.is_automatic and is_served)
    jobs = [each for each in taken if isinstance(each, dict)]
    children = render.graph_children(parsed, inputs.config, kept)
    desired: dict[str, int] = {}
    if starts.waiting:
        awaits_none = replace(kept, waiting=frozenset())
        desired = replicas_by_component(render.graph_children(parsed, inputs.config, awaits_none))
    return Rendered(parsed, starts, children, jobs, desired)


def _captures(graph: DynamoGraphDeployment, inputs: GraphInputs) -> dict[str, KubeObject | str]:
    """What is captured of the components that start from PodSnapshots, or why nothing can be captured."""
    defaults = inputs.config.checkpoints
    components = [each for each in graph.spec.components if starts_from_snapshot(each, inputs.checkpoints)]
    if not components or not defaults.enabled:
        return {}
    generation, names = render.worker_hash(graph, inputs.config), [each.name for each in components]
    captures: dict[str, KubeObject | str] = {}
    try:
        for child in as_components(graph, names, inputs.config):
            name = child.spec.name or ""
            try:
                captures[name] = capture_of(child, graph, generation, inputs.config, inputs.kept.around)
            except render.RenderError as error:
                captures[name] = str(error)
    except render.RenderError as error:
        return dict.fromkeys(names, str(error))
    return captures


def as_components(
    graph: DynamoGraphDeployment, names: Collection[str], config: render.RenderConfig
) -> list[DynamoComponentDeployment]:
    """These components as component deployments: an engine is the same on every orchestrator. Raises RenderError.

    They are as their author wrote them: each way to write a component gives its capture another name.
    """
    spec = graph.spec.model_copy(update={"components": [each for each in graph.spec.components if each.name in names]})
    annotations = {key: value for key, value in graph.metadata.annotations.items() if key != WORKLOAD_PROVIDER}
    metadata = graph.metadata.model_copy(update={"annotations": annotations})
    children = render.children_as_given(
        graph.model_copy(update={"metadata": metadata, "spec": spec}), replace(config, grove=False)
    )
    return [parse_component(each) for each in children if each["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind]


def _running(observed: Observed) -> dict[str, RunningPods]:
    running = {
        name: _running_pods(objects.replicas(each), each["spec"].get("podTemplate") or {})
        for name, each in observed.components.items()
    }
    for clique_set in observed.sets:
        annotated = {grove.component_of(each): each for each in grove.cliques_of([clique_set])}
        for each in grove.workloads(clique_set):
            if (existing := observed.cliques.get(each.place)) is not None:
                template = {"metadata": annotated[each.component]}
                running[each.component] = _running_pods(objects.replicas(existing), template)
    return running


def _running_pods(replicas: int, template: KubeObject) -> RunningPods:
    annotated = objects.annotations(template).items()
    return RunningPods(replicas, {key: value for key, value in annotated if key in OF_CANDIDATES})


def _kept(observed: Observed) -> render.ObservedGraph:
    backends = {name: each["spec"].get("backendFramework", "") for name, each in observed.components.items()}
    # Those that the graph names too decide nothing, and a graph would be rendered again once it has components.
    given = {"", observed.graph["spec"].get("backendFramework")}
    kept = render.ObservedGraph(
        {name: backend for name, backend in backends.items() if backend not in given}, around=observed.around
    )
    if any(map(starts_from_one, observed.graph["spec"].get("components", ()))):
        kept = replace(kept, running=_running(observed))
    if not observed.config.grove:
        return kept
    # In graphs without Grove, component deployments make the pods.
    sets, cliques = observed.sets, grove.cliques_of(observed.sets)
    return replace(
        kept,
        cliques=tuple(each["name"] for each in cliques),
        topology_fields=fields_of(sets),
        legacy_types=legacy_types(observed.graph["spec"].get("components", ()), cliques),
        lacking=missing_from_cliques(observed.graph, cliques),
        generation=grove.generation(sets),
        claimed=observed.claimed,
    )
