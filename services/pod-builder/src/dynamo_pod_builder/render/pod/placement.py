"""The place of a pod in a replica that spans several nodes, and how the pods of that replica find each other."""

from dataclasses import dataclass
from enum import StrEnum

from dynamo_shared.api.registry import env


class PodRole(StrEnum):
    """The role of a pod in its replica."""

    MAIN = "main"
    LEADER = "leader"
    WORKER = "worker"
    #: Holds the GPU memory of a rank, which the engines of that rank share.
    MEMORY = "gms"


@dataclass(frozen=True, slots=True)
class Group:
    """The pods of one replica, by the names that their orchestrator gives them.

    Names contain `$(VARIABLE)`, which Kubernetes replaces; a computed rank and `$(command)` need a shell.
    """

    leader_host: str
    worker_hosts: tuple[str, ...]
    worker_rank: str
    #: The same rank for a shell's `$(( ))`, in which Kubernetes replaces no variables.
    shell_rank: str
    rank_needs_shell: bool
    #: The same rank as a container variable's value, in which Kubernetes replaces variables, but computes nothing.
    rank_value: str
    #: Whether workers' names resolve only some time after the leader has started.
    names_come_late: bool


@dataclass(frozen=True, slots=True)
class PodPlacement:
    """One pod's place: without a group, or the leader or a worker of a group."""

    role: PodRole = PodRole.MAIN
    nodes: int = 1
    group: Group | None = None
    #: Rank whose GPU memory the pod shares with other pods; None if it does not share.
    memory_rank: int | None = None
    #: Rank of the pod in its group: in its command line, and as the value of a variable.
    rank: str = "0"
    rank_value: str = "0"
    #: Whether a shell must compute the rank in the command line.
    rank_needs_shell: bool = False


ALONE = PodPlacement()


def leader(group: Group, nodes: int) -> PodPlacement:
    """The place of a group's first pod."""
    return PodPlacement(PodRole.LEADER, nodes, group)


def worker(group: Group, nodes: int) -> PodPlacement:
    """The place of any other pod of a group."""
    return PodPlacement(
        PodRole.WORKER,
        nodes,
        group,
        rank=group.worker_rank,
        rank_value=group.rank_value,
        rank_needs_shell=group.rank_needs_shell,
    )


def memory(nodes: int, rank: int) -> PodPlacement:
    """The place of the pod that holds the GPU memory of a rank."""
    return PodPlacement(PodRole.MEMORY, nodes, memory_rank=rank)


def leader_worker_set(nodes: int) -> Group:
    """Names from LeaderWorkerSet: worker i of leader `x.service` is `x-i.service`."""
    return Group(
        leader_host="$(LWS_LEADER_ADDRESS)",
        worker_hosts=tuple(f"$(echo \"$LWS_LEADER_ADDRESS\" | sed 's/\\./-{i}\\./')" for i in range(1, nodes)),
        worker_rank="$(LWS_WORKER_INDEX)",
        shell_rank="LWS_WORKER_INDEX",
        rank_needs_shell=False,
        rank_value="$(LWS_WORKER_INDEX)",
        names_come_late=True,
    )


def grove(component: str, nodes: int) -> Group:
    """Names from Grove for the pods of a scaling group's cliques: a leader, and one clique of workers."""
    rank = f"$(({env.GROVE_PCLQ_POD_INDEX} + 1))"
    return Group(
        leader_host=_grove_host(component, "ldr-0"),
        worker_hosts=tuple(_grove_host(component, f"wkr-{i}") for i in range(nodes - 1)),
        worker_rank=rank,
        shell_rank=rank,
        rank_needs_shell=True,
        # Only later releases of Grove count across all cliques of a group. A single worker needs no count.
        rank_value="1" if nodes == 2 else f"$({env.GROVE_PCSG_POD_INDEX})",
        names_come_late=False,
    )


def grove_by_rank(component: str, nodes: int, rank: int) -> Group:
    """The same for engines that fail over, with a separate clique for each rank: pods of one index form a group."""
    index = f"$({env.GROVE_PCLQ_POD_INDEX})"
    return Group(
        leader_host=_grove_host(component, f"ldr-{index}"),
        worker_hosts=tuple(_grove_host(component, f"wkr-{each}-{index}") for each in range(1, nodes)),
        worker_rank=str(rank),
        shell_rank=str(rank),
        rank_needs_shell=False,
        rank_value=str(rank),
        names_come_late=False,
    )


def _grove_host(component: str, pod: str) -> str:
    group = f"$({env.GROVE_PCSG_NAME})-$({env.GROVE_PCSG_INDEX})"
    return f"{group}-{component.lower()}-{pod}.$({env.GROVE_HEADLESS_SERVICE})"
