"""Fields of requests that only v1alpha1 has. Conversion stores them in an annotation, and they have effect.

`spec_of` is the v1beta1 spec of a request with the effect of these fields; all code that handles requests uses it.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from dynamo_shared.api.contracts.profiler import ProfilerConfig
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.reading import items, mapping, text
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

ALPHA = DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.at("v1alpha1").api_version
BASE_GRAPH_KEY = "disagg.yaml"
#: Containers of the profiling Job.
PROFILER, RELAY = "profiler", "output-copier"
#: Number of engines (prefill and decode) that a v1alpha1 request for at most N GPUs per engine may have.
_ROLES = 2
#: Annotations in which the reference operator stores fields of v1alpha1, and the paths of these fields.
_OF_OPERATOR = {
    keys.DGDR_CONFIG_MAP_REF: ("profilingConfig", "configMapRef"),
    keys.DGDR_OUTPUT_PVC: ("profilingConfig", "outputPVC"),
    keys.DGDR_PROFILING_CONFIG: ("profilingConfig", "config"),
    keys.DGDR_ENABLE_GPU_DISCOVERY: ("enableGpuDiscovery",),
    keys.DGDR_DEPLOYMENT_OVERRIDES: ("deploymentOverrides",),
}


#: Paths of v1beta1 fields, and of the v1alpha1 fields that replace them in messages.
_ALPHA_FIELDS = {
    "spec.hardware.gpuSku": "spec.profilingConfig.config.hardware.gpuType",
    "spec.hardware.totalGpus": "spec.profilingConfig.config.hardware.maxNumGpusPerEngine",
    "spec.hardware": "spec.profilingConfig.config.hardware",
    "spec.workload": "spec.profilingConfig.config.sla",
    "spec.sla": "spec.profilingConfig.config.sla",
    "spec.modelCache": "spec.profilingConfig.config.deployment.modelCache",
    "spec.features.planner": "spec.profilingConfig.config.planner",
    "spec.overrides.dgd.metadata": "spec.deploymentOverrides",
}
_BETA_FIELD = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, _ALPHA_FIELDS))})(?!\w)")


@dataclass(frozen=True, slots=True)
class RequestParts:
    """The fields of a request that only v1alpha1 has."""

    discovers_gpus: bool = True
    base_graph: tuple[str, str] | None = None
    """ConfigMap and key of a graph to begin with"""
    output_claim: str = ""
    """PersistentVolumeClaim for the profiler's files"""
    workers_image: str = ""
    """image of the graph's workers; "" means that of the request"""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """name, labels and annotations of the graph"""
    config: ProfilerConfig = field(default_factory=ProfilerConfig)
    """configuration of the profiler; empty if it is invalid"""

    @property
    def profiler_arguments(self) -> tuple[str, ...]:
        """Options of the profiler's command line."""
        sweep, deployment = self.config.sweep, self.config.deployment
        timeout = (deployment and deployment.deployment_timeout) or self.config.deployment_ready_timeout_s
        given = {
            "--prefill-interpolation-granularity": sweep and _set(sweep, "prefill_interpolation_granularity"),
            "--decode-interpolation-granularity": sweep and _set(sweep, "decode_interpolation_granularity"),
            "--deployment-timeout": timeout,
        }
        options = [word for name, value in given.items() if value is not None for word in (name, str(value))]
        return (*options, *(("--dry-run",) if sweep and sweep.dry_run else ()))


def parts_of(obj: KubeObject) -> RequestParts:
    """The v1alpha1 fields of a v1beta1 request; `RequestParts()` if it has none."""
    annotations = obj["metadata"].get("annotations") or {}
    spec: dict[str, Any] = {}
    if annotations.keys() & {keys.PRESERVED_FIELDS, keys.OPERATOR_REQUEST_SPEC}:
        spec = mapping(convert(obj, ALPHA).get("spec"))
    for name, path in _OF_OPERATOR.items():
        if name in annotations:
            spec = _filled_in(spec, path, _decoded(annotations[name]))
    profiling, overrides = mapping(spec.get("profilingConfig")), mapping(spec.get("deploymentOverrides"))
    config = _config(profiling.get("config"))
    reference = mapping(profiling.get("configMapRef"))
    hardware = config.hardware
    enabled_in_config = hardware is not None and hardware.enable_gpu_discovery
    config_map = text(reference.get("name"))
    return RequestParts(
        discovers_gpus=spec.get("enableGpuDiscovery", True) is not False or enabled_in_config,
        base_graph=(config_map, text(reference.get("key")) or BASE_GRAPH_KEY) if config_map else None,
        output_claim=text(profiling.get("outputPVC")),
        workers_image=text(overrides.get("workersImage")) or (config.deployment and config.deployment.dgd_image) or "",
        metadata={name: overrides[name] for name in ("name", "labels", "annotations") if overrides.get(name)},
        config=config,
    )


