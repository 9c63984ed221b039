"""Merged logs of all pods of a graph or of a component: lines as server-sent events, or as JSON."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from aiohttp import web
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NODES, PODS, ObjectKey
from dynamo_shared.kube import NotFound

from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, Kind
from dynamo_dynadmin.api.logs.container_log import ContainerLine, LogPart, read_log
from dynamo_dynadmin.api.logs.follower import CONTAINERS, CallerLogs, LogFollower
from dynamo_dynadmin.api.logs.position import LogPosition
from dynamo_dynadmin.api.logs.sources import ContainerStart, LogSelection, is_simulated, starts
from dynamo_dynadmin.api.turns import ConcurrencyLimit
from dynamo_dynadmin.deploy.problems import FieldProblem
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.problems import ProblemError
from dynamo_dynadmin.http.pulse import Pulse
from dynamo_dynadmin.http.streaming import Streams
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub

#: Timeout for a log that is not followed, which is available at once. Seconds.
_SILENCE = 30.0
#: Lines of an answer that does not follow, and their characters: pods determine the length of lines.
_LINES, _LONGEST = 10_000, 8 << 20
#: Concurrent answers of this kind of one user, and of all users of a replica: each is in memory, and reads up to 64
#: logs.
OF_A_USER, IN_ALL = 4, 32


class Logs:
    """Reads logs with the caller's rights."""

    def __init__(self, hub: Hub, details: Details, reading: CollectionReader, streams: Streams) -> None:
        self._hub = hub
        self._details = details
        self._reading = reading
        self._streams = streams
        self._followed: Counter[str] = Counter()
        """number of logs that streams read, by caller"""
        self._answers = ConcurrencyLimit("answers with logs", of_a_user=OF_A_USER, total=IN_ALL)

    async def logs(self, call: Call, kind: Kind) -> web.StreamResponse:
        """Lines of all containers; with `follow`, as a stream."""
        pods = await self._details.pods_of(call, kind)
        await self._reading.require(call, ResourceAttributes("get", PODS, call.namespace, subresource="log"))
        selection = LogSelection(call.text("component"), call.text("pod"), call.text("container"))
        if selection.component and kind is DEPLOYMENTS:
            require_component(selection.component, await self._details.object(call, kind))
        selected = starts(pods, selection, simulated_nodes(self._hub, pods))
        if not selected:
            require_selected(pods, selection)
        if (count := sum(not each.is_init for each in selected)) > CONTAINERS:
            detail = f"{count} containers; select at most {CONTAINERS} with component, pod or container"
            raise ProblemError("bad-request", detail)
        part = LogPart(call.text("tail") or "1000", call.text("sinceSeconds"), previous=call.flag("previous"))
        if call.flag("follow"):
            return await self._follow(call, kind, selection, part)
        with self._answers.taken(call.caller.limit_key):
            return await self._lines(call, selected, part)

    async def _lines(self, call: Call, selected: list[ContainerStart], part: LogPart) -> web.StreamResponse:
        lines: list[dict[str, str]] = []
        left_out = size = 0
        places = asyncio.Semaphore(CONTAINERS)

        async def keep(line: ContainerLine) -> None:
            nonlocal left_out, size
            size += len(line.text)
            if len(lines) < _LINES and size <= _LONGEST:
                lines.append(line.row())
            else:
                left_out += 1

        async def read(start: ContainerStart) -> str:
            source = start.source
            if start.reason:
                return f"{source.pod.name}/{source.container}: {start.reason}"
            async with places:
                query = part.query(source.container, follow=False)
                return await read_log(call.kube, source, query, _SILENCE, keep)

        failures = await asyncio.gather(*map(read, selected))
        if left_out:
            failures.append(f"{left_out} more lines are omitted: select fewer with component, pod, container or tail")
        lines.sort(key=lambda each: each["time"])
        return call.answer({"items": lines, "problems": [each for each in failures if each]})

    async def _follow(self, call: Call, kind: Kind, selection: LogSelection, part: LogPart) -> web.StreamResponse:
        last = call.request.headers.get("Last-Event-ID", "")
        position = LogPosition.of(last) if last else None
        if last and position is None:
            raise ProblemError("bad-request", "Last-Event-ID does not belong to this stream")
        acts = [
            ResourceAttributes("list", PODS, call.namespace),
            ResourceAttributes("get", PODS, call.namespace, subresource="log"),
        ]
        pods = _Pods(self._hub, self._details, call, kind, selection)
        of_caller = CallerLogs(self._followed, call.caller.limit_key)
        follower = LogFollower(call.kube, self._hub, call.namespace, pods, part, of_caller=of_caller, position=position)
        async with self._streams.opened(call, acts) as stream:
            async with Pulse(follower.lines(), stream) as lines:
                async for line in lines:
                    if line is not None:
                        event, identity = ("log", follower.position) if line.time else ("notice", "")
                        await stream.send(event, line.row(), identity)
            await stream.send("end", {"detail": "no container is left to follow"})
        return stream.response


