"""The PodCliqueSet of a graph, for Grove: per component one clique, or a scaling group if a replica has several."""

from collections.abc import Sequence, Set
from dataclasses import replace

from dynamo_shared.api.containers import main_container
from dynamo_shared.api.engines.started import SHELL
from dynamo_shared.api.objects import KubeObject, size_of
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import (
    DISCOVERY_BACKEND,
    GROVE_UPDATE_STRATEGIES,
    GROVE_UPDATE_STRATEGY,
    GROVE_VOLCANO_QUEUE,
    OPERATOR_ORIGIN_VERSION,
)
from dynamo_shared.api.resources import POD_CLIQUE_SETS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment, parse_component
from dynamo_shared.api.wording import many

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.backends import backend_of, vllm
from dynamo_pod_builder.render.config import DEFAULT_ACCOUNT, NO_CLAIMS, ObservedGraph, RenderConfig
from dynamo_pod_builder.render.context import PodContext, context_of, namespace_of, owner_of
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.metadata import new_object_of, pod_labels, restore_annotations
from dynamo_pod_builder.render.network.ingress import external_routes
from dynamo_pod_builder.render.network.service import clique_service, model_service, needs_service, ray_service
from dynamo_pod_builder.render.pod.placement import PodRole
from dynamo_pod_builder.render.pod.pod import pod_spec
from dynamo_pod_builder.render.sharing import claims
from dynamo_pod_builder.render.sharing.spec import fails_over_between_pods, memory_has_pods, memory_service
from dynamo_pod_builder.render.workloads import layout
from dynamo_pod_builder.render.workloads.kai import queue_of, wait_in
from dynamo_pod_builder.render.workloads.layout import Clique
from dynamo_pod_builder.render.workloads.overrides import override
from dynamo_pod_builder.render.workloads.topology import constrain
from dynamo_pod_builder.render.workloads.volcano import volcano_queue

#: Size limit of a request to the API server. Each clique repeats its component's template, so a template of a megabyte
#: would become a hundred, which several graphs of one tenant have at once. Bytes.
LARGEST = 3 << 20
_ANY_ORDER, _EXPLICIT = "CliqueStartupTypeAnyOrder", "CliqueStartupTypeExplicit"


def children(
    graph: DynamoGraphDeployment,
    components: Sequence[KubeObject],
    config: RenderConfig,
    observed: ObservedGraph,
) -> list[KubeObject]:
    """PodCliqueSet and Services of a graph; `components`: the component deployments that it would have without Grove.

    Existing cliques keep their order: for Grove, another order would be another graph.
    """
    contexts: list[PodContext] = []
    account = observed.around.service_account
    # Grove stores what it gets: Kubernetes fills in the default account of each pod.
    account = "" if account == DEFAULT_ACCOUNT else account
    for each in components:
        name = each["spec"]["name"]
        own = replace(
            observed.around,
            service_account=account,
            restore=observed.restores.get(name),
            legacy_type=observed.legacy_types.get(name, ""),
            lacking=observed.lacking.get(name, frozenset()),
            claimed=observed.claimed.get(name, NO_CLAIMS),
        )
        contexts.append(context_of(parse_component(each), config, own))
    owner = owner_of(graph)
    objects_ = [_pod_clique_set(graph, contexts, config, observed)]
    objects_ += [clique_service(context, owner) for context in contexts if needs_service(context)]
    objects_ += [ray_service(context, owner) for context in contexts if _heads_ray_cluster(context)]
    objects_ += [route for context in contexts for route in external_routes(context, {}, owner)]
    models = {context.spec.model_ref.name for context in contexts if context.spec.model_ref is not None}
    return objects_ + [model_service(model, namespace_of(graph), owner) for model in sorted(models)]


def _heads_ray_cluster(context: PodContext) -> bool:
    """Whether a component is a single pod that heads a Ray cluster: several pods would each head their own cluster."""
    if backend_of(context).name != vllm.Vllm.name or context.spec.replicas not in (None, 1):
        return False
    return vllm.has_ray_head({"command": SHELL, **(main_container(context.template) or {})}, context)