def in_request_fields(message: str, obj: KubeObject) -> str:
    """A message about a v1beta1 request, with the names of v1alpha1 fields if the request was written in v1alpha1.

    A v1alpha1 request whose fields all have a counterpart in v1beta1 is not recognized: its message is unchanged.
    """
    annotations = obj["metadata"].get("annotations") or {}
    if not annotations.keys() & {keys.PRESERVED_FIELDS, keys.OPERATOR_REQUEST_SPEC, *_OF_OPERATOR}:
        return message
    return _BETA_FIELD.sub(lambda match: _ALPHA_FIELDS[match[0]], message)


def spec_of(obj: KubeObject) -> DynamoGraphDeploymentRequestSpec:
    """The spec of a valid v1beta1 request, completed by its v1alpha1 fields; v1beta1 fields have priority."""
    body = obj.get("spec") or {}
    parts = parts_of(obj)
    if parts == RequestParts():
        return DynamoGraphDeploymentRequestSpec.model_validate(body)
    config, body = parts.config, dict(body)
    if body.get("backend", "auto") in ("", "auto") and config.engine and config.engine.backend:
        body["backend"] = config.engine.backend
    if hardware := _hardware(config):
        body["hardware"] = {**hardware, **{name: each for name, each in mapping(body.get("hardware")).items() if each}}
    if goal := config.sla and config.sla.optimization_type:
        # Conversion handles only the present names of goals, the ProfilerConfig also older ones.
        body["sla"] = {"optimizationType": goal, **mapping(body.get("sla"))}
    if "modelCache" not in body and (cache := config.deployment and config.deployment.model_cache):
        given = {
            "pvcName": cache.pvc_name,
            "pvcModelPath": cache.model_path_in_pvc,
            "pvcMountPath": cache.pvc_mount_path,
        }
        body["modelCache"] = {name: value for name, value in given.items() if value}
    if parts.metadata:
        overrides = mapping(body.get("overrides"))
        graph = mapping(overrides.get("dgd"))
        metadata = {**parts.metadata, **mapping(graph.get("metadata"))}
        body["overrides"] = {**overrides, "dgd": {**graph, "metadata": metadata}}
    return DynamoGraphDeploymentRequestSpec.model_validate(body)


def _hardware(config: ProfilerConfig) -> dict[str, Any]:
    hardware, sweep = config.hardware, config.sweep
    per_engine = hardware.max_num_gpus_per_engine if hardware else 0
    present = {
        "gpuSku": (hardware and hardware.gpu_type) or (sweep and sweep.aic_system),
        "numGpusPerNode": hardware and hardware.num_gpus_per_node,
        "totalGpus": _ROLES * per_engine,
    }
    return {name: value for name, value in present.items() if value}


def _set(model: Any, name: str) -> Any:
    """The value of a field that was set; None if it has its default."""
    return getattr(model, name) if name in model.model_fields_set else None


def _config(value: Any) -> ProfilerConfig:
    try:
        return ProfilerConfig.model_validate(mapping(value))
    except ValidationError:
        # v1alpha1 accepts any object. Admission returned a warning at each write.
        return ProfilerConfig()


def _filled_in(spec: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The spec with the value at the path, unless it has a value there."""
    first, *rest = path
    if rest:
        return {**spec, first: _filled_in(mapping(spec.get(first)), tuple(rest), value)}
    return spec if first in spec else {**spec, first: value}


def _decoded(text: str) -> Any:
    """The value of a JSON text; other text unchanged, because the reference operator writes names without quotes."""
    try:
        return json_text.decode(text, SETTINGS)
    except json_text.InvalidJson:
        return text


def profiling_containers(pod: KubeObject) -> tuple[KubeObject, KubeObject]:
    """The containers of the pod in `overrides.profilingJob`: the profiler, and the one that copies its output.

    The profiler is the container with its name, otherwise the first other container.
    """
    given = [each for each in items(pod.get("containers")) if isinstance(each, dict)]
    relay = next((each for each in given if each.get("name") == RELAY), {})
    others = [each for each in given if each.get("name") != RELAY]
    return next((each for each in others if each.get("name") == PROFILER), others[0] if others else {}), relay
