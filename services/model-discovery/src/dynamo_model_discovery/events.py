"""Every Event and every NATS event about DynamoModels, in one place."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dynamo_shared.api.conditions import find
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.specifications.discovery import DYNAMO_MODEL, AdapterData, DynamoModelData
from dynamo_shared.kube.event_series import EventType
from dynamo_shared.kube.events import EventRecorder

from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.models.status import ENDPOINTS_READY, NAMED, ModelReadiness


class ModelReporter:
    """Reports to users (Kubernetes Events) and programs (NATS) how a model is served. Reasons are the reference's."""

    def __init__(
        self, recorder: EventRecorder, publisher: EventPublisher, model: Callable[[ObjectKey], KubeObject | None]
    ) -> None:
        self._recorder = recorder
        self._publisher = publisher
        self._model = model
        #: By uid: errors of failing workers in the last report.
        self._reported: dict[str, frozenset[str]] = {}

    def changed(self, model: KubeObject, status: KubeObject, verdict: ModelReadiness) -> None:
        """A model's status is about to be written."""
        self._failing(model, verdict)
        before = find(model.get("status", {}).get("conditions") or (), ENDPOINTS_READY)
        if before is not None and (before["status"], before["reason"]) == (str(verdict.ready), verdict.reason):
            return
        if verdict.ready:
            self._record(model, "Normal", "EndpointsReady", verdict.message)
        elif verdict.reason == "NoEndpoints":
            self._record(model, "Warning", "NoEndpointsFound", verdict.message)
        else:
            progress = verdict.reason in ("NotReady", "Unloading") and not verdict.failures
            type_: EventType = "Normal" if progress else "Warning"
            self._record(model, type_, verdict.reason, verdict.message)
        data = model_data(model, status, verdict)
        event = "ready" if verdict.ready else "notready"
        self._publisher.publish(kind=DYNAMO_MODEL, obj=model, event=event, data=data, reason=verdict.reason)

    def gone(self, model: KubeObject) -> None:
        """A model was deleted."""
        data = model_data(model, model.get("status", {}), ModelReadiness(False, "Deleted", ""))
        self._publisher.publish(kind=DYNAMO_MODEL, obj=model, event="deleted", data=data)

    def forget(self, model: KubeObject) -> None:
        """A model does not exist any more."""
        self._reported.pop(model["metadata"]["uid"], None)

    def loaded(self, state: AdapterState) -> None:
        """A worker has the adapter."""
        self._adapter("loaded", state)

    def failed(self, state: AdapterState) -> None:
        """A try failed, for another reason than the one before it."""
        self._adapter("failed", state, state.failure)

    def unloaded(self, state: AdapterState) -> None:
        """A worker unloaded an adapter of a model that is deleted or being deleted."""
        self._adapter("unloaded", state)

    def cleaned(self, model: KubeObject, names: Sequence[str], workers: int) -> None:
        """No worker has an adapter of a deleted model any more."""
        if workers:
            message = f"Unloaded {', '.join(names)} from {workers} {'worker' if workers == 1 else 'workers'}"
            self._record(model, "Normal", "LoRAUnloaded", message, action="Unload")

    def left(self, model: KubeObject, kept: Sequence[AdapterState], names: Sequence[str]) -> None:
        """A model is deleted although workers have not unloaded its adapter."""
        shown = "; ".join(f"{each.worker.pod}: {each.failure or 'no answer yet'}" for each in kept[:NAMED])
        more = f"; and {len(kept) - NAMED} more" if len(kept) > NAMED else ""
        message = f"{', '.join(names)} is still loaded, or may be, at {shown}{more}; unloading is retried while these pods exist"
        self._record(model, "Warning", "LoRAUnloadFailed", message, action="Unload")

    def given_up(self, model: KubeObject, state: AdapterState) -> None:
        """A worker kept an adapter of a deleted model, and unloading is not retried any more."""
        name = model.get("spec", {}).get("modelName", "")
        message = f"{state.worker.pod} may still have {name} loaded: {state.failure or 'no answer'}; restart the pod"
        self._record(model, "Warning", "CleanupFailed", message, action="Unload")

    def _failing(self, model: KubeObject, verdict: ModelReadiness) -> None:
        """Reports new reasons of failing workers; a new count alone is only in the status."""
        uid = model["metadata"]["uid"]
        said = frozenset(verdict.failures.values())
        if said - self._reported.get(uid, frozenset()):
            self._record(model, "Warning", "PartialEndpointFailure", verdict.message)
        if said:
            self._reported[uid] = said
        else:
            self._reported.pop(uid, None)

    def _adapter(self, event: str, state: AdapterState, message: str = "") -> None:
        model = self._model(state.model)
        if model is None:
            return
        worker, spec = state.worker, model.get("spec", {})
        data = AdapterData(
            name=state.model.name,
            namespace=state.model.namespace,
            model_name=spec.get("modelName", ""),
            base_model_name=spec.get("baseModelName", ""),
            pod=worker.pod,
            pod_uid=worker.uid,
            address=worker.url,
            message=message,
        )
        # Many workers report on one version of the model: each is another event.
        digest = hashlib.sha256(message.encode()).hexdigest()[:8] if message else ""
        identity = f"{worker.uid}/{worker.incarnation}/{state.version}/{digest}"
        self._publisher.publish(kind=DYNAMO_MODEL, obj=model, event=event, data=data, reason=identity)

    def _record(
        self, model: KubeObject, type_: EventType, reason: str, message: str, *, action: str = "Reconcile"
    ) -> None:
        self._recorder.record(model, type_=type_, reason=reason, message=message, action=action)


def model_data(model: KubeObject, status: Mapping[str, Any], verdict: ModelReadiness) -> DynamoModelData:
    """Data of an event about a model."""
    metadata, spec = model["metadata"], model.get("spec", {})
    return DynamoModelData(
        name=metadata["name"],
        namespace=metadata.get("namespace", ""),
        model_name=spec.get("modelName", ""),
        base_model_name=spec.get("baseModelName", ""),
        model_type=spec.get("modelType", ""),
        ready_endpoints=status.get("readyEndpoints", 0),
        total_endpoints=status.get("totalEndpoints", 0),
        reason=verdict.reason,
        message=verdict.message,
        generation=str(metadata.get("generation", 0)),
    )
