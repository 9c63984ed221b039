"""Step 1: what the graph should become, rendered once from its spec, its adapters' replicas, and what must be kept."""

from __future__ import annotations

from dataclasses import replace

from dynamo_shared.api.v1beta1 import parse_graph

from dynamo_pod_builder import render
from dynamo_pod_builder.legacy_types import legacy_types, unlabelled_models
from dynamo_pod_builder.reconcilers.graph import grove
from dynamo_pod_builder.reconcilers.graph.observed import Observed
from dynamo_pod_builder.reconcilers.graph.plan import Plan
from dynamo_pod_builder.starts import Starts, starts_of


def desire(plan: Plan, observed: Observed) -> Plan:
    """All objects of the graph. Raises InvalidManifest and RenderError."""
    parsed = parse_graph(observed.graph_as_scaled)
    starts = starts_of(((each.name, each) for each in parsed.spec.components), observed.checkpoints, observed.config)
    children = render.graph_children(parsed, observed.config, _kept(observed, starts))
    return replace(plan, parsed=parsed, starts=starts).having(children)


def _kept(observed: Observed, starts: Starts) -> render.ObservedGraph:
    backends = {name: each["spec"].get("backendFramework", "") for name, each in observed.components.items()}
    kept = render.ObservedGraph(
        {name: backend for name, backend in backends.items() if backend}, restores=starts.restores
    )
    if not observed.config.grove:
        return kept
    # Pods of other graphs are made by their component deployments.
    sets = observed.sets
    return replace(
        kept,
        cliques=grove.order(sets),
        legacy_types=legacy_types(observed.graph["spec"].get("components", ()), sets),
        unlabelled_models=unlabelled_models(sets),
        service_account=observed.service_account,
        pull_secrets=observed.pull_secrets,
    )