class _Pods:
    """The selected pods of the object that a call names."""

    def __init__(self, hub: Hub, details: Details, call: Call, kind: Kind, selection: LogSelection) -> None:
        self._hub = hub
        self._details = details
        self._call = call
        self._kind = kind
        self._selection = selection

    def concerns(self, pod: StoredObject) -> bool:
        return self._selects(pod) and self._details.is_pod_of(pod, self._kind, self._call.name)

    def _selects(self, pod: StoredObject) -> bool:
        return self._selection.includes(pod.key.name, pod.labels)

    async def starts(self) -> list[ContainerStart] | None:
        pods = [each async for each in self._details.known_pods(self._call, self._kind, self._selects)]
        key = ObjectKey(self._call.namespace, self._call.name)
        if not pods and self._hub.entries(self._kind.resource).get(key) is None:
            try:
                # STATE may not have an object yet that was just created.
                await self._details.object(self._call, self._kind)
            except NotFound:
                return None
        return starts(pods, self._selection, simulated_nodes(self._hub, pods))


def simulated_nodes(hub: Hub, pods: list[KubeObject]) -> set[str]:
    """Names of these pods' nodes that are simulated; empty if nodes are not read."""
    nodes = hub.entries(NODES)
    names = {str(pod["spec"].get("nodeName") or "") for pod in pods}
    known = {name: nodes.get(ObjectKey("", name)) for name in names}
    return {name for name, node in known.items() if node is not None and is_simulated(node.obj)}


def on_simulated_nodes(hub: Hub, details: Details) -> Callable[[Call], Awaitable[bool]]:
    """Returns a function: whether all pods of a call's graph are on simulated nodes."""

    async def simulated(call: Call) -> bool:
        pod: KubeObject | None = None
        async with aclosing(details.known_pods(call, DEPLOYMENTS)) as pods:
            async for pod in pods:
                if not simulated_nodes(hub, [pod]):
                    return False
        return pod is not None

    return simulated


def require_selected(pods: list[KubeObject], selection: LogSelection) -> None:
    """ProblemError for a pod that does not exist, or a container that no pod has."""
    names = [each["metadata"]["name"] for each in pods]
    if selection.pod and selection.pod not in names:
        raise _unknown_choice("pod", selection.pod, names)
    if selection.container and names:
        containers = dict.fromkeys(each.source.container for each in starts(pods, LogSelection(pod=selection.pod)))
        raise _unknown_choice("container", selection.container, list(containers))


def _unknown_choice(parameter: str, given: str, names: list[str]) -> ProblemError:
    there = f"one of {', '.join(names)}" if names else "there are none yet"
    detail = f"there is no {parameter} {given} here; {there}"
    return ProblemError("bad-request", f"{parameter}: {detail}", errors=[FieldProblem(f"?{parameter}", detail)])


def require_component(component: str, graph: KubeObject) -> None:
    """ProblemError for a component that a graph does not have. A component without pods is not an error: its logs are
    empty.
    """
    names = [each["name"] for each in graph["spec"].get("components") or ()]
    if component not in names:
        detail = f"{component} is not a component of this graph; one of {', '.join(names)}"
        raise ProblemError("bad-request", f"component: {detail}", errors=[FieldProblem("?component", detail)])
