"""The cliques of a component on Grove, and the order in which they start (reference behaviour, section 1.5)."""

from dataclasses import dataclass, replace

from dynamo_shared.api.component_names import LEADERS

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.backends import backend_of
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod import placement
from dynamo_pod_builder.render.pod.placement import ALONE, PodPlacement
from dynamo_pod_builder.render.sharing.spec import fails_over_between_pods, memory_has_pods, pods_a_rank

LEADER, WORKER, MEMORY = LEADERS, "wkr", "gms"


@dataclass(frozen=True, slots=True)
class Clique:
    """Identical pods of a component: their place, their number, and the cliques that start before them."""

    name: str
    placement: PodPlacement
    replicas: int
    min_available: int = 1
    after: tuple[str, ...] = ()


def is_group(context: PodContext) -> bool:
    """Whether a component is a scaling group: a replica has several cliques, or must be placed separately."""
    return context.nodes > 1 or memory_has_pods(context.spec) or _is_forced(context)


def _is_forced(context: PodContext) -> bool:
    experimental = context.spec.experimental
    grove = experimental.grove if experimental is not None else None
    return grove is not None and bool(grove.force_scaling_group)


def least(context: PodContext) -> int:
    """Replicas that are useful only together: Grove starts them at once, and restarts all if fewer are left."""
    return context.spec.min_available or 1


def cliques(context: PodContext) -> list[Clique]:
    """The cliques of a component, in the order of the PodCliqueSet."""
    if memory_has_pods(context.spec):
        return [each for rank in range(context.nodes) for each in _of_rank(context, rank)]
    name = context.component
    if context.nodes == 1 and is_group(context):
        return [Clique(names.clique(name), ALONE, 1)]
    if context.nodes == 1:
        # Replicas are useful independently, unless the graph says otherwise; a group needs all of its pods.
        return [Clique(names.clique(name), ALONE, context.replicas, least(context))]
    group, workers = placement.grove(name, context.nodes), context.nodes - 1
    first = Clique(names.clique(name, LEADER), placement.leader(group, context.nodes), 1)
    rest = Clique(names.clique(name, WORKER), placement.worker(group, context.nodes), workers, workers)
    return [replace(first, after=(rest.name,)) if backend_of(context).traits.leader_starts_last else first, rest]


def _of_rank(context: PodContext, rank: int) -> tuple[Clique, Clique]:
    """The server of one rank's GPU memory, and the engines that use it: the serving engine and its standbys."""
    name, nodes = context.component, context.nodes
    server = Clique(names.clique(name, f"{MEMORY}-{rank}"), placement.memory(nodes, rank), 1)
    engines = pods_a_rank(context.spec, context.legacy.shadows)
    # With one engine per rank, all are needed; with more, the waiting ones are not.
    least = 1 if fails_over_between_pods(context.spec) else engines
    if nodes == 1:
        place, role = replace(ALONE, memory_rank=rank), ""
    else:
        group = placement.grove_by_rank(name, nodes, rank)
        at = placement.worker(group, nodes) if rank else placement.leader(group, nodes)
        place, role = replace(at, memory_rank=rank), f"{WORKER}-{rank}" if rank else LEADER
    return server, Clique(names.clique(name, role), place, engines, least, (server.name,))
