"""`overrides.dgd`: a request's changes to the generated graph, in v1beta1 or v1alpha1 (planner.md, b.2).

The merge is deep: objects are merged, lists and single values replaced. Arguments of a worker's main container are
appended instead in v1alpha1, and also in v1beta1 if the container has a directive for it. The identity stays:
apiVersion and kind are ignored, and the name was used when the graph was generated.
"""

from copy import deepcopy
from typing import Any

from dynamo_shared.api.containers import main_container
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.field_errors import path_of, shown
from dynamo_shared.api.graph_overrides import ALPHA, BETA, version_of, wrong_directives
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.reading import items, mapping

from dynamo_profiler.profiling.generation.args_patch import appended
from dynamo_profiler.profiling.generation.finishing import refuse
from dynamo_profiler.profiling.results import ProfilingFailed, Remark

UNKNOWN = "OverrideIgnored"
#: Largest number of services in a remark.
NAMED = 10
_IDENTITY = frozenset({"apiVersion", "kind", "status"})
#: Lists of v1beta1 whose entries have a unique name: an entry is merged with the entry of the same name.
_NAMED = frozenset({"components", "containers", "initContainers", "volumes", "env", "volumeMounts"})
#: Entries of these lists replace the entry of the same name: a variable has either a value or a source.
_WHOLE = frozenset({"env"})
#: This project's name of a worker -> ends of its names in base graphs of the reference's profiler.
_ALIASES = {
    "prefill": ("prefillworker",),
    "decode": ("decodeworker",),
    "worker": ("vllmworker", "sglangworker", "trtllmworker", "vllmdecodeworker", "trtllmdecodeworker", "decode", "agg"),
    "Frontend": ("frontend",),
}


def overridden(graph: KubeObject, override: KubeObject | None) -> tuple[KubeObject, tuple[Remark, ...]]:
    """The graph merged with the override, and remarks on ignored parts. Raises ProfilingFailed if the override is not
    valid for a graph.
    """
    if not override:
        return graph, ()
    spec = override.get("spec")
    if spec is not None and not isinstance(spec, dict):
        raise ProfilingFailed("InvalidOverride", f"spec.overrides.dgd.spec: must be an object, not {spec!r}")
    for at, message in wrong_directives(override):
        raise ProfilingFailed("InvalidOverride", f"{path_of(('spec', 'overrides', 'dgd', *at))}: {message}")
    return _alpha(graph, override) if version_of(override) == ALPHA else _beta(graph, override)


def _alpha(graph: KubeObject, override: KubeObject) -> tuple[KubeObject, tuple[Remark, ...]]:
    base = deepcopy(convert(graph, ALPHA))
    services = base["spec"].get("services") or {}
    given = dict(override.get("spec") or {})
    given_changes, remarks = _known(given.pop("services", None) or {}, services)
    merged = _merged(base, {**_without_identity(override), "spec": given})
    for name, change in given_changes.items():
        args = _main_args(services[name])
        service = _merged(merged["spec"]["services"][name], change)
        extra = _main_args(change)
        _write_amounts(service)
        if extra:
            service["extraPodSpec"]["mainContainer"]["args"] = [*args, *extra]
        merged["spec"]["services"][name] = service
    # Check before the conversion, which drops unknown fields silently.
    refuse(schema_errors(merged), changed=True)
    return dict(convert(merged, BETA)), remarks


def _write_amounts(service: KubeObject) -> None:
    """Convert `gpu: 8` to `gpu: "8"`, which v1alpha1 requires."""
    for amounts in mapping(service.get("resources")).values():
        for name, amount in mapping(amounts).items():
            if isinstance(amount, int) and not isinstance(amount, bool):
                amounts[name] = str(amount)


