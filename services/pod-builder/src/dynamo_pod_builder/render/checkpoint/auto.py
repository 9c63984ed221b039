"""The DynamoCheckpoint of a component whose identity has no checkpoint yet."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import SNAPSHOT_ARTIFACT_VERSION
from dynamo_shared.api.resources import DYNAMO_CHECKPOINTS
from dynamo_shared.api.v1beta1 import (
    CheckpointIdentity,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    GpuMemoryService,
    to_dict,
)

from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.identity import identity_hash
from dynamo_pod_builder.render.config import ObservedComponent, RenderConfig
from dynamo_pod_builder.render.context import PodContext, context_of
from dynamo_pod_builder.render.metadata import new_object
from dynamo_pod_builder.render.names import discovery_account
from dynamo_pod_builder.render.pod.pod import pod_spec
from dynamo_pod_builder.render.pod.volumes import SHARED_MEMORY
from dynamo_pod_builder.render.sharing.spec import memory_service
from dynamo_pod_builder.render.typed import typed


def checkpoint_of(
    component: DynamoComponentDeployment,
    identity: CheckpointIdentity,
    config: RenderConfig,
    observed: ObservedComponent,
) -> KubeObject:
    """DynamoCheckpoint of a component's engine, without an owner: others of the same identity start from it, too."""
    context = context_of(alone(component, MAIN), config, replace(observed, restore=None))
    digest = identity_hash(identity)
    spec: KubeObject = {
        "identity": to_dict(identity),
        "job": {
            "podTemplateSpec": {
                "metadata": {"labels": {labels.COMPONENT: context.component}},
                "spec": _engine_alone(context),
            },
            **_shared_memory(context.spec.shared_memory_size),
        },
    }
    memory = memory_service(component.spec)
    if memory is not None:
        spec["gpuMemoryService"] = _gpu_memory(memory)
    return typed(
        new_object(
            DYNAMO_CHECKPOINTS,
            names.checkpoint(digest),
            context.namespace,
            {labels.CHECKPOINT_ID: digest},
            annotations={SNAPSHOT_ARTIFACT_VERSION: names.FIRST_VERSION},
            spec=spec,
        )
    )


def alone(component: DynamoComponentDeployment, *names: str) -> DynamoComponentDeployment:
    """The component with only the containers of these names, and without the generation of a rolling update."""
    template = component.spec.pod_template or {}
    metadata = template.get("metadata") or {}
    label_set = {name: value for name, value in (metadata.get("labels") or {}).items() if name != labels.WORKER_HASH}
    pod = template.get("spec") or {}
    containers = [each for each in pod.get("containers") or () if each["name"] in names]
    spec: DynamoComponentDeploymentSpec = component.spec.model_copy(
        update={
            "experimental": None,
            "frontend_sidecar": None,
            # A sidecar that never ends would prevent the Job from ending.
            "pod_template": {
                **template,
                "metadata": {**metadata, "labels": label_set},
                "spec": {**pod, "containers": containers},
            },
        }
    )
    return component.model_copy(update={"spec": spec})


def _engine_alone(context: PodContext) -> KubeObject:
    pod = {**pod_spec(context), "restartPolicy": "Never"}
    if pod.get("serviceAccountName") == discovery_account(context.graph):
        # This account is deleted with the graph; the checkpoint has its own.
        del pod["serviceAccountName"]
    pod["volumes"] = [each for each in pod.get("volumes", ()) if each["name"] != SHARED_MEMORY]
    if not pod["volumes"]:
        del pod["volumes"]
    return pod


def _shared_memory(size: int | str | None) -> KubeObject:
    if size is None:
        return {}
    return {"sharedMemory": {"disabled": True} if quantity.is_zero(size) else {"size": quantity.canonical(size)}}


def _gpu_memory(service: GpuMemoryService) -> Mapping[str, Any]:
    mode = service.mode.value
    return {
        "enabled": True,
        "mode": mode[:1].lower() + mode[1:],
        "deviceClassName": service.device_class_name,
    }
