"""Converts the fields of a request that the reference operator preserved to changes; conversion applies those that
contradict no field.

The operator stores requests in v1beta1, and preserves the fields that only v1alpha1 has: the ConfigMap with a graph to
begin with, the name and labels of the graph, keys of the profiler's configuration. A v1alpha1 manifest that was read
from it has hardware, workload, search strategy and the profiler's Job in the same annotation.
"""

from typing import Any

from dynamo_shared.api.conversion.changes import Changes
from dynamo_shared.api.conversion.lens import MAX_TRIALS
from dynamo_shared.api.conversion.request import PROFILER
from dynamo_shared.api.untrusted.reading import items, mapping

_ALPHA_FIELDS = ("profilingConfig", "enableGpuDiscovery", "deploymentOverrides")
_BETA_FIELDS = ("hardware", "workload", "sla", "overrides", "features", "searchStrategy")
_POD = ("overrides", "profilingJob", "template", "spec")
#: Values of fields that the operator did not set; `false` and 0 count as set.
UNSET: tuple[Any, ...] = (None, {}, [], "")


def is_for(spec: dict[str, Any], *, to_beta: bool) -> bool:
    """Whether a partial spec may be of this version: it has fields of one version only."""
    names = spec.keys() & {*_ALPHA_FIELDS, *_BETA_FIELDS}
    return bool(names) and names <= {*(_BETA_FIELDS if to_beta else _ALPHA_FIELDS)}


def changes(spec: dict[str, Any], *, to_beta: bool) -> Changes:
    """The changes for the preserved partial spec of a v1beta1 or v1alpha1 request."""
    return _of_beta(spec) if to_beta else _of_alpha(spec)


def _of_alpha(spec: dict[str, Any]) -> Changes:
    profiling = mapping(spec.get("profilingConfig"))
    config = mapping(profiling.get("config"))
    # A change for each key, so that a key that contradicts a field does not affect others; one change for too many keys.
    parts = [{name: value} for name, value in config.items()] if len(config) <= MAX_TRIALS else [config]
    result = [_below({"profilingConfig": {"config": each}}) for each in parts]
    for name in ("configMapRef", "outputPVC"):
        result += [_below({"profilingConfig": {name: value}}) for value in _set(profiling.get(name))]
    result += [_below({"deploymentOverrides": value}) for value in _set(spec.get("deploymentOverrides"))]
    discovers = spec.get("enableGpuDiscovery")
    # Conversion sets `true` without a preserved value, which this change replaces.
    return [*result, [["spec", "enableGpuDiscovery"], discovers]] if isinstance(discovers, bool) else result


def _of_beta(spec: dict[str, Any]) -> Changes:
    result: Changes = []
    for name in ("hardware", "workload", "sla", "features"):
        result += [_below({name: value}) for value in _set(spec.get(name))]
    overrides = mapping(spec.get("overrides"))
    for name in ("dgd", "trustRemoteCode"):
        result += [_below({"overrides": {name: value}}) for value in _set(overrides.get(name))]
    result += _job(mapping(overrides.get("profilingJob")))
    strategy = spec.get("searchStrategy")
    # Conversion always sets a strategy, which this change replaces.
    return [*result, [["spec", "searchStrategy"], strategy]] if isinstance(strategy, str) and strategy else result


def _job(job: dict[str, Any]) -> Changes:
    """The changes for the profiling Job, without the fields of v1alpha1, which the operator removed; one for each container."""
    template = mapping(job.get("template"))
    pod = mapping(template.get("spec"))
    containers = [_written(each) for each in items(pod.get("containers")) if isinstance(each, dict)]
    rest = {**_written(job), "template": {**_written(template), "spec": {**_written(pod), "containers": []}}}
    if not containers and rest == {"template": {"spec": {"containers": []}}}:
        return []
    # For this platform the first container is the profiler, for the operator the one with its name.
    ordered = sorted(containers, key=lambda each: each.get("name", PROFILER) != PROFILER)
    return [
        _below({"overrides": {"profilingJob": rest}}),
        *([["spec", *_POD, "containers", index], each] for index, each in enumerate(ordered)),
    ]


def _below(value: dict[str, Any]) -> list[Any]:
    """A change that adds fields to the spec; existing fields have priority."""
    return [["spec"], value]


def _written(value: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if each not in UNSET}


def _set(value: Any) -> list[Any]:
    """The value in a list; an empty list for an unset value."""
    return [] if value in UNSET else [value]
