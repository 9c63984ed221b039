"""Mode `objective`: a DynamoGraphDeploymentRequest, for which profiling selects the graph."""

import re
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS
from pydantic.alias_generators import to_camel

from dynamo_dynadmin.deploy.draft import Draft
from dynamo_dynadmin.deploy.intent import DeployIntent, RouterMode

_CHOSEN = "profiling chooses this value; use mode graph, or deploy a point of the result and change the graph"
_ONLY_KV = (
    "a request supports only kv; set another router in overrides.dgd of the request, or deploy a point and change "
    "the graph"
)
_LATER = "profiling writes the engines' pods; use mode graph, or deploy a point and change the graph"

#: Fields of the request that equal fields of the intent: path below spec, then group and field.
_DIRECT: tuple[tuple[str, str, str], ...] = (
    ("hardware.gpuSku", "hardware", "gpu_sku"),
    ("hardware.totalGpus", "hardware", "total_gpus"),
    ("hardware.numGpusPerNode", "hardware", "gpus_per_node"),
    ("hardware.vramMb", "hardware", "vram_mib"),
    ("hardware.interconnect", "hardware", "interconnect"),
    ("hardware.rdma", "hardware", "rdma"),
    ("workload.isl", "workload", "isl"),
    ("workload.osl", "workload", "osl"),
    ("workload.concurrency", "workload", "concurrency"),
    ("workload.requestRate", "workload", "request_rate"),
    ("sla.ttft", "objective", "ttft_ms"),
    ("sla.itl", "objective", "itl_ms"),
    ("sla.e2eLatency", "objective", "e2e_ms"),
    ("sla.optimizationType", "objective", "optimize_for"),
    ("searchStrategy", "objective", "search"),
    ("autoApply", "objective", "auto_apply"),
)
#: Fields that have no place in a request, with the reason.
_NOWHERE: tuple[tuple[str, str, str], ...] = (
    *(("hardware", each, _CHOSEN) for each in ("gpu_product", "gpus_per_replica")),
    *(("hardware", each, _LATER) for each in ("cpu", "memory", "shared_memory")),
    *(("serving", each, _CHOSEN) for each in ("mode", "autoscaling")),
    *(("parallelism", each, _CHOSEN) for each in ("tensor", "pipeline", "data", "expert")),
    *(
        ("engine", each, _LATER)
        for each in (
            "context_length",
            "max_batch_size",
            "dtype",
            "quantization",
            "prefix_cache",
            "args",
            "env_secrets",
        )
    ),
    *(("placement", each, _LATER) for each in ("node_selector", "priority_class", "scheduler")),
    ("model", "revision", "a request names a model without its revision"),
    ("model", "served_name", "the selected graph serves the model under its own name"),
    ("model", "token_secret", "graphs that profiling writes name the platform's Secret (platform.planner.modelSecret)"),
)
#: Defaults of the request's schema, for users who want to know the planned values.
_DEFAULTS = {
    "backend": ("auto", "profiling compares all backends"),
    "workload.isl": (4000, "typical prompt"),
    "workload.osl": (1000, "typical answer"),
    "searchStrategy": ("rapid", "simulated"),
    "autoApply": (True, "the graph is deployed as soon as it is selected"),
}
#: Paths of the request, as they stand in messages, and the form's names.
_IN_THE_FORM = {f"spec.{path}": f"{group}.{to_camel(field)}" for path, group, field in _DIRECT}
_FIELDS = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, _IN_THE_FORM))})(?!\w)")


def with_form_names(message: str) -> str:
    """A message about the request, with the field names that the author of the intent knows."""
    return _FIELDS.sub(lambda match: _IN_THE_FORM[match[0]], message)


