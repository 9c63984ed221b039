"""Kubernetes Events (with the reference's reasons) and CloudEvents about DynamoModels."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.wording import many
from dynamo_shared.runtime.facts import EventReason, Fact
from dynamo_shared.wire.specifications.discovery import AdapterData, DynamoModelData

from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.models.status import NAMED, ModelReadiness

READY = EventReason("EndpointsReady", "All workers of a model serve it.")
NO_ENDPOINTS = EventReason("NoEndpointsFound", "No worker serves a model.", "Warning")
PROGRESS = EventReason("", "Workers load or unload an adapter.", condition="EndpointsReady")
OBSTACLE = EventReason("", "A model cannot be served without a change.", "Warning", condition="EndpointsReady")
PARTIAL_FAILURE = EventReason("PartialEndpointFailure", "Workers cannot load or unload an adapter.", "Warning")
UNLOADED = EventReason("LoRAUnloaded", "All workers unloaded the adapter of a deleted model.", action="Unload")
UNLOAD_FAILED = EventReason(
    "LoRAUnloadFailed", "A model is deleted although workers may have its adapter.", "Warning", "Unload"
)
CLEANUP_FAILED = EventReason(
    "CleanupFailed",
    "A worker may still have the adapter of a deleted model; the platform does not retry.",
    "Warning",
    "Unload",
)


def changed(model: KubeObject, status: KubeObject, verdict: ModelReadiness) -> Fact:
    """The readiness of a model changed; `status` is the new status."""
    if verdict.ready:
        reason = READY
    elif verdict.reason == "NoEndpoints":
        reason = NO_ENDPOINTS
    elif verdict.reason in ("NotReady", "Unloading") and not verdict.failures:
        reason = PROGRESS.named(verdict.reason)
    else:
        reason = OBSTACLE.named(verdict.reason)
    event = "ready" if verdict.ready else "notready"
    return reason(verdict.message, event, model_data(model, status, verdict), verdict.reason)


def gone(model: KubeObject) -> Fact:
    """A model was deleted."""
    data = model_data(model, model.get("status", {}), ModelReadiness(False, "Deleted", ""))
    return Fact(event="deleted", data=data)


def unloaded(names: Sequence[str], workers: int) -> Fact:
    """No worker has an adapter of a deleted model any more."""
    return UNLOADED(f"Unloaded {', '.join(names)} from {many(workers, 'worker')}")


def unload_failed(states: Sequence[AdapterState], names: Sequence[str]) -> Fact:
    """A model is deleted although the workers of `kept` have not unloaded its adapter."""
    shown = "; ".join(f"{each.worker.pod}: {each.failure or 'no answer yet'}" for each in states[:NAMED])
    more = f"; and {len(states) - NAMED} more" if len(states) > NAMED else ""
    return UNLOAD_FAILED(
        f"{', '.join(names)} is or may be loaded at {shown}{more}; the platform retries while these pods exist"
    )


def cleanup_failed(model: KubeObject, state: AdapterState) -> Fact:
    """A worker may still have an adapter of a deleted model, and the platform does not retry."""
    name = model.get("spec", {}).get("modelName", "")
    return CLEANUP_FAILED(
        f"{state.worker.pod} may still have {name} loaded: {state.failure or 'no answer'}; restart the pod"
    )


def adapter(event: str, model: KubeObject, state: AdapterState) -> Fact:
    """A worker loaded or unloaded an adapter, or failed to do so (`event` is `loaded`, `unloaded` or `failed`)."""
    worker, spec = state.worker, model.get("spec", {})
    message = state.failure if event == "failed" else ""
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
    # Many workers report on one version of the model: each report is a separate event.
    digest = hashlib.sha256(message.encode()).hexdigest()[:8] if message else ""
    return Fact(event=event, data=data, identity=f"{worker.uid}/{worker.incarnation}/{state.version}/{digest}")


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
