"""The Job that loads an engine of which the snapshot agent takes a checkpoint, and the rights of its pod."""

from dataclasses import dataclass

from dynamo_shared.api.meta import ObjectMeta
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.probes import PROBES
from dynamo_shared.api.registry import labels
from dynamo_shared.api.registry.annotations import (
    ISTIO_INJECT,
    LINKERD_INJECT,
    SNAPSHOT_ARTIFACT_VERSION,
    SNAPSHOT_TARGET_CONTAINERS,
)
from dynamo_shared.api.resources import DYNAMO_CHECKPOINTS, JOBS, controller_reference
from dynamo_shared.api.v1alpha1 import DynamoCheckpoint, DynamoCheckpointSpec
from dynamo_shared.api.v1alpha1.enums import SharingMode
from dynamo_shared.api.v1beta1 import (
    ComponentType,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    GpuMemoryService,
)
from dynamo_shared.api.v1beta1.experimental import Experimental

from dynamo_pod_builder.render.access.rbac import discovery_access
from dynamo_pod_builder.render.checkpoint import names
from dynamo_pod_builder.render.checkpoint.mounts import confine, connect
from dynamo_pod_builder.render.checkpoint.target import Storage
from dynamo_pod_builder.render.config import NEW_COMPONENT, RenderConfig
from dynamo_pod_builder.render.context import PodContext, context_of
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.metadata import new_object
from dynamo_pod_builder.render.names import discovery_account
from dynamo_pod_builder.render.pod.containers import worker
from dynamo_pod_builder.render.pod.env import merge_env, standard
from dynamo_pod_builder.render.pod.volumes import share_memory
from dynamo_pod_builder.render.sharing import gpu_memory
from dynamo_pod_builder.render.sharing.claims import claim_templates

#: Seconds for which an ended Job stays, so that users can inspect it.
KEPT = 300
#: The engine's name; its claims are named after it.
_ENGINE = "worker"
_TEMPLATE = "spec.job.podTemplateSpec.spec.containers"
#: The proxy of a service mesh outlives the engine, so the Job would never end.
_OUTSIDE_MESHES = {ISTIO_INJECT: "false", LINKERD_INJECT: "disabled"}
_READY = {"exec": {"command": ["cat", names.READY_FOR_CHECKPOINT]}, "periodSeconds": 1}


@dataclass(frozen=True, slots=True)
class PlannedCheckpoint:
    """A checkpoint to be taken: the version, the identity, and the location of its files."""

    identity_hash: str
    version: str
    storage: Storage

    @property
    def job(self) -> str:
        """Name of the Job."""
        return names.job(self.identity_hash, self.version)

    @property
    def location(self) -> str:
        """Directory of the files."""
        return self.storage.location(self.identity_hash, self.version)


def children(
    checkpoint: DynamoCheckpoint, spec: DynamoCheckpointSpec, planned: PlannedCheckpoint, config: RenderConfig
) -> list[KubeObject]:
    """The objects that a DynamoCheckpoint owns while it is taken. Raises RenderError if no pod can be made from it."""
    owner = controller_reference(DYNAMO_CHECKPOINTS, checkpoint.metadata.name, checkpoint.metadata.uid)
    context = _context(checkpoint, spec, planned, config)
    account = discovery_account(checkpoint.metadata.name) if context.discovery.kubernetes else ""
    made = discovery_access(checkpoint.metadata.name, context.namespace, owner) if account else []
    made += claim_templates(
        context.graph, context.component, context.namespace, context.spec, context.template, owner=owner
    )
    return [*made, _job(spec, planned, context, account, owner)]


def _context(
    checkpoint: DynamoCheckpoint, spec: DynamoCheckpointSpec, planned: PlannedCheckpoint, config: RenderConfig
) -> PodContext:
    """The engine as a standalone worker, because it must not join the workers that serve."""
    component = DynamoComponentDeployment(
        metadata=ObjectMeta(name=names.checkpoint(planned.identity_hash), namespace=checkpoint.metadata.namespace),
        spec=DynamoComponentDeploymentSpec(
            name=_ENGINE,
            type=ComponentType.WORKER,
            pod_template=spec.job.pod_template_spec,
            experimental=_shared_gpus(spec, config),
        ),
    )
    return context_of(component, config, NEW_COMPONENT)


