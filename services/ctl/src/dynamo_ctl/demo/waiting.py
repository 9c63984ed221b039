"""Waiting until graphs are successful, and saying why they are not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, EVENTS
from dynamo_shared.kube import KubeClient

from dynamo_ctl.demo.view import View
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.summary import condition, graph_line, is_successful

KubeObject = dict[str, Any]

LOOK_EVERY = 0.1
#: `failed` may be passed through (a quota that is raised, an admission webhook that restarts); this long, it stays.
FAILED_FOR = 10.0
#: Events that are quoted; the newest tell most.
QUOTED_EVENTS = 5


async def until_successful(
    client: KubeClient,
    namespace: str,
    names: Sequence[str],
    view: View,
    timeout: float,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> dict[str, float]:
    """Seconds to success of each graph, shown on the way. CtlError, with the reasons, where one does not get there."""
    begun = clock()
    took: dict[str, float] = {}
    failing: dict[str, float] = {}
    while True:
        found = {
            graph["metadata"]["name"]: graph for graph in (await client.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)).items
        }
        graphs = [found[name] for name in names if name in found]
        now = clock() - begun
        for graph in graphs:
            name = graph["metadata"]["name"]
            if is_successful(graph):
                took.setdefault(name, now)
            if (graph.get("status") or {}).get("state") == "failed":
                failing.setdefault(name, now)
            else:
                failing.pop(name, None)
        view.show([graph_line(graph) for graph in graphs], {name: took.get(name, now) for name in names})
        if len(took) == len(names):
            return took
        late = [graph for graph in graphs if graph["metadata"]["name"] not in took]
        hopeless = bool(late) and all(now - failing.get(g["metadata"]["name"], now) > FAILED_FOR for g in late)
        if now > timeout or hopeless:
            raise CtlError("\n".join(await reasons(client, namespace, late)), ExitCode.NOT_READY)
        await asyncio.sleep(LOOK_EVERY)


async def reasons(client: KubeClient, namespace: str, graphs: Sequence[KubeObject]) -> list[str]:
    """Why graphs are not successful: their own condition, those of their components, and the newest warnings."""
    components = (await client.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace)).items
    lines: list[str] = []
    for graph in graphs:
        line = graph_line(graph)
        lines.append(f"{line.name} is {line.state}, components {line.components}: {line.message or 'no message'}")
        for component in components:
            if not _owned(component, graph):
                continue
            available = condition(component, "Available")
            if available.get("status") != "True":
                why = available.get("message") or "not looked at yet"
                lines.append(f"  {component['metadata']['name']}: {available.get('reason', 'Unknown')}: {why}")
    warnings = (await client.list(EVENTS, namespace, field_selector="type=Warning")).items
    newest = sorted(warnings, key=_moment)[-QUOTED_EVENTS:]
    for event in newest:
        about = event.get("regarding") or {}
        note = " ".join(str(event.get("note", "")).split())
        lines.append(f"  event on {about.get('kind')}/{about.get('name')}: {event.get('reason')}: {note}")
    return lines


def _owned(component: KubeObject, graph: KubeObject) -> bool:
    owners = component["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == graph["metadata"]["uid"] for owner in owners)


def _moment(event: KubeObject) -> str:
    series = event.get("series") or {}
    return str(series.get("lastObservedTime") or event.get("eventTime") or event.get("deprecatedLastTimestamp") or "")
