"""The objects of graphs, as a tree of owners."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from dynamo_shared.kube import KubeClient, NotServed
from dynamo_watcher.resources import WATCHED
from rich.text import Text
from rich.tree import Tree

from dynamo_ctl.commands.demo.view import COLOURS
from dynamo_ctl.summary import component_line, graph_line

REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
#: Kinds between a workload and its pods: a StatefulSet of a LeaderWorkerSet owns the leaders, and each leader owns a
#: StatefulSet with its workers.
_BETWEEN = frozenset({REPLICA_SETS.kind, STATEFUL_SETS.kind})
#: Kinds that can be below a graph, in display order.
SHOWN = (
    DYNAMO_COMPONENT_DEPLOYMENTS, DEPLOYMENTS, REPLICA_SETS, LEADER_WORKER_SETS, STATEFUL_SETS, PODS, SERVICES,
    SERVICE_ACCOUNTS, ROLES, ROLE_BINDINGS,
)  # fmt: skip

#: Kinds that a cluster may lack.
OPTIONAL = frozenset(each.resource for each in WATCHED if each.optional)


async def read(client: KubeClient, namespace: str) -> Tree:
    """Read the current graphs of a namespace with all objects that they own."""
    lists = await asyncio.gather(*(_list(client, each, namespace) for each in (DYNAMO_GRAPH_DEPLOYMENTS, *SHOWN)))
    return grow(namespace, lists[0], [obj for listed in lists[1:] for obj in listed])


def grow(namespace: str, graphs: Sequence[KubeObject], objects: Sequence[KubeObject]) -> Tree:
    """The tree of graphs and their objects.

    ReplicaSets and StatefulSets are left out: pods appear below the Deployment or the LeaderWorkerSet, workers below
    their leader.
    """
    below: dict[str, list[KubeObject]] = defaultdict(list)
    for obj in objects:
        for owner in obj["metadata"].get("ownerReferences") or ():
            if owner.get("controller"):
                below[owner["uid"]].append(obj)
    root = Tree(Text(f"namespace {namespace}", style="bold"), guide_style="dim")
    for graph in sorted(graphs, key=_name):
        _add(root, graph, below)
    return root


async def _list(client: KubeClient, resource: Resource, namespace: str) -> Sequence[KubeObject]:
    try:
        return await client.list(resource, namespace)
    except NotServed:
        if resource not in OPTIONAL:
            raise
        return ()


def _add(parent: Tree, obj: KubeObject, below: dict[str, list[KubeObject]]) -> None:
    branch = parent if obj["kind"] in _BETWEEN else parent.add(_label(obj))
    for child in below[obj["metadata"]["uid"]]:
        _add(branch, child, below)


def _label(obj: KubeObject) -> Text:
    kind, name, status = obj["kind"], obj["metadata"]["name"], obj.get("status") or {}
    label = Text(f"{kind}/{name}")
    if kind == DYNAMO_GRAPH_DEPLOYMENTS.kind:
        line = graph_line(obj)
        label.append(f"  {line.state}", COLOURS.get(line.state, ""))
    elif kind == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
        label.append(f"  {component_line(obj).replicas} ready", "dim")
    elif kind in (DEPLOYMENTS.kind, LEADER_WORKER_SETS.kind):
        label.append(f"  {status.get('readyReplicas', 0)}/{obj['spec'].get('replicas', 1)}", "dim")
    elif kind == PODS.kind:
        label.append(f"  {status.get('phase', '')} on {obj['spec'].get('nodeName', 'no node')}", "dim")
    elif kind == SERVICES.kind:
        ports = ", ".join(f"{port.get('name', '')}:{port['port']}" for port in obj["spec"].get("ports") or ())
        label.append(f"  {ports}", "dim")
    return label


def _name(obj: KubeObject) -> str:
    return str(obj["metadata"]["name"])