def _pod_clique_set(
    graph: DynamoGraphDeployment,
    contexts: Sequence[PodContext],
    config: RenderConfig,
    observed: ObservedGraph,
) -> KubeObject:
    cliques: list[KubeObject] = []
    groups: list[KubeObject] = []
    shared: dict[str, list[KubeObject]] = {}
    parts: list[tuple[str, ...]] = []
    # The platform's version replaces a missing origin version of a graph: an upgrade must not roll its pods.
    left_out = {OPERATOR_ORIGIN_VERSION} - graph.metadata.annotations.keys()
    size = 0
    for context in contexts:
        own = layout.cliques(context)
        for each in own:
            cliques.append(_clique(context, each, left_out))
            size += size_of(cliques[-1])
            if size > LARGEST:
                raise RenderError(
                    context.component,
                    "podTemplate",
                    f"the PodCliqueSet of the graph, with {many(len(own), 'clique')} of this component, would have more "
                    f"than {LARGEST >> 20} MiB, which the API server refuses",
                    "make the pod template or multinode.nodeCount smaller",
                )
        name = names.clique(context.component)
        if layout.is_group(context):
            groups.append(_scaling_group(context, own))
            shared[groups[-1]["name"]] = _claim_templates(context)
            parts.append((name, max((each.name for each in own), key=len)))
        else:
            parts.append((name,))
    rank = {name: number for number, name in enumerate(observed.cliques)}
    cliques.sort(key=lambda each: rank.get(each["name"], len(rank)))
    groups.sort(key=lambda each: rank.get(each["cliqueNames"][0], len(rank)))
    claimed = [each for group in groups for each in shared[group["name"]]]
    queue = queue_of(graph, config)
    for clique in cliques:
        wait_in(clique, queue)
    template: KubeObject = {
        "cliqueStartupType": _EXPLICIT if any("startsAfter" in each["spec"] for each in cliques) else _ANY_ORDER,
        "headlessServiceConfig": {"publishNotReadyAddresses": True},
        "cliques": cliques,
    }
    if graph.spec.priority_class_name:
        template["priorityClassName"] = graph.spec.priority_class_name
    if groups:
        template["podCliqueScalingGroups"] = groups
    if claimed:
        template["resourceClaimTemplates"] = claimed
    if config.grove_termination_delay > 0:
        template["terminationDelay"] = _duration(config.grove_termination_delay)
    if (topology := graph.spec.topology_constraint) is not None:
        constrain(template, topology, config.topology_fields, observed.topology_fields)
    override(template, graph)
    label_set = {**graph.spec.labels, labels.GRAPH_DEPLOYMENT_NAME: graph.metadata.name}
    annotations = {**graph.spec.annotations}
    if of_volcano := volcano_queue(graph, config):
        annotations[GROVE_VOLCANO_QUEUE] = of_volcano
    return new_object_of(
        graph,
        POD_CLIQUE_SETS,
        names.pod_clique_set(graph.metadata.name, parts),
        label_set,
        annotations=annotations,
        spec={"replicas": 1, **_update_strategy(graph), "template": template},
    )


def _update_strategy(graph: DynamoGraphDeployment) -> KubeObject:
    """How Grove replaces pods, if the graph specifies it. Grove's default is not written: a later Grove may change it."""
    value = graph.metadata.annotations.get(GROVE_UPDATE_STRATEGY)
    return {"updateStrategy": {"type": value}} if value in GROVE_UPDATE_STRATEGIES else {}


def _clique(context: PodContext, clique: Clique, left_out: Set[str]) -> KubeObject:
    placed = context.placed(clique.placement)
    label_set = pod_labels(placed, {})
    if labels.METRICS_ENABLED in placed.template_labels:
        # As in the reference since 1.3, and only with Grove: the author's label decides.
        label_set[labels.METRICS_ENABLED] = placed.template_labels[labels.METRICS_ENABLED]
    if clique.placement.role is PodRole.MEMORY:
        # This pod serves no requests, so discovery must not list it.
        label_set = {name: value for name, value in label_set.items() if name not in context.discovery.labels}
    elif fails_over_between_pods(context.spec):
        label_set[labels.FAILOVER_ENGINE_GROUP_MEMBER] = "true"
    spec: KubeObject = {
        "roleName": clique.name,
        "replicas": clique.replicas,
        "minAvailable": clique.min_available,
        "podSpec": pod_spec(placed),
    }
    if clique.after:
        spec["startsAfter"] = list(clique.after)
    made: KubeObject = {
        "name": clique.name,
        "labels": label_set,
        "annotations": {
            **{key: value for key, value in placed.template_annotations.items() if key not in left_out},
            DISCOVERY_BACKEND: context.discovery.backend,
            **restore_annotations(context),
        },
        "spec": spec,
    }
    return made if layout.is_group(context) else {**made, **_topology(context)}


def _scaling_group(context: PodContext, cliques: Sequence[Clique]) -> KubeObject:
    group: KubeObject = {
        "name": names.clique(context.component),
        "cliqueNames": [each.name for each in cliques],
        "replicas": context.replicas,
        "minAvailable": layout.least(context),
        **_topology(context),
    }
    sharing = [
        claims.rank_sharing(
            context.component, rank, (each.name for each in cliques if each.placement.memory_rank == rank)
        )
        for rank in _memory_ranks(context)
    ]
    return {**group, "resourceSharing": sharing} if sharing else group


def _claim_templates(context: PodContext) -> list[KubeObject]:
    """The GPUs of each rank, if several pods share them."""
    service = memory_service(context.spec)
    if service is None or not _memory_ranks(context):
        return []
    count = claims.gpus_of(context.component, context.template)
    return [
        claims.rank_template(context.component, rank, service.device_class_name, count)
        for rank in _memory_ranks(context)
    ]


def _memory_ranks(context: PodContext) -> range:
    return range(context.nodes if memory_has_pods(context.spec) else 0)


def _topology(context: PodContext) -> KubeObject:
    constraint = context.spec.topology_constraint
    return {} if constraint is None else {"topologyConstraint": {"packDomain": constraint.pack_domain}}


def _duration(seconds: float) -> str:
    """A duration in Go's format: `15m0s`, `1h0m0s`, `30s`."""
    whole, fraction = divmod(seconds, 1)
    minutes, rest = divmod(int(whole), 60)
    hours, minutes = divmod(minutes, 60)
    tail = f"{rest + fraction:g}s"
    if hours:
        return f"{hours}h{minutes}m{tail}"
    return f"{minutes}m{tail}" if minutes else tail