def _beta(graph: KubeObject, override: KubeObject) -> tuple[KubeObject, tuple[Remark, ...]]:
    components = {each["name"]: each for each in graph["spec"]["components"]}
    given = dict(override.get("spec") or {})
    changes = given.pop("components", None) or []
    if not _all_named(changes):
        raise ProfilingFailed(
            "InvalidOverride", "spec.overrides.dgd.spec.components: must be a list of objects with names"
        )
    places = {each["name"]: index for index, each in enumerate(changes)}
    given_changes, remarks = _known({each["name"]: each for each in changes}, components)
    merged = _merged(deepcopy(graph), {**_without_identity(override), "spec": given}, named=True)
    made = []
    for component in merged["spec"]["components"]:
        change = given_changes.get(component["name"])
        if change is None:
            made.append(component)
            continue
        at = ("spec", "overrides", "dgd", "spec", "components", places[change["name"]])
        whole = appended(change, component, at)
        made.append(_merged(component, {**whole, "name": component["name"]}, named=True))
    merged["spec"]["components"] = made
    return merged, remarks


def keeps_containers(before: KubeObject, after: KubeObject) -> None:
    """Raise ProfilingFailed if an override left a component without containers: the platform would run its defaults
    there.
    """
    listed = after["spec"].get("components") or []
    kept = {each["name"] for each in listed if (main_container(each.get("podTemplate")) or {}).get("image")}
    for component in before["spec"]["components"]:
        if component["name"] not in kept:
            raise ProfilingFailed(
                "InvalidOverride",
                f"spec.overrides.dgd: removes container main of {component['name']}, or its image; remove both from the "
                "override to keep them",
            )


def _known(changes: dict[str, Any], known: dict[str, Any]) -> tuple[dict[str, Any], tuple[Remark, ...]]:
    """Changes by the graph's own names, and remarks on services that the graph does not have; these are dropped."""
    if not isinstance(changes, dict):
        raise ProfilingFailed("InvalidOverride", "spec.overrides.dgd.spec.services: must map names to objects")
    applied: dict[str, Any] = {}
    unknown = []
    for name, change in changes.items():
        own = _own_name(name, known)
        if own is None or not isinstance(change, dict):
            unknown.append(name)
        else:
            applied[own] = change
    if not unknown:
        return applied, ()
    have = ", ".join(sorted(known))
    more = [f"{len(unknown) - NAMED} more"] if len(unknown) > NAMED else []
    lacks = ", ".join([*map(shown, unknown[:NAMED]), *more])
    text = f"spec.overrides.dgd: ignored: the graph has no {lacks}, only {have}"
    return applied, (Remark(reason=UNKNOWN, message=text),)


def _own_name(name: str, known: dict[str, Any]) -> str | None:
    if name in known:
        return name
    low = name.lower()
    for own in known:
        if low == own.lower() or any(low.endswith(alias) for alias in _ALIASES.get(own, ())):
            return own
    return None


def _without_identity(override: KubeObject) -> KubeObject:
    kept = {key: value for key, value in override.items() if key not in _IDENTITY and key != "spec"}
    metadata = kept.get("metadata")
    if isinstance(metadata, dict):
        # Only labels and annotations: the rest of metadata identifies the object.
        kept["metadata"] = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    return kept


def _merged(base: Any, over: Any, *, named: bool = False) -> Any:
    if not isinstance(base, dict) or not isinstance(over, dict):
        return deepcopy(over)
    made = dict(base)
    for key, value in over.items():
        if named and key in _NAMED and _all_named(made.get(key)) and _all_named(value):
            made[key] = _by_name(made[key], value, whole=key in _WHOLE)
        elif key in made:
            made[key] = _merged(made[key], value, named=named)
        else:
            made[key] = deepcopy(value)
    return made


def _all_named(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in value
    )


def _by_name(base: list[Any], over: list[Any], *, whole: bool) -> list[Any]:
    changes = {each["name"]: each for each in over}
    made = []
    for each in base:
        change = changes.pop(each["name"], None)
        made.append(deepcopy(change) if whole and change else _merged(each, change or {}, named=True))
    return [*made, *(deepcopy(each) for each in changes.values())]


def _main_args(service: Any) -> list[Any]:
    pod = mapping(mapping(service).get("extraPodSpec"))
    return list(items(mapping(pod.get("mainContainer")).get("args")))
