"""The Job that measures engines on the cluster (operator behaviour, section 7.5). Pure."""

import json
from importlib import resources

from dynamo_shared.api.model import to_dict
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, env, labels
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.request_parts import parts_of
from dynamo_shared.api.resources import JOBS
from dynamo_shared.runtime import workload_env
from dynamo_shared.runtime.settings.operator import Infrastructure

from dynamo_profiler.profiling.results import ProfilingRequest
from dynamo_profiler.requests.ownership import owner_of
from dynamo_profiler.requests.thorough import names
from dynamo_profiler.requests.thorough.overrides import merge_job

PROFILER_APP = "dynamo-profiler"
#: Together with the pod's settings, this satisfies Pod Security `restricted`. Elsewhere it does not affect the
#: profiler.
_RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def profiling_job(
    obj: KubeObject, request: ProfilingRequest, infrastructure: Infrastructure, *, image: str, deadline: int
) -> KubeObject:
    """The Job of a request. `deadline` limits its seconds; the request's override can only shorten it.

    The profiler gets the addresses that all workloads get: planners in the resulting graph use the same Prometheus.
    """
    metadata = obj["metadata"]
    job_labels = {labels.PROFILER_APP: PROFILER_APP, labels.PROFILER_REQUEST: request.name, **_labels(request)}
    pod: KubeObject = {
        "serviceAccountName": names.SERVICE_ACCOUNT,
        "restartPolicy": "Never",
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "imagePullSecrets": [{"name": names.PULL_SECRET}],
        "containers": [_profiler(obj, request, infrastructure, image)],
        "initContainers": [_relay(obj, request, image)],
        "volumes": _volumes(obj, request),
    }
    job: KubeObject = {
        **JOBS.type_meta,
        "metadata": {
            "name": names.job(request.name),
            "namespace": request.namespace,
            "labels": job_labels,
            "annotations": {keys.REQUEST_UID: metadata["uid"]},
            "ownerReferences": [owner_of(obj)],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": deadline,
            "template": {"metadata": {"labels": dict(job_labels)}, "spec": pod},
        },
    }
    overrides = request.spec.overrides
    if overrides is not None and overrides.profiling_job is not None:
        merge_job(job, overrides.profiling_job)
    asked = job["spec"]["activeDeadlineSeconds"]
    job["spec"]["activeDeadlineSeconds"] = min(asked, deadline)
    return job


def spec_for_profiler(request: ProfilingRequest) -> str:
    """The request's spec for the profiler, with the hardware to plan for."""
    return json.dumps(to_dict(request.spec), sort_keys=True)


def _labels(request: ProfilingRequest) -> dict[str, str]:
    return {
        labels.REQUEST_NAME: request.name,
        labels.REQUEST_NAMESPACE: request.namespace,
        labels.MANAGED_BY: OPERATOR,
    }


def _profiler(obj: KubeObject, request: ProfilingRequest, infrastructure: Infrastructure, image: str) -> KubeObject:
    secret = {"secretKeyRef": {"name": names.TOKEN_SECRET, "key": names.TOKEN_KEY, "optional": True}}
    variables = [
        *({"name": name, "value": address} for name, address in workload_env.addresses(infrastructure).items()),
        {"name": env.DGDR_NAME, "value": request.name},
        {"name": env.DGDR_NAMESPACE, "value": request.namespace},
        {"name": env.DGDR_UID, "value": obj["metadata"]["uid"]},
        {"name": env.HUGGING_FACE_HUB_TOKEN, "valueFrom": secret},
    ]
    mounts: list[KubeObject] = [{"name": names.OUTPUT_VOLUME, "mountPath": names.OUTPUT_PATH}]
    cache = request.spec.model_cache
    if cache is not None and cache.pvc_name:
        mounts.append({"name": names.CACHE_VOLUME, "mountPath": cache.pvc_mount_path, "readOnly": True})
    parts = parts_of(obj)
    if parts.base_graph is not None:
        mounts.append({"name": names.CONFIG_VOLUME, "mountPath": "/config", "readOnly": True})
    return {
        "name": names.PROFILER,
        "image": image,
        "command": ["python", "-m", "dynamo.profiler"],
        "args": [
            "--config",
            spec_for_profiler(request),
            "--output-dir",
            names.OUTPUT_PATH,
            *parts.profiler_arguments,
        ],
        "workingDir": "/workspace",
        "env": sorted(variables, key=lambda each: str(each["name"])),
        "volumeMounts": mounts,
        # The pod's status then contains the end of its log, which needs no right to read logs.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": dict(_RESTRICTED),
    }


def _relay(obj: KubeObject, request: ProfilingRequest, image: str) -> KubeObject:
    """A sidecar. Kubernetes ends it after the profiler, when all files are written."""
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": names.output(request.name),
            "namespace": request.namespace,
            "labels": _labels(request),
            "annotations": {keys.REQUEST_UID: obj["metadata"]["uid"]},
            "ownerReferences": [owner_of(obj)],
        },
    }
    return {
        "name": names.RELAY,
        "image": image,
        "restartPolicy": "Always",
        "command": ["python3", "-c", relay_source()],
        "env": [{"name": "RELAY_CONFIG_MAP", "value": json.dumps(config_map, sort_keys=True)}],
        "volumeMounts": [{"name": names.OUTPUT_VOLUME, "mountPath": names.OUTPUT_PATH, "readOnly": True}],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
        "securityContext": {**_RESTRICTED, "readOnlyRootFilesystem": True},
    }


def relay_source() -> str:
    """The source of the relay, which the profiling pod runs."""
    return resources.files("dynamo_profiler.requests.thorough").joinpath("relay.py").read_text()


def _volumes(obj: KubeObject, request: ProfilingRequest) -> list[KubeObject]:
    parts = parts_of(obj)
    claim = {"persistentVolumeClaim": {"claimName": parts.output_claim}}
    output: KubeObject = claim if parts.output_claim else {"emptyDir": {}}
    volumes: list[KubeObject] = [{"name": names.OUTPUT_VOLUME, **output}]
    cache = request.spec.model_cache
    if cache is not None and cache.pvc_name:
        source = {"claimName": cache.pvc_name, "readOnly": True}
        volumes.append({"name": names.CACHE_VOLUME, "persistentVolumeClaim": source})
    if parts.base_graph is not None:
        name, key = parts.base_graph
        items = [{"key": key, "path": "disagg.yaml"}]
        volumes.append({"name": names.CONFIG_VOLUME, "configMap": {"name": name, "items": items}})
    return volumes
