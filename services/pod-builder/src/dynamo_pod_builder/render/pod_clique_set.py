"""The PodCliqueSet of a graph, for Grove: a clique a component, or a scaling group where its replicas span nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import DISCOVERY_BACKEND
from dynamo_shared.api.resources import POD_CLIQUE_SETS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment, parse_component

from dynamo_pod_builder.render import names, placement
from dynamo_pod_builder.render.backends import backend_of
from dynamo_pod_builder.render.config import ObservedComponent, ObservedGraph, RenderConfig
from dynamo_pod_builder.render.context import DEFAULT_NAMESPACE, PodContext, context_of
from dynamo_pod_builder.render.ingress import ways_in
from dynamo_pod_builder.render.metadata import object_metadata, pod_labels
from dynamo_pod_builder.render.placement import ALONE, Placement
from dynamo_pod_builder.render.pod import pod_spec
from dynamo_pod_builder.render.service import clique_service, model_service, needs_service

KubeObject = dict[str, Any]

LEADER, WORKER = "ldr", "wkr"
_ANY_ORDER, _EXPLICIT = "CliqueStartupTypeAnyOrder", "CliqueStartupTypeExplicit"


def children(
    graph: DynamoGraphDeployment,
    components: Sequence[KubeObject],
    config: RenderConfig,
    observed: ObservedGraph,
    owner: KubeObject,
) -> list[KubeObject]:
    """PodCliqueSet and Services of a graph; `components` are the component deployments that it would have otherwise.

    Cliques that are there keep their order: another one would be another graph to Grove.
    """
    around = ObservedComponent(service_account=observed.service_account, pull_secrets=observed.pull_secrets)
    contexts = [context_of(parse_component(each), config, around) for each in components]
    rank = {name: number for number, name in enumerate(observed.cliques)}
    found = [_pod_clique_set(graph, contexts, config, rank, owner)]
    found += [clique_service(context, owner) for context in contexts if needs_service(context)]
    found += [way for context in contexts for way in ways_in(context, {}, owner)]
    models = {context.spec.model_ref.name for context in contexts if context.spec.model_ref is not None}
    namespace = graph.metadata.namespace or DEFAULT_NAMESPACE
    return found + [model_service(model, namespace, owner) for model in sorted(models)]


def _pod_clique_set(
    graph: DynamoGraphDeployment,
    contexts: Sequence[PodContext],
    config: RenderConfig,
    rank: Mapping[str, int],
    owner: KubeObject,
) -> KubeObject:
    cliques: list[KubeObject] = []
    groups: list[KubeObject] = []
    parts: list[tuple[str, ...]] = []
    for context in contexts:
        own = _cliques(context)
        cliques += own
        name = names.clique(context.component)
        if context.nodes > 1:
            groups.append(_scaling_group(context, own))
            parts.append((name, max((each["name"] for each in own), key=len)))
        else:
            parts.append((name,))
    cliques.sort(key=lambda each: rank.get(each["name"], len(rank)))
    groups.sort(key=lambda each: rank.get(each["cliqueNames"][0], len(rank)))
    template: KubeObject = {
        "cliqueStartupType": _EXPLICIT if any("startsAfter" in each["spec"] for each in cliques) else _ANY_ORDER,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliques": cliques,
    }
    if groups:
        template["podCliqueScalingGroups"] = groups
    if config.grove_termination_delay > 0:
        template["terminationDelay"] = _duration(config.grove_termination_delay)
    constraint = graph.spec.topology_constraint
    if constraint is not None and constraint.pack_domain is not None:
        template["topologyConstraint"] = {"packDomain": constraint.pack_domain}
    marks = {**graph.spec.labels, labels.GRAPH_DEPLOYMENT_NAME: graph.metadata.name}
    namespace = graph.metadata.namespace or DEFAULT_NAMESPACE
    return {
        "apiVersion": POD_CLIQUE_SETS.api_version,
        "kind": POD_CLIQUE_SETS.kind,
        "metadata": object_metadata(
            names.pod_clique_set(graph.metadata.name, parts), namespace, marks, {**graph.spec.annotations}, owner
        ),
        "spec": {"replicas": 1, "template": template},
    }


def _cliques(context: PodContext) -> list[KubeObject]:
    """The cliques of a component: one, or leaders and workers."""
    if context.nodes == 1:
        clique = _clique(context, "", ALONE, 1 if context.spec.replicas is None else context.spec.replicas)
        return [{**clique, **_topology(context)}]
    group = placement.grove(context.component, context.nodes)
    leaders = _clique(context, LEADER, placement.leader(group, context.nodes), 1)
    workers = _clique(context, WORKER, placement.worker(group, context.nodes), context.nodes - 1)
    if backend_of(context).leader_starts_last:
        leaders["spec"]["startsAfter"] = [workers["name"]]
    return [leaders, workers]


def _clique(context: PodContext, role: str, place: Placement, replicas: int) -> KubeObject:
    name = names.clique(context.component, role)
    marks = {**context.template_annotations, DISCOVERY_BACKEND: context.discovery.backend}
    return {
        "name": name,
        "labels": {**pod_labels(context, {}), labels.SELECTOR: context.name},
        "annotations": marks,
        "spec": {
            "roleName": name,
            "replicas": replicas,
            # A group is of no use without all of its pods; replicas beside each other are.
            "minAvailable": replicas if role else 1,
            "podSpec": pod_spec(context.placed(place)),
        },
    }


def _scaling_group(context: PodContext, cliques: Iterable[KubeObject]) -> KubeObject:
    return {
        "name": names.clique(context.component),
        "cliqueNames": [each["name"] for each in cliques],
        "replicas": 1 if context.spec.replicas is None else context.spec.replicas,
        "minAvailable": 1,
        **_topology(context),
    }


def _topology(context: PodContext) -> KubeObject:
    constraint = context.spec.topology_constraint
    return {} if constraint is None else {"topologyConstraint": {"packDomain": constraint.pack_domain}}


def _duration(seconds: float) -> str:
    """A duration as Go writes it: `15m0s`, `1h0m0s`, `30s`."""
    whole, fraction = divmod(seconds, 1)
    minutes, rest = divmod(int(whole), 60)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest + fraction:g}s"
    if hours:
        return f"{hours}h{minutes}m{tail}"
    return f"{minutes}m{tail}" if minutes else tail
