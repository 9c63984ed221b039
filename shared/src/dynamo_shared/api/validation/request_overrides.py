"""`overrides.dgd` of a request: its directives, and its parts that make another field ineffective."""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.containers import containers_of, is_main
from dynamo_shared.api.engines import BACKENDS, options
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.graph_overrides import ALPHA as ALPHA_GRAPH
from dynamo_shared.api.graph_overrides import (
    NO_ARGUMENTS,
    NO_CONTAINER,
    NOT_IN_A_CONTAINER,
    NOT_OF_ALPHA,
    PATCH,
    UNKNOWN_DIRECTIVE,
    version_of,
    wrong_directives,
)
from dynamo_shared.api.registry.env import DYN_ROUTER_MODE
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, entries, items, mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import BETA, REQUEST, RuleSet, Violations, broken, listed, path

OVERRIDES = RuleSet("Requests", (REQUEST,), versions=(BETA,))
ADVICE_FOR_OVERRIDES = RuleSet("Requests", (REQUEST,), versions=(BETA,))

_AT: Location = ("spec", "overrides", "dgd")
_FRONTEND = "frontend"
_ROUTER_FLAG = "--router-mode"
_KV = "kv"
_NOT_ENGINES = (_FRONTEND, "planner")
#: vLLM's flag for the model; the flags of other engines begin with it: --model-path.
_MODEL_FLAG = "--model"


@OVERRIDES.rule(UNKNOWN_DIRECTIVE, NOT_IN_A_CONTAINER, NOT_OF_ALPHA, NO_CONTAINER, NO_ARGUMENTS)
def directives_of_overrides_are_known(spec: dict[str, Any], _facts: Facts) -> Violations:
    """$patch of a container in an override only appends the container's arguments to the generated ones."""
    for at, message in wrong_directives(_override(spec)):
        yield (*_AT, *at), message


@ADVICE_FOR_OVERRIDES.rule(
    "replaces all arguments of the engine, but has no {flag}, without which the engine has no model: to keep the "
    "generated arguments, add $patch with args: append next to it",
    added=True,
)
def arguments_that_replace_name_the_model(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Arguments in a v1beta1 override replace the generated ones, one of which sets the engine's model."""
    override = _override(spec)
    for name, at, container in _main_containers(override) if version_of(override) != ALPHA_GRAPH else ():
        args = [text(each) for each in items(container.get("args"))]
        is_engine = name.lower() not in _NOT_ENGINES and "command" not in container
        if args and is_engine and PATCH not in container and not any(each.startswith(_MODEL_FLAG) for each in args):
            yield broken((*at, "args"), flag=_MODEL_FLAG)


@ADVICE_FOR_OVERRIDES.rule("has no effect: {path} sets the router to {mode}; leave one of the two out", added=True)
def an_override_wins_over_the_router(spec: dict[str, Any], _facts: Facts) -> Violations:
    """If an override sets the router of the frontend, it takes precedence over the router in the request."""
    if below(spec, ("features", "kvRouter", "enabled")) is not True:
        return
    given = next(_router_modes(_override(spec)), None)
    if given is not None and given[1] != _KV:
        at, mode = given
        yield broken(("spec", "features", "kvRouter", "enabled"), path=path(at), mode=shown(mode))


@ADVICE_FOR_OVERRIDES.rule("has no effect: {backend} has no flag for it; leave it out", added=True)
def trust_is_for_engines_with_a_flag(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Some backends have no flag to trust a model's remote code, so trusting it has no effect there."""
    backend, at = text(spec.get("backend")), ("overrides", "trustRemoteCode")
    has_flag = backend not in BACKENDS or options.flags(backend, "trust_remote_code", value=True) is not None
    if below(spec, at) is True and not has_flag:
        yield broken(("spec", *at), backend=backend)


_OF_METADATA = ("name", "labels", "annotations")


@ADVICE_FOR_OVERRIDES.rule(
    "has no effect: the graph is created in the request's namespace; an override may set {names} and spec", added=True
)
def an_override_says_only_what_a_graph_is(spec: dict[str, Any], _facts: Facts) -> Violations:
    """In an override, only the name, labels and annotations of its metadata have an effect, and its status has none."""
    override = _override(spec)
    metadata = mapping(override.get("metadata"))
    unused: list[Location] = [("metadata", name) for name in metadata if name not in _OF_METADATA and metadata[name]]
    for at in (*unused, *([("status",)] if override.get("status") else [])):
        yield broken((*_AT, *at), names=listed(f"metadata.{name}" for name in _OF_METADATA))


def _override(spec: dict[str, Any]) -> dict[str, Any]:
    return mapping(below(spec, ("overrides", "dgd")))


def _router_modes(override: dict[str, Any]) -> Iterator[tuple[Location, str]]:
    """Router modes that an override sets, each with its location; the effective one is first: a flag before variables."""
    spec = mapping(override.get("spec"))
    mains = [(at, container) for name, at, container in _main_containers(override) if name.lower() == _FRONTEND]
    for at, container in mains:
        args = [text(each) for each in items(container.get("args"))]
        for index, arg in enumerate(args):
            if arg == _ROUTER_FLAG:
                yield (*at, "args", index), args[index + 1] if index + 1 < len(args) else ""
            elif arg.startswith(f"{_ROUTER_FLAG}="):
                yield (*at, "args", index), arg.partition("=")[2]
    for at, container in mains:
        yield from _variables(container.get("env"), (*at, "env"))
    if version_of(override) == ALPHA_GRAPH:
        for name, service in mapping(spec.get("services")).items():
            if name.lower() == _FRONTEND:
                yield from _variables(mapping(service).get("envs"), (*_AT, "spec", "services", name, "envs"))
        yield from _variables(spec.get("envs"), (*_AT, "spec", "envs"))
    else:
        yield from _variables(spec.get("env"), (*_AT, "spec", "env"))


def _variables(variables: Any, at: Location) -> Iterator[tuple[Location, str]]:
    for index, each in entries(variables):
        if each.get("name") == DYN_ROUTER_MODE:
            yield (*at, index), text(each.get("value"))


def _main_containers(override: dict[str, Any]) -> Iterator[tuple[str, Location, dict[str, Any]]]:
    """Main containers that an override changes: name of the component, location, and the part of the container."""
    spec, start = mapping(override.get("spec")), (*_AT, "spec")
    if version_of(override) == ALPHA_GRAPH:
        for name, service in mapping(spec.get("services")).items():
            main = mapping(below(service, ("extraPodSpec", "mainContainer")))
            yield str(name), (*start, "services", name, "extraPodSpec", "mainContainer"), main
        return
    for index, component in entries(spec.get("components")):
        for place, container in enumerate(containers_of(component.get("podTemplate"))):
            if is_main(container):
                at = (*start, "components", index, "podTemplate", "spec", "containers", place)
                yield text(component.get("name")), at, container
