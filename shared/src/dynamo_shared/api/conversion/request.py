"""Converts a DynamoGraphDeploymentRequest: v1beta1 has fields for the profiler's free-form settings, and a Job template."""

from functools import partial
from typing import Any

from dynamo_shared.api.conversion.amounts import as_text, claims_of
from dynamo_shared.api.conversion.changes import KEYS, Keys
from dynamo_shared.api.conversion.lens import Lens, of_parts
from dynamo_shared.api.conversion.pod import filled, objects, texts
from dynamo_shared.api.conversion.request_status import status_to_alpha, status_to_beta
from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.quantity import SIDES
from dynamo_shared.api.untrusted.reading import mapping
from dynamo_shared.api.v1beta1.request import OptimizationType

#: Items of `containers` are identified by position, because the first container of the Job is the profiler.
REQUEST_KEYS: Keys = {**KEYS, "containers": ()}
PROFILER = "profiler"
MOUNT_PATH = "/opt/model-cache"
LENGTHS = (("isl", 4000), ("osl", 1000))
_BACKENDS = frozenset({"auto", *BACKENDS})
#: The search strategies of v1beta1. v1alpha1 runs the profiler's image on the cluster, unless its sweep sets
#: `useAiConfigurator` (simulated engines), or `_could_run` is false.
RAPID, THOROUGH = "rapid", "thorough"
SIMULATES = ("useAiConfigurator", "use_ai_configurator")
GOALS = frozenset(map(str, OptimizationType))
#: Fields that both versions have, without a default.
_SAME = ("model", "runtimeVersionOverride")
#: Fields of the model cache in v1alpha1 and v1beta1.
_CACHE = (("pvcName", "pvcName"), ("modelPathInPvc", "pvcModelPath"), ("pvcMountPath", "pvcMountPath"))
_INT32 = 2**31


def to_beta(body: dict[str, Any]) -> dict[str, Any]:
    """The v1beta1 form of a v1alpha1 request. Invalid fields are omitted."""
    return of_parts(body, _spec_to_beta, status_to_beta)


def to_alpha(body: dict[str, Any], *, namespace: str | None = None) -> dict[str, Any]:
    """The v1alpha1 form of a v1beta1 request in a namespace. Invalid fields are omitted."""
    return of_parts(body, _spec_to_alpha, partial(status_to_alpha, namespace=namespace))


def _spec_to_beta(spec: dict[str, Any]) -> dict[str, Any]:
    profiling = mapping(spec.get("profilingConfig"))
    config = mapping(profiling.get("config"))
    result: dict[str, Any] = {
        "backend": _backend(spec.get("backend")),
        "autoApply": spec.get("autoApply", False),
        "searchStrategy": _strategy(spec, profiling, config),
    }
    result.update((name, spec[name]) for name in _SAME if name in spec)
    workers = mapping(spec.get("deploymentOverrides")).get("workersImage")
    image = filled(profiling.get("profilerImage"), str) or filled(workers, str)
    features: dict[str, Any] = {}
    if filled(config.get("planner"), dict):
        features["planner"] = config["planner"]
    if spec.get("useMocker") is True:
        features["mocker"] = {"enabled": True}
    sla = mapping(config.get("sla"))
    lengths = _lengths(sla)
    job = _job(profiling)
    present = {
        "image": image,
        "features": features,
        "sla": _goals(sla),
        "workload": {**dict(LENGTHS), **lengths} if lengths else None,
        "modelCache": _cache(mapping(mapping(config.get("deployment")).get("modelCache"))),
        "overrides": {"profilingJob": job} if job else None,
    }
    result.update((name, value) for name, value in present.items() if value)
    return result


