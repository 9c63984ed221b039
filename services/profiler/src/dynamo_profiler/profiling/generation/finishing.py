"""Finishes graphs: with what a request sets besides its overrides, and checked like all others before they are offered:
against the schema and all rules of admission. Pure.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dynamo_shared.api.containers import with_main
from dynamo_shared.api.engines import options
from dynamo_shared.api.engines.started import engines_started, script_at
from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.env import DYN_ROUTER_MODE
from dynamo_shared.api.role_templates import FIELD, all_templates, has_own_templates, with_templates
from dynamo_shared.api.untrusted.reading import items, mapping, text
from dynamo_shared.api.v1beta1 import ComponentType
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

from dynamo_profiler.profiling.results import ProfilingFailed

VERSION = "runtimeVersionOverride"
_TRUST = "trust_remote_code"
_SECRETS = "imagePullSecrets"
_WORKERS = (ComponentType.WORKER, ComponentType.PREFILL, ComponentType.DECODE)
_SHOWN = 5


def finished(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """A graph that includes the request's overrides, with its other settings. Raises ProfilingFailed if admission would
    refuse the graph.
    """
    override = spec.overrides.dgd if spec.overrides else None
    graph = trusting(versioned(share_pull_secrets(graph, override), spec), spec)
    refuse([*schema_errors(graph), *validate(graph, None, Facts()).errors], changed=bool(override))
    return routed(graph, spec)


def refuse(errors: Sequence[FieldError], *, changed: bool) -> None:
    """Raise ProfilingFailed with these errors, if any. `changed`: the graph includes the request's overrides."""
    if not errors:
        return
    more = [f"and {len(errors) - _SHOWN} more"] if len(errors) > _SHOWN else []
    words = "; ".join([*map(str, errors[:_SHOWN]), *more])
    if changed:
        raise ProfilingFailed(
            "InvalidOverride",
            f"admission would refuse the graph with spec.overrides.dgd: {words}; correct the override",
        )
    raise ProfilingFailed("InvalidGraph", f"admission would refuse the generated graph: {words}; please report this")


def _with_components(graph: KubeObject, change: Callable[[Any], Any]) -> KubeObject:
    components = [change(each) for each in graph["spec"].get("components") or []]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def share_pull_secrets(graph: KubeObject, override: KubeObject | None) -> KubeObject:
    """The v1beta1 graph with every pull secret that the override names anywhere in each component, after its own
    secrets: all pods pull from that registry.
    """
    shared = list(dict.fromkeys(_pull_secrets(override or {})))
    if not shared:
        return graph
    return _with_components(graph, lambda each: _sharing(each, shared))


def _sharing(component: KubeObject, shared: list[str]) -> KubeObject:
    # If roles have templates, only a template of the component itself is used for a pod.
    whole = component if has_own_templates(component) else {**component, FIELD: component.get(FIELD) or {}}
    return with_templates(whole, lambda template: _with_secrets(template, shared))


def _with_secrets(template: KubeObject, shared: list[str]) -> KubeObject:
    pod = template.get("spec") or {}
    own = list(pod.get(_SECRETS) or ())
    have = {each.get("name") for each in own if isinstance(each, dict)}
    secrets = [*own, *({"name": name} for name in shared if name not in have)]
    return {**template, "spec": {**pod, _SECRETS: secrets}}


def _pull_secrets(override: KubeObject) -> Iterator[str]:
    """Names of pull secrets in the pods of an override, of either version. Accepts invalid values."""
    spec = mapping(override.get("spec"))
    parts = [*map(mapping, items(spec.get("components"))), *map(mapping, mapping(spec.get("services")).values())]
    pods = [mapping(template.get("spec")) for part in parts for template in all_templates(part)]
    pods += [mapping(part.get("extraPodSpec")) for part in parts]
    for pod in pods:
        yield from filter(None, (text(mapping(secret).get("name")) for secret in items(pod.get(_SECRETS))))


def versioned(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """The graph with the request's version of Dynamo, which the tags of its images do not show, in each component
    without its own.
    """
    version = spec.runtime_version_override
    if not version:
        return graph
    return _with_components(graph, lambda each: _versioned(each, version))


def _versioned(component: Any, version: str) -> Any:
    """Leaves an invalid component unchanged: it is reported with all other errors of the graph."""
    if not isinstance(component, dict) or component.get(VERSION):
        return component
    return {**component, VERSION: version}


def trusting(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """`overrides.trustRemoteCode`: the graph with the flag on each worker whose engine has one. Applied after `overrides.dgd`.

    Simulated engines run no such code, and TensorRT-LLM has no flag for it.
    """
    if spec.overrides is None or not spec.overrides.trust_remote_code:
        return graph
    return _with_components(graph, _trusting)


def _trusting(component: Any) -> Any:
    """Leaves an invalid component unchanged: it is reported with all other errors of the graph."""
    if mapping(component).get("type") not in _WORKERS:
        return component
    return with_templates(component, lambda template: with_main(template, _with_flag))


def _with_flag(container: KubeObject) -> KubeObject:
    command, args = (items(container.get(key)) for key in ("command", "args"))
    line = [*command, *args]
    if not all(isinstance(each, str) for each in line):
        # An invalid value is reported with all other errors of the graph.
        return container
    started = engines_started(line)
    flags = [flag for engine in started for flag in options.flags(engine, _TRUST, value=True) or ()]
    if len(started) != 1 or not flags or any(flags[0] in part.split() for part in line):
        return container
    script = script_at(line)
    if script is None:
        return {**container, "args": [*args, *flags]}
    line[script] = f"{line[script].rstrip()} {' '.join(flags)}"
    return {**container, **_split(container, line, len(command))}


def _split(container: KubeObject, line: list[str], at: int) -> KubeObject:
    """The `command` and `args` of a command line, for the fields that the container has."""
    parts = {"command": line[:at], "args": line[at:]}
    return {key: parts[key] for key in parts if key in container}


def routed(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """`features.kvRouter`: frontends choose workers by their KV caches. Applied after the overrides, so a mode that they
    set stays.

    A flag `--router-mode` needs no handling: the frontend prefers it to the variable.
    """
    router = spec.features.kv_router if spec.features else None
    if router is None or not router.enabled or _sets_mode(graph["spec"].get("env")):
        return graph
    return _with_components(graph, _routed)


def _routed(component: KubeObject) -> KubeObject:
    if component.get("type") != ComponentType.FRONTEND or "podTemplate" not in component:
        return component
    return {**component, "podTemplate": with_main(component["podTemplate"], _with_mode)}


def _with_mode(container: KubeObject) -> KubeObject:
    variables = container.get("env") or []
    if _sets_mode(variables):
        return container
    return {**container, "env": [*variables, {"name": DYN_ROUTER_MODE, "value": "kv"}]}


def _sets_mode(variables: object) -> bool:
    return isinstance(variables, list) and any(each.get("name") == DYN_ROUTER_MODE for each in variables)
