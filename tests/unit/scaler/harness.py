"""A scaler without servers: objects in memory, a manual clock, and a record of all reports."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from dynamo_scaler.adapters import pods
from dynamo_scaler.autoscaling import rivals
from dynamo_scaler.commands.admission import CommandAdmission
from dynamo_scaler.commands.cluster_view import ClusterView
from dynamo_scaler.commands.held_scalings import HeldScalings
from dynamo_scaler.commands.request import ScaleRequest
from dynamo_scaler.commands.scaling import Scaling
from dynamo_scaler.commands.writer import Writer
from dynamo_scaler.metrics import DecisionMetrics
from dynamo_scaler.reconcilers import adapters
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import SCALING_INTENTS
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    Resource,
)
from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.kube.errors import Forbidden, Unavailable
from dynamo_shared.runtime.facts import Announcer, Fact
from dynamo_shared.runtime.settings.scaler import Budget, Direction, Scaler, ScalingLimits
from dynamo_shared.state import ObjectCache
from dynamo_shared.wire.specifications.scaling import ScaleTarget
from prometheus_client import CollectorRegistry

from tests.building.memory_kube import MemoryKube

START = 1_800_000_000.0

FREE = ScalingLimits(min=0, down=Direction())
SIX = Scaler(limits=FREE, budgets=(Budget(name="six", min_gpus=6, max_gpus=6),))
TWELVE = Scaler(limits=FREE, budgets=(Budget(name="twelve", min_gpus=12, max_gpus=12),))

#: Scales component Decode of graph a.
AUTOSCALER = {
    "metadata": {"name": "hpa", "namespace": "team", "uid": "h", "resourceVersion": "1"},
    "spec": {"scaleTargetRef": {"kind": "DynamoGraphDeploymentScalingAdapter", "name": "a-decode"}},
}


class HarnessKube(MemoryKube):
    """The rest of the platform acts on changes if `acts`. The API server goes away before write `breaks` (from 1)."""

    def __init__(self) -> None:
        super().__init__()
        self.breaks = 0
        #: The object that must not be written.
        self.refused = ""
        self.acts = True
        self.before_write: Callable[[], object] = lambda: None

    def _store(self, resource: Resource, key: ObjectKey, obj: KubeObject) -> KubeObject:
        if "status" in obj and self.acts:
            obj["status"]["observedGeneration"] = obj["metadata"]["generation"]
        return super()._store(resource, key, obj)

    def _admit(self, verb: str, resource: Resource, key: ObjectKey) -> None:
        act, self.before_write = self.before_write, lambda: None
        act()
        if self.breaks:
            self.breaks -= 1
            if not self.breaks:
                raise Unavailable(0, "Unavailable", "it is away")
        if self.refused == f"{resource.plural} {key.name}":
            raise Forbidden(403, "Forbidden", "a policy says no")
        super()._admit(verb, resource, key)


class Reports(Announcer):
    """All published facts, sorted by type."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Any]] = []
        self.kube_events: list[tuple[str, str, str]] = []
        #: What distinguishes each event from the others.
        self.identities: list[tuple[str, str, str]] = []

    def announce(self, obj: KubeObject, fact: Fact) -> None:
        if fact.reason:
            self.kube_events.append((fact.type, fact.reason, fact.message))
        if fact.event is not None:
            self.identities.append((fact.event, fact.causation_id, fact.identity))
            self.events.append((obj["metadata"]["name"], fact.event, fact.data))

    def of(self, graph: str) -> list[tuple[str, str]]:
        """Event and reason of each event of one graph."""
        return [(event, data.reason) for name, event, data in self.events if name == graph]


