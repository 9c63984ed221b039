"""What the Go operator kept of a request for its other version, as pieces; conversion puts on those that contradict nothing.

The operator stores requests in v1beta1. There it keeps what only v1alpha1 says: the ConfigMap with a graph to start from,
the names and labels of the graph, keys of the profiler's configuration. A manifest that was read from it in v1alpha1 has
hardware, load, search strategy and the profiler's Job in the same place.
"""

from typing import Any

from dynamo_shared.api.conversion.lens import MAX_TRIALS
from dynamo_shared.api.conversion.pieces import Pieces
from dynamo_shared.api.conversion.request import PROFILER
from dynamo_shared.api.untrusted.reading import items, mapping

_ALPHA_FIELDS = ("profilingConfig", "enableGpuDiscovery", "deploymentOverrides")
_BETA_FIELDS = ("hardware", "workload", "sla", "overrides", "features", "searchStrategy")
_POD = ("overrides", "profilingJob", "template", "spec")
#: How the operator writes a field that is not set; `false` and 0 are set.
UNSET: tuple[Any, ...] = (None, {}, [], "")


def is_for(spec: dict[str, Any], *, to_beta: bool) -> bool:
    """Whether a part of a spec may be one of the version: none has fields of both."""
    names = spec.keys() & {*_ALPHA_FIELDS, *_BETA_FIELDS}
    return bool(names) and names <= {*(_BETA_FIELDS if to_beta else _ALPHA_FIELDS)}


def pieces(spec: dict[str, Any], *, to_beta: bool) -> Pieces:
    """Pieces of a v1beta1 request, or of a v1alpha1 one, of the part that was kept of its spec."""
    return _of_beta(spec) if to_beta else _of_alpha(spec)


def _of_alpha(spec: dict[str, Any]) -> Pieces:
    profiling = mapping(spec.get("profilingConfig"))
    config = mapping(profiling.get("config"))
    # Each key for itself: one that v1beta1 has a field for by now leaves the others. Not of one that is made to burn time.
    parts = [{name: value} for name, value in config.items()] if len(config) <= MAX_TRIALS else [config]
    made = [_below({"profilingConfig": {"config": each}}) for each in parts]
    for name in ("configMapRef", "outputPVC"):
        made += [_below({"profilingConfig": {name: value}}) for value in _set(profiling.get(name))]
    made += [_below({"deploymentOverrides": value}) for value in _set(spec.get("deploymentOverrides"))]
    discovers = spec.get("enableGpuDiscovery")
    # Conversion writes `true` where nothing is kept: this one takes its place.
    return [*made, [["spec", "enableGpuDiscovery"], discovers]] if isinstance(discovers, bool) else made


def _of_beta(spec: dict[str, Any]) -> Pieces:
    made: Pieces = []
    for name in ("hardware", "workload", "sla", "features"):
        made += [_below({name: value}) for value in _set(spec.get(name))]
    overrides = mapping(spec.get("overrides"))
    for name in ("dgd", "trustRemoteCode"):
        made += [_below({"overrides": {name: value}}) for value in _set(overrides.get(name))]
    made += _job(mapping(overrides.get("profilingJob")))
    strategy = spec.get("searchStrategy")
    # Conversion writes one in each case: this one takes its place.
    return [*made, [["spec", "searchStrategy"], strategy]] if isinstance(strategy, str) and strategy else made


def _job(job: dict[str, Any]) -> Pieces:
    """The Job without the fields of v1alpha1, which the operator took out; its containers each for itself."""
    template = mapping(job.get("template"))
    pod = mapping(template.get("spec"))
    containers = [_written(each) for each in items(pod.get("containers")) if isinstance(each, dict)]
    rest = {**_written(job), "template": {**_written(template), "spec": {**_written(pod), "containers": []}}}
    if not containers and rest == {"template": {"spec": {"containers": []}}}:
        return []
    # The first container is the profiler here, and the one of that name with the operator.
    ordered = sorted(containers, key=lambda each: each.get("name", PROFILER) != PROFILER)
    return [
        _below({"overrides": {"profilingJob": rest}}),
        *([["spec", *_POD, "containers", place], each] for place, each in enumerate(ordered)),
    ]


def _below(value: dict[str, Any]) -> list[Any]:
    """A piece that adds a part to the spec: what stands there wins over it."""
    return [["spec"], value]


def _written(value: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if each not in UNSET}


def _set(value: Any) -> list[Any]:
    """The value alone in a list; an empty list where it is not set."""
    return [] if value in UNSET else [value]
