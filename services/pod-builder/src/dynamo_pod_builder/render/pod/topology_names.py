"""An engine container's place among the nodes of its replica, in the same variables for each orchestrator.

Dynamo 1.6 sets them for graphs that are new to it ("Portable Topology Environment Variables").
"""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.containers import main_container
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env
from dynamo_shared.api.runtime_version import features_of

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.env import EnvVar, var

_READ = (env.DYNAMO_RANK, env.DYNAMO_LEADER_ADDRESS)


def topology_names(context: PodContext) -> list[EnvVar]:
    """Rank of the node, and address of the leader, for a container of a multinode replica.

    Only if its template reads one of them, belongs to its role, or states a runtime that knows them: an upgrade must
    not replace other pods.
    """
    return _names(context) if _is_requested(context) else []


def missing_topology_names(container: KubeObject, context: PodContext) -> list[EnvVar]:
    """The topology variables that a container lacks, if its command must connect the nodes itself."""
    there = {each["name"] for each in container["env"]}
    return [each for each in _names(context) if each["name"] not in there]


def _names(context: PodContext) -> list[EnvVar]:
    group = context.placement.group
    if group is None:
        return []
    return [
        var(env.DYNAMO_RANK, context.placement.rank_value),
        var(env.DYNAMO_LEADER_ADDRESS, group.leader_host),
    ]


def _is_requested(context: PodContext) -> bool:
    if context.has_own_commands or features_of(context.spec.runtime_version_override).topology_names:
        return True
    return any(name in text for text in _texts(main_container(context.template) or {}) for name in _READ)


def _texts(container: KubeObject) -> Iterator[str]:
    """Texts of a container that may reference a variable."""
    values: Iterator[Any] = (each.get("value") for each in container.get("env") or ())
    for text in (*(container.get("command") or ()), *(container.get("args") or ()), *values):
        if isinstance(text, str):
            yield text