def _spec_to_alpha(spec: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    workload = spec.get("workload")
    sla = _goals(mapping(spec.get("sla")))
    if isinstance(workload, dict):
        sla |= {**dict(LENGTHS), **_lengths(workload)}
    if sla:
        config["sla"] = sla
    cache = spec.get("modelCache")
    if isinstance(cache, dict):
        present = {alpha: cache[beta] for alpha, beta in _CACHE if isinstance(cache.get(beta), str)}
        config["deployment"] = {"modelCache": {"pvcMountPath": MOUNT_PATH, **present}}
    features = mapping(spec.get("features"))
    if filled(features.get("planner"), dict):
        config["planner"] = features["planner"]
    profiling: dict[str, Any] = {"profilerImage": filled(spec.get("image"), str) or ""}
    mocked = mapping(features.get("mocker")).get("enabled") is True
    if spec.get("searchStrategy", RAPID) != THOROUGH and _could_run(spec, profiling, mocked=mocked):
        config["sweep"] = {SIMULATES[0]: True}
    if config:
        profiling["config"] = config
    job = mapping(mapping(spec.get("overrides")).get("profilingJob"))
    pod = mapping(mapping(job.get("template")).get("spec"))
    containers = filled(pod.get("containers"), list) or [None]
    from_pod = {
        "resources": _resources(mapping(containers[0]).get("resources")),
        "tolerations": objects(pod.get("tolerations")),
        "nodeSelector": texts(pod.get("nodeSelector")),
    }
    profiling.update((name, value) for name, value in from_pod.items() if value)
    result = {
        "backend": _backend(spec.get("backend")),
        "autoApply": spec.get("autoApply", True),
        "useMocker": mocked,
        "enableGpuDiscovery": True,
        "profilingConfig": profiling,
    }
    result.update((name, spec[name]) for name in _SAME if name in spec)
    return result


def _backend(value: Any) -> str:
    return value if isinstance(value, str) and value in _BACKENDS else "auto"


def _strategy(spec: dict[str, Any], profiling: dict[str, Any], config: dict[str, Any]) -> str:
    sweep = mapping(config.get("sweep"))
    simulates = any(sweep.get(name) is True for name in SIMULATES)
    runs = not simulates and _could_run(spec, profiling, mocked=spec.get("useMocker") is True)
    return THOROUGH if runs else RAPID


def _could_run(spec: dict[str, Any], profiling: dict[str, Any], *, mocked: bool) -> bool:
    """Whether a request has what profiling on the cluster needs: an image, one engine, and GPUs."""
    return bool(filled(profiling.get("profilerImage"), str)) and _backend(spec.get("backend")) != "auto" and not mocked


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _goals(sla: dict[str, Any]) -> dict[str, Any]:
    """The goals that both versions have: times in milliseconds, and the optimization goal."""
    result = {name: sla[name] for name in ("ttft", "itl") if _is_number(sla.get(name))}
    goal = sla.get("optimizationType")
    if isinstance(goal, str) and goal in GOALS:
        result["optimizationType"] = goal
    return result


def _lengths(source: dict[str, Any]) -> dict[str, int]:
    return {name: source[name] for name, _ in LENGTHS if _is_int32(source.get(name))}


def _is_int32(value: Any) -> bool:
    return type(value) is int and -_INT32 <= value < _INT32


def _cache(cache: dict[str, Any]) -> dict[str, Any] | None:
    present = {beta: cache[alpha] for alpha, beta in _CACHE if isinstance(cache.get(alpha), str)}
    return {"pvcMountPath": MOUNT_PATH, **present} if present else None


def _job(profiling: dict[str, Any]) -> dict[str, Any] | None:
    pod: dict[str, Any] = {}
    resources = _resources(profiling.get("resources"))
    if resources:
        pod["containers"] = [{"name": PROFILER, "resources": resources}]
    if objects(profiling.get("tolerations")):
        pod["tolerations"] = profiling["tolerations"]
    if texts(profiling.get("nodeSelector")):
        pod["nodeSelector"] = profiling["nodeSelector"]
    return {"template": {"spec": pod}} if pod else None


def _resources(given: Any) -> dict[str, Any]:
    given = mapping(given)
    present = {side: as_text(given.get(side)) for side in SIDES}
    return {name: value for name, value in {**present, "claims": claims_of(given)}.items() if value}


def lens_to_beta(namespace: str | None) -> Lens:
    """The lens from v1alpha1, for a request in a namespace."""
    return Lens(to_beta, partial(to_alpha, namespace=namespace), REQUEST_KEYS)


def lens_to_alpha(namespace: str | None) -> Lens:
    """The lens from v1beta1, for a request in a namespace."""
    return Lens(partial(to_alpha, namespace=namespace), to_beta, REQUEST_KEYS)
