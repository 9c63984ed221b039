"""Waits until graphs are successful, and reports why they are not."""

import asyncio
import time
from collections.abc import Iterable, Sequence

from dynamo_shared.api.objects import KubeObject, condition
from dynamo_shared.api.resources import DYNAMO_COMPONENT_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, EVENTS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.events import last_observed

from dynamo_ctl.commands.demo.view import Show
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.summary import graph_line, is_successful

POLL_INTERVAL = 0.1
#: `failed` may be temporary (a quota that is raised, an admission webhook that restarts). After this time it counts as
#: permanent. Seconds.
FAILED_FOR = 10.0
#: Number of quoted events: the newest matter most.
QUOTED_EVENTS = 5


class GraphProgress:
    """Progress of the demo's graphs, in seconds of one clock. Pure: `observe` gets the graphs and the time."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._created: dict[str, float] = {}
        self._failed: dict[str, float] = {}
        self.took: dict[str, float] = {}
        self.graphs: list[KubeObject] = []

    def observe(self, graphs: Iterable[KubeObject], now: float) -> None:
        """Record the current graphs."""
        observed = {graph["metadata"]["name"]: graph for graph in graphs}
        self.graphs = [observed[name] for name in self._names if name in observed]
        for graph in self.graphs:
            name = graph["metadata"]["name"]
            created = self._created.setdefault(name, now)
            if is_successful(graph):
                self.took.setdefault(name, now - created)
            if (graph.get("status") or {}).get("state") == "failed":
                self._failed.setdefault(name, now)
            else:
                self._failed.pop(name, None)

    def ages(self, now: float) -> dict[str, float]:
        """Seconds from creation to now, or to success."""
        return {name: self.took.get(name, now - created) for name, created in self._created.items()}

    @property
    def complete(self) -> bool:
        """Whether every expected graph has been successful."""
        return len(self.took) == len(self._names)

    @property
    def late(self) -> list[KubeObject]:
        """Graphs that have not been successful."""
        return [graph for graph in self.graphs if graph["metadata"]["name"] not in self.took]

    def has_failed(self, now: float) -> bool:
        """Whether every graph exists, and every unsuccessful graph has been failed for `FAILED_FOR`."""
        late = [graph["metadata"]["name"] for graph in self.late]
        since = [self._failed.get(name, now) for name in late]
        return bool(since) and len(self.graphs) == len(self._names) and now - max(since) > FAILED_FOR


async def until_successful(
    client: KubeClient,
    namespace: str,
    names: Sequence[str],
    show: Show,
    *,
    timeout: float,
    applying: asyncio.Task[None],
) -> dict[str, float]:
    """Show the graphs while `applying` creates them. Returns for each graph the seconds from creation to success.

    Raises CtlError with reasons if a graph is not successful within `timeout` seconds, and the errors of `applying`.
    """
    progress, begun = GraphProgress(names), time.monotonic()
    while True:
        graphs = await client.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)
        now = time.monotonic() - begun
        progress.observe(graphs, now)
        show([graph_line(graph) for graph in progress.graphs], progress.ages(now))
        if applying.done():
            applying.result()
        # A request may have no graph yet.
        if progress.complete and applying.done():
            return progress.took
        if now > timeout or progress.has_failed(now):
            raise CtlError("\n".join(await reasons(client, namespace, progress.late)), ExitCode.NOT_READY)
        await asyncio.sleep(POLL_INTERVAL)


async def reasons(client: KubeClient, namespace: str, graphs: Sequence[KubeObject]) -> list[str]:
    """Why graphs are not successful: their conditions, the conditions of their components, and the newest warnings."""
    components = await client.list(DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
    lines: list[str] = []
    for graph in graphs:
        line = graph_line(graph)
        lines.append(f"{line.name} is {line.state}, components {line.components}: {line.message or 'no message'}")
        for component in components:
            if not _owned(component, graph):
                continue
            available = condition(component, "Available") or {}
            if available.get("status") != "True":
                why = available.get("message") or "not reconciled yet"
                lines.append(f"  {component['metadata']['name']}: {available.get('reason', 'Unknown')}: {why}")
    warnings = await client.list(EVENTS, namespace, field_selector="type=Warning")
    newest = sorted(warnings, key=last_observed)[-QUOTED_EVENTS:]
    for event in newest:
        about = event.get("regarding") or {}
        note = " ".join(str(event.get("note", "")).split())
        lines.append(f"  event on {about.get('kind')}/{about.get('name')}: {event.get('reason')}: {note}")
    return lines


def _owned(component: KubeObject, graph: KubeObject) -> bool:
    owners = component["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == graph["metadata"]["uid"] for owner in owners)
