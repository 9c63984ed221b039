"""Step 1: what the graph should become, rendered from its spec, its adapters' replicas, and what must be kept.

Workers of two generations never serve one request together: frontends refuse a worker whose model card is another one than
that of the workers which they have of its namespace. Component deployments have their hash in their names. On Grove pods
carry it from the first change of the workers on: before, there is one generation.
"""

from dataclasses import dataclass, replace

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import POD_CLIQUE_SETS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment, parse_graph

from dynamo_pod_builder import render
from dynamo_pod_builder.legacy_types import legacy_types, unlabelled_models
from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.remembered import GRAPHS, remembered
from dynamo_pod_builder.render.workloads.topology import fields_of
from dynamo_pod_builder.starts import Catalogue, Starts, starts_of


@dataclass(frozen=True, slots=True)
class GraphInputs:
    """One graph, and what decides how it is rendered: so not its status."""

    graph: KubeObject
    config: render.RenderConfig
    checkpoints: Catalogue
    kept: render.ObservedGraph


@dataclass(frozen=True, slots=True)
class Rendered:
    """All objects of a graph, and what they follow from."""

    parsed: DynamoGraphDeployment
    starts: Starts
    children: list[KubeObject]


def desire(plan: Plan, observed: Observed) -> Plan:
    """All objects of the graph. Raises InvalidManifest and RenderError."""
    graph = objects.without_status(observed.graph_as_scaled)
    inputs = GraphInputs(graph, observed.config, observed.checkpoints, _kept(observed))
    rendered = _rendered(inputs)
    clique_set = next((each for each in rendered.children if each["kind"] == POD_CLIQUE_SETS.kind), None)
    if clique_set is not None and any(grove.renews_workers(clique_set, there) for there in observed.sets):
        generation = render.worker_hash(rendered.parsed, observed.config)
        rendered = _rendered(replace(inputs, kept=replace(inputs.kept, generation=generation)))
    return replace(plan, parsed=rendered.parsed, starts=rendered.starts).having(rendered.children)


@remembered(lambda inputs: inputs.graph, GRAPHS)
def _rendered(inputs: GraphInputs) -> Rendered:
    parsed = parse_graph(inputs.graph)
    starts = starts_of(((each.name, each) for each in parsed.spec.components), inputs.checkpoints, inputs.config)
    kept = replace(inputs.kept, restores=starts.restores)
    return Rendered(parsed, starts, render.graph_children(parsed, inputs.config, kept))


def _kept(observed: Observed) -> render.ObservedGraph:
    backends = {name: each["spec"].get("backendFramework", "") for name, each in observed.components.items()}
    kept = render.ObservedGraph({name: backend for name, backend in backends.items() if backend})
    if not observed.config.grove:
        return kept
    # Pods of other graphs are made by their component deployments.
    sets = observed.sets
    return replace(
        kept,
        cliques=grove.order(sets),
        topology_fields=fields_of(sets),
        legacy_types=legacy_types(observed.graph["spec"].get("components", ()), sets),
        unlabelled_models=unlabelled_models(sets),
        generation=grove.generation(sets),
        service_account=observed.service_account,
        pull_secrets=observed.pull_secrets,
        claimed=observed.claimed,
    )