class ScalerHarness:
    """One scaler. `again` creates its successor, which reads everything again and has no memory of its own."""

    def __init__(self, settings: Scaler, kube: HarnessKube | None = None, clock: list[float] | None = None) -> None:
        self.settings = settings
        self.kube = kube or HarnessKube()
        self.clock = clock or [START]
        self.reported = Reports()
        self.cache = ObjectCache()
        pods.index(self.cache)
        adapters.index(self.cache)
        rivals.index(self.cache)
        self.view = ClusterView(self.cache, settings, lambda namespace: namespace == "elsewhere")
        writer = Writer(self.kube, self.cache)  # type: ignore[arg-type]
        self.metrics = DecisionMetrics(CollectorRegistry())
        self.scaling = Scaling(
            self.view,
            writer,
            self.reported,
            self.metrics,
            CommandAdmission(self.view, writer, lambda: self.clock[0]),
            lambda: self.clock[0],
        )
        self.resuming = HeldScalings(self.scaling)
        self.read()

    def again(self) -> ScalerHarness:
        return ScalerHarness(self.settings, self.kube, self.clock)

    def read(self) -> None:
        """Copy all writes of others into the cache."""
        self.kube.publish(self.cache)

    def having(self, name: str, *, adapters: bool = True, gpus: int = 1, **replicas: int) -> ScalerHarness:
        """This harness with a graph added."""
        self.graph(name, adapters=adapters, gpus=gpus, **replicas)
        return self

    def graph(self, name: str, *, adapters: bool = True, gpus: int = 1, **replicas: int) -> None:
        """Add a graph that is in the desired state."""
        main = {"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
        components = [
            {
                "name": component,
                "type": component.lower(),
                "replicas": n,
                **({"scalingAdapter": {}} if adapters else {}),
                "podTemplate": {"spec": {"containers": [main]}},
            }
            for component, n in replicas.items()
        ]
        metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}"}
        spec, status = {"components": components}, {"observedGeneration": 1, "state": "successful"}
        self.kube.put({**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec, "status": status})
        owner = {"kind": DYNAMO_GRAPH_DEPLOYMENTS.kind, "name": name, "uid": f"uid-{name}", "controller": True}
        for component, n in replicas.items() if adapters else ():
            adapter = f"{name}-{component.lower()}"
            metadata = {"name": adapter, "namespace": "team", "uid": f"uid-{adapter}"}
            self.kube.put(
                {
                    **DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.type_meta,
                    "metadata": {**metadata, "ownerReferences": [owner]},
                    "spec": {"dgdRef": {"name": name, "componentName": component}, "replicas": n},
                }
            )
        self.read()

    def on_grove(self, name: str, **least: int) -> None:
        """Let Grove run a graph and start that many replicas of each component together."""

        def run(graph: KubeObject) -> None:
            for each in graph["spec"]["components"]:
                each["minAvailable"] = least[each["name"]]
            graph["status"]["components"] = {each: {"componentKind": "PodClique"} for each in least}

        self.change(name, run)

    def note(self, name: str, **annotations: str | None) -> None:
        """A user annotates a graph."""
        self.change(name, lambda graph: graph["metadata"].setdefault("annotations", {}).update(annotations))

    def change(self, name: str, how: Callable[[KubeObject], Any]) -> None:
        """A user changes a graph, and the cache receives the change."""
        obj = copy.deepcopy(self.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", name)])
        how(obj)
        self.kube.put(obj)
        self.read()

    def replicas(self, name: str) -> dict[str, int]:
        """The desired replicas in the API server."""
        graph = self.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", name)]
        results = {each["name"]: each["replicas"] for each in graph["spec"]["components"]}
        for (plural, _), obj in self.kube.objects.items():
            if plural == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.id and obj["spec"]["dgdRef"]["name"] == name:
                results[obj["spec"]["dgdRef"]["componentName"]] = obj["spec"]["replicas"]
        return results

    def intents(self, name: str) -> dict[str, Any]:
        """The recorded intents."""
        graph = self.kube.objects[DYNAMO_GRAPH_DEPLOYMENTS.id, ObjectKey("team", name)]
        text = graph["metadata"].get("annotations", {}).get(SCALING_INTENTS)
        document: dict[str, Any] = json.loads(text) if text else {}
        return document

    def ask(self, name: str, command: str = "c1", requester: str = "", sent: str = "", **replicas: int) -> ScaleRequest:
        targets = [ScaleTarget(component=component, replicas=n) for component, n in replicas.items()]
        return ScaleRequest(ObjectKey("team", name), command, targets, requester=requester, sent=sent)


async def refused(harness: ScalerHarness, ask: Any) -> tuple[str, str]:
    """Reason and message of a command that the scaler rejects."""
    with pytest.raises(CommandRefusedError) as caught:
        await harness.scaling.carry_out(ask)
    return caught.value.reason, str(caught.value)
