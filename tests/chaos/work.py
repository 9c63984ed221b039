"""Creates, scales, changes and deletes graphs despite all faults, and checks the objects that must exist in the end."""

import asyncio
import contextlib
import json
import random
from dataclasses import dataclass, field

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    SERVICES,
)

from tests.hostile.objects import IMAGE, component, graph
from tests.stage.api import Answer, Api

NAMESPACE = "chaos"
MOST_GRAPHS = 12
#: Seconds between two operations.
PACE = 0.25
#: Share of changes that set an adapter's replicas, if there is one.
ADAPTERS = 0.3
_MARK = "WORK"


@dataclass(slots=True)
class Work:
    """Does the work without a record: the final specs say which objects must exist.

    `lived` and `deleted` are uids of graphs, for the events that must report them.
    """

    api: Api
    dice: random.Random
    done: int = 0
    lived: dict[str, str] = field(default_factory=dict)
    deleted: dict[str, str] = field(default_factory=dict)
    _number: int = 0
    _ending: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Work until `stop`."""
        self._ending.clear()
        while not self._ending.is_set():
            await self._one()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PACE):
                    await self._ending.wait()

    def stop(self) -> None:
        """Finish the current operation, then end: the result of an aborted request would be unknown."""
        self._ending.set()

    async def _one(self) -> None:
        there = await self.api.list(DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACE)
        there = [each for each in there if "deletionTimestamp" not in each["metadata"]]
        roll = self.dice.random()
        if len(there) < 4 or (roll < 0.3 and len(there) < MOST_GRAPHS):
            answer = await self._create()
        elif roll < 0.45:
            answer = await self._delete(self.dice.choice(there))
        else:
            answer = await self._change(self.dice.choice(there))
        self.done += answer.ok

    async def _create(self) -> Answer:
        self._number += 1
        parts = [component("Frontend", "frontend"), component("Worker", "worker")]
        if self.dice.random() < 0.3:
            parts[1]["scalingAdapter"] = {}
        answer = await self.api.create(graph(NAMESPACE, f"graph-{self._number}", *parts))
        if answer.ok:
            self.lived[answer.json()["metadata"]["uid"]] = f"graph-{self._number}"
        return answer

    async def _delete(self, obj: KubeObject) -> Answer:
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        answer = await self.api.delete(DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACE, name)
        if answer.ok:
            self.deleted[uid] = name
        return answer

    async def _change(self, obj: KubeObject) -> Answer:
        act = self.dice.choices((_scale, _version, _adapter, _restart), (6, 5, 2, 2))[0]
        if self.dice.random() < ADAPTERS and (part := self._adapted(obj)) is not None:
            name, number = f"{obj['metadata']['name']}-{part['name'].lower()}", self.dice.randint(0, 3)
            patch: KubeObject = {"spec": {"replicas": number}}
            return await self.api.patch(DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS, NAMESPACE, name, patch)
        spec = json.loads(json.dumps(obj["spec"]))
        act(spec, self.dice)
        changed = {name: spec[name] for name in ("components", "restart") if name in spec}
        patch = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}, "spec": changed}
        return await self.api.patch(DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACE, obj["metadata"]["name"], patch)

    def _adapted(self, obj: KubeObject) -> KubeObject | None:
        return next((part for part in obj["spec"]["components"] if "scalingAdapter" in part), None)


def _scale(spec: KubeObject, dice: random.Random) -> None:
    own = [part for part in spec["components"] if "scalingAdapter" not in part]
    dice.choice(own)["replicas"] = dice.randint(0, 3)


def _version(spec: KubeObject, dice: random.Random) -> None:
    env = [{"name": _MARK, "value": str(dice.randint(1, 10**9))}]
    template = {"spec": {"containers": [{"name": "main", "image": IMAGE, "env": env}]}}
    dice.choice(spec["components"])["podTemplate"] = template


def _adapter(spec: KubeObject, _: random.Random) -> None:
    """Add an adapter to the worker, or remove it."""
    worker = next(part for part in spec["components"] if part["name"] == "Worker")
    if worker.pop("scalingAdapter", None) is None:
        worker["scalingAdapter"] = {}


def _restart(spec: KubeObject, dice: random.Random) -> None:
    spec["restart"] = {"id": str(dice.randint(1, 10**9))}


async def differences(api: Api) -> list[str]:
    """What does not match the specs of the graphs yet; empty once everything matches."""
    graphs = await api.list(DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACE)
    children = {
        resource.kind: await api.list(resource, NAMESPACE)
        for resource in (DYNAMO_COMPONENT_DEPLOYMENTS, DEPLOYMENTS, SERVICES, DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS)
    }
    results: list[str] = []
    parts = {each["metadata"]["name"]: {part["name"] for part in each["spec"]["components"]} for each in graphs}
    for kind, items in children.items():
        for item in items:
            own = item["metadata"].get("labels") or {}
            owner, part = own.get(labels.GRAPH_DEPLOYMENT_NAME), own.get(labels.COMPONENT)
            if owner and (owner not in parts or (part and part not in parts[owner])):
                results.append(f"{kind} {item['metadata']['name']} is left of {part or 'all'} of graph {owner}")
    for each in graphs:
        results += _of_graph(each, children)
    return results


def _of_graph(obj: KubeObject, children: dict[str, list[KubeObject]]) -> list[str]:
    name = obj["metadata"]["name"]
    if "deletionTimestamp" in obj["metadata"]:
        return [f"{name} is still being deleted"]
    status = obj.get("status") or {}
    problems: list[str] = []
    if status.get("observedGeneration") != obj["metadata"]["generation"] or status.get("state") != "successful":
        problems.append(
            f"{name} is {status.get('state')} of generation {status.get('observedGeneration')}, "
            f"which is {obj['metadata']['generation']}"
        )
    adapters = {
        (item["spec"]["dgdRef"]["name"], item["spec"]["dgdRef"]["componentName"]): item["spec"].get("replicas")
        for item in children[DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind]
    }
    restart, asked = status.get("restart") or {}, (obj["spec"].get("restart") or {}).get("id", "")
    if asked and (restart.get("observedID") != asked or restart.get("phase") not in ("Completed", "Superseded")):
        problems.append(f"{name} has {restart} of restart {asked}")
    for part in obj["spec"]["components"]:
        if ((name, part["name"]) in adapters) != ("scalingAdapter" in part):
            problems.append(f"{name}/{part['name']} has an adapter: {(name, part['name']) in adapters}")
        own = [item for item in children[DEPLOYMENTS.kind] if _is_of(item, name, part["name"])]
        desired = adapters.get((name, part["name"]), part.get("replicas", 1))
        if len(own) != 1:
            problems.append(f"{name}/{part['name']} has {len(own)} Deployments")
            continue
        replicas = own[0]["spec"]["replicas"]
        if replicas != desired:
            problems.append(f"{name}/{part['name']} has {replicas} replicas; the spec says {desired}")
        if (mark := _mark(part["podTemplate"]["spec"])) != _mark(own[0]["spec"]["template"]["spec"]):
            problems.append(f"{name}/{part['name']} is not the version {mark} of its spec")
        if (own[0].get("status") or {}).get("availableReplicas", 0) != replicas:
            problems.append(f"{name}/{part['name']} has not all of its replicas yet")
    return problems


def _is_of(item: KubeObject, name: str, part: str) -> bool:
    object_labels = item["metadata"].get("labels") or {}
    return object_labels.get(labels.GRAPH_DEPLOYMENT_NAME) == name and object_labels.get(labels.COMPONENT) == part


def _mark(pod: KubeObject) -> str:
    env = [each for part in pod["containers"] if part["name"] == "main" for each in part.get("env") or ()]
    return next((str(each.get("value", "")) for each in env if each["name"] == _MARK), "")