def draft_of(intent: DeployIntent, namespace: str) -> Draft:
    """The request. Fields that describe a single engine have no place in it."""
    draft = Draft({**DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.type_meta})
    draft.put("metadata.name", intent.name, "name")
    draft.manifest["metadata"]["namespace"] = namespace
    draft.put("spec.model", intent.model.name, "model", "name")
    if intent.backend is not None:
        draft.put("spec.backend", intent.backend.value, "backend")
    if intent.images.runtime is not None:
        draft.put("spec.image", intent.images.runtime, "images", "runtime")
        draft.warnings.append(
            "images.runtime is the image of the profiling Job; engine images are derived from this image, with its tag"
        )
    _direct(intent, draft)
    if cache := intent.model.cache:
        model_path = {"pvcModelPath": cache.path} if cache.path else {}
        volume = {"pvcName": cache.claim, **model_path, "pvcMountPath": cache.mount_path}
        draft.put("spec.modelCache", volume, "model", "cache")
    _features(intent, draft)
    _overrides(intent, draft)
    _report(intent, draft)
    for path, (value, why) in _DEFAULTS.items():
        if not _given(draft.manifest["spec"], path):
            draft.default(f"spec.{path}", value, why)
    return draft


def _direct(intent: DeployIntent, draft: Draft) -> None:
    for path, group, field in _DIRECT:
        section = getattr(intent, group)
        value = getattr(section, field)
        if value is not None:
            plain = value if isinstance(value, (bool, int, float)) else str(value)
            draft.put(f"spec.{path}", plain, group, section.alias_of(field))


def _features(intent: DeployIntent, draft: Draft) -> None:
    if intent.planner is not None:
        draft.put("spec.features.planner", dict(intent.planner), "planner")
    if intent.mocker is not None:
        draft.put("spec.features.mocker", {"enabled": intent.mocker}, "mocker")
    if (router := intent.serving.router) is RouterMode.KV:
        draft.put("spec.features.kvRouter", {"enabled": True}, "serving", "router")
    elif router is not None:
        draft.cannot_express("serving", "router", why=_ONLY_KV)


def _overrides(intent: DeployIntent, draft: Draft) -> None:
    """Put fields that have no place in the request into overrides: of the selected graph, and of the profiling job."""
    graph, pod = "spec.overrides.dgd", "spec.overrides.profilingJob.template.spec"
    for key, given in (("labels", intent.labels), ("annotations", intent.annotations)):
        if given:
            draft.put(f"metadata.{key}", dict(given), key)
            draft.put(f"{graph}.spec.{key}", dict(given), key)
            draft.manifest["spec"]["overrides"]["dgd"].setdefault("metadata", {})[key] = dict(given)
    if intent.engine.env:
        variables = [{"name": key, "value": value} for key, value in sorted(intent.engine.env.items())]
        draft.put(f"{graph}.spec.env", variables, "engine", "env")
    if topology := intent.placement.topology:
        constraint = {"clusterTopologyName": topology.name, "packDomain": topology.domain}
        draft.put(f"{graph}.spec.topologyConstraint", constraint, "placement", "topology")
    if overrides := draft.manifest["spec"].get("overrides"):
        overrides["dgd"] = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, **overrides["dgd"]}
    if intent.engine.trust_remote_code is not None:
        draft.put("spec.overrides.trustRemoteCode", intent.engine.trust_remote_code, "engine", "trustRemoteCode")
    # Profiling copies these from its job to the engines.
    if intent.placement.tolerations:
        draft.put(
            f"{pod}.tolerations", [dict(each) for each in intent.placement.tolerations], "placement", "tolerations"
        )
    if intent.images.pull_secrets:
        secrets = [{"name": each} for each in intent.images.pull_secrets]
        draft.put(f"{pod}.imagePullSecrets", secrets, "images", "pullSecrets")


def _report(intent: DeployIntent, draft: Draft) -> None:
    for group, field, why in _NOWHERE:
        section = getattr(intent, group)
        if getattr(section, field) not in (None, [], {}):
            draft.cannot_express(group, section.alias_of(field), why=why)
    if (counts := intent.serving.replicas) is not None:
        for field in type(counts).model_fields:
            if getattr(counts, field) is not None:
                draft.cannot_express("serving", "replicas", field, why=_CHOSEN)
    if intent.compilation_cache is not None:
        draft.cannot_express("compilationCache", why=_LATER)


def _given(spec: KubeObject, path: str) -> bool:
    value: Any = spec
    for part in path.split("."):
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