def _shared_gpus(spec: DynamoCheckpointSpec, config: RenderConfig) -> Experimental | None:
    service = spec.gpu_memory_service
    if service is None or not service.enabled:
        return None
    at = "spec.gpuMemoryService"
    if service.mode is not SharingMode.INTRA_POD:
        raise RenderError(
            "",
            f"{at}.mode",
            "must be IntraPod: the engine of a checkpoint Job runs in one pod with its GPU memory service",
        )
    if not config.device_claims:
        raise RenderError(
            "", at, "shared GPUs need Dynamic Resource Allocation, which is not available in this cluster"
        )
    return Experimental(gpu_memory_service=GpuMemoryService(device_class_name=service.device_class_name))


def _job(
    spec: DynamoCheckpointSpec, planned: PlannedCheckpoint, context: PodContext, account: str, owner: KubeObject
) -> KubeObject:
    own = {labels.CHECKPOINT_ID: planned.identity_hash}
    annotations = {
        **_OUTSIDE_MESHES,
        **context.template_annotations,
        SNAPSHOT_ARTIFACT_VERSION: planned.version,
        SNAPSHOT_TARGET_CONTAINERS: MAIN,
        **planned.storage.annotations,
    }
    template = {
        "metadata": {
            # Pods of components are watched; the status of this pod shows what delays it.
            "labels": {labels.COMPONENT: _ENGINE, **context.template_labels, **own, labels.CHECKPOINT_SOURCE: "true"},
            "annotations": annotations,
        },
        "spec": _pod(spec, planned, context, account),
    }
    return new_object(
        JOBS,
        planned.job,
        context.namespace,
        own,
        annotations={SNAPSHOT_ARTIFACT_VERSION: planned.version},
        owner=owner,
        spec={
            # Before more GPU time is spent, users inspect an engine that could not be loaded or checkpointed.
            "backoffLimit": 0,
            "activeDeadlineSeconds": spec.job.active_deadline_seconds,
            "ttlSecondsAfterFinished": KEPT,
            "template": template,
        },
    )


def _pod(spec: DynamoCheckpointSpec, planned: PlannedCheckpoint, context: PodContext, account: str) -> KubeObject:
    pod: KubeObject = {**(context.template.get("spec") or {}), "restartPolicy": "Never"}
    main = _main(pod)
    main["env"] = merge_env(standard(context.config), worker.container(context)["env"], main.get("env") or ())
    if account and not pod.get("serviceAccountName"):
        pod["serviceAccountName"] = account
    memory = spec.job.shared_memory
    share_memory(main, pod, None if memory is None else 0 if memory.disabled else memory.size)
    connect(pod, main, planned.storage)
    # It loads and then halts, so it has no liveness probe, only the probe that says whether the agent may begin.
    for probe in PROBES:
        main.pop(probe, None)
    main["readinessProbe"] = _READY
    identity = spec.identity
    if identity.tensor_parallel_size * identity.pipeline_parallel_size > 1:
        _launch(main)
    confine(pod, context.config.checkpoints.profile)
    gpu_memory.share(pod, context)
    return pod


def _main(pod: KubeObject) -> KubeObject:
    """The engine's container. It comes first, and all containers become separate dicts."""
    containers: list[KubeObject] = [dict(each) for each in pod.get("containers") or ()]
    pod["containers"] = sorted(containers, key=lambda each: each["name"] != MAIN)
    for container in containers:
        if container["name"] == MAIN:
            if not container.get("image"):
                raise RenderError("", f"{_TEMPLATE}[{MAIN}].image", "is required", "name the image of the engine")
            return container
    raise RenderError("", _TEMPLATE, f"has no container {MAIN}", f"name the container of the engine {MAIN}")


def _launch(main: KubeObject) -> None:
    """Start an engine with several GPUs by the program that can halt all of its processes together."""
    command = main.get("command") or []
    if not command:
        raise RenderError(
            "",
            f"{_TEMPLATE}[{MAIN}].command",
            "is required for an engine with several GPUs, because cuda-checkpoint starts it",
            "set command to the entrypoint of the image",
        )
    main["args"] = ["--launch-job", *command, *(main.get("args") or ())]
    main["command"] = ["cuda-checkpoint"]
