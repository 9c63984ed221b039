"""An API server with KEDA's webhook that stores autoscalers, and a scaler that writes to it and records its facts."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dynamo_scaler.adapters.status import ConditionState
from dynamo_scaler.autoscaling import rivals
from dynamo_scaler.autoscaling.autoscalers import Autoscalers, AutoscalerState
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import AUTOSCALING
from dynamo_shared.api.resources import HORIZONTAL_POD_AUTOSCALERS, SCALED_OBJECTS, ObjectKey, Resource, key_of
from dynamo_shared.kube.errors import Forbidden
from dynamo_shared.kube.overruled import OverruledWrites
from dynamo_shared.state import ObjectCache

from tests.building.clock import ManualClock
from tests.building.memory_kube import MemoryKube
from tests.unit.announced import Announced

KEY = ObjectKey("n", "g-w")
TRANSFER = "scaledobject.keda.sh/transfer-hpa-ownership"
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADAPTER: KubeObject = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeploymentScalingAdapter",
    "metadata": {"name": "g-w", "namespace": "n", "uid": "u", "resourceVersion": "1"},
    "spec": {"dgdRef": {"name": "g", "componentName": "W"}, "replicas": 1},
}
HPA = {"maxReplicas": 3}
TRIGGERS = {"maxReplicas": 3, "triggers": [{"type": "cron", "metadata": {"timezone": "UTC"}}]}


class AutoscalerApi(MemoryKube):
    """An API server with KEDA's webhook. `calls` lists writes and dry runs of writes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []
        #: Kinds whose writes a policy rejects. Dry runs of them pass unless the policy is `strict`.
        self.refused: set[str] = set()
        self.strict = True
        self.has_keda_webhook = True
        self.before_delete: Callable[[], None] = lambda: None
        self.field_manager = "dynamo-scaler"

    def kinds(self) -> list[str]:
        """Kinds of the stored objects that are not being deleted."""
        return sorted(each["kind"] for each in self.objects.values() if "deletionTimestamp" not in each["metadata"])

    async def create(
        self, resource: Resource, obj: KubeObject, *, dry_run: bool = False, strict: bool = True
    ) -> KubeObject:
        self.calls.append(f"{'try' if dry_run else 'create'} {resource.kind}")
        self._judge(resource, obj, dry_run=dry_run)
        return await super().create(resource, obj, dry_run=dry_run, strict=strict)

    async def apply(self, resource: Resource, obj: KubeObject) -> KubeObject:
        self.calls.append(f"apply {resource.kind}")
        self._judge(resource, obj, dry_run=False)
        return await super().apply(resource, obj)

    async def delete(self, resource: Resource, key: ObjectKey, *, uid: str | None = None) -> None:
        act, self.before_delete = self.before_delete, lambda: None
        act()
        self.calls.append(f"delete {resource.kind}")
        await super().delete(resource, key, uid=uid)

    def _judge(self, resource: Resource, obj: KubeObject, *, dry_run: bool) -> None:
        if resource.kind in self.refused and (self.strict or not dry_run):
            raise Forbidden(403, "Forbidden", "a policy says no")
        if resource != SCALED_OBJECTS or not self.has_keda_webhook:
            return
        # Like KEDA's webhook: no ScaledObject next to an HPA of its target, unless it takes over that HPA.
        for (kind, _), hpa in self.objects.items():
            if kind != HORIZONTAL_POD_AUTOSCALERS.id or hpa["spec"]["scaleTargetRef"] != obj["spec"]["scaleTargetRef"]:
                continue
            config = obj["spec"].get("advanced", {}).get("horizontalPodAutoscalerConfig", {})
            takes_over = obj["metadata"].get("annotations", {}).get(TRANSFER) == "true"
            if not takes_over or config.get("name") != hpa["metadata"]["name"]:
                raise Forbidden(403, "Forbidden", f"the workload is already managed by the hpa {key_of(hpa).name!r}")


class AutoscalerDesk:
    """The autoscalers of the adapter `g-w` in one scaler, and the scaler's cache of the API server."""

    def __init__(self) -> None:
        self.api = AutoscalerApi()
        self.cache = ObjectCache()
        rivals.index(self.cache)
        self.announced = Announced()
        self.clock = ManualClock()
        self.autoscalers = Autoscalers(
            self.api,  # type: ignore[arg-type]
            self.cache,
            self.announced,
            lambda _: True,
            lambda: NOW,
            OverruledWrites(self.cache.memory(), self.clock),
        )

    def read(self) -> None:
        """Copy all stored objects into the scaler's cache."""
        self.api.publish(self.cache)

    async def ask(self, rules: Any) -> AutoscalerState:
        """Reconcile the adapter with the rules of its graph (None: the graph has no autoscaler)."""
        annotations = {AUTOSCALING: json.dumps({"W": rules})} if rules is not None else {}
        graph = {
            "apiVersion": "nvidia.com/v1beta1",
            "kind": "DynamoGraphDeployment",
            "metadata": {"name": "g", "namespace": "n", "annotations": annotations},
            "spec": {"components": [{"name": "W", "scalingAdapter": {}}]},
        }
        return await self.autoscalers.ensure(graph, ADAPTER)

    async def condition(self, rules: Any) -> ConditionState:
        """The adapter's condition after such a reconcile."""
        condition = (await self.ask(rules)).condition
        assert condition is not None
        return condition

    def foreign(self, resource: Resource, name: str = "g-w", **spec: Any) -> KubeObject:
        """An autoscaler that a user created; it targets the adapter unless `spec` says otherwise."""
        target = {"apiVersion": ADAPTER["apiVersion"], "kind": ADAPTER["kind"], "name": "g-w"}
        metadata = {"name": name, "namespace": "n"}
        spec = {"scaleTargetRef": target, **spec}
        return self.api.put({**resource.type_meta, "metadata": metadata, "spec": spec})

    async def kedas(self, triggers: Any) -> KubeObject:
        """The HPA that KEDA creates for a ScaledObject with these triggers, if KEDA has no webhook."""
        self.api.has_keda_webhook = False
        await self.ask(triggers)
        scaled_object = await self.api.get(SCALED_OBJECTS, KEY)
        hpa = self.foreign(HORIZONTAL_POD_AUTOSCALERS, "keda-hpa-g-w")
        uid = scaled_object["metadata"]["uid"]
        owner = {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "name": "g-w",
            "uid": uid,
            "controller": True,
        }
        hpa["metadata"]["ownerReferences"] = [owner]
        return self.api.put(hpa)
