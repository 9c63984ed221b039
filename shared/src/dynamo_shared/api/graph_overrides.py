"""`overrides.dgd` of a request: a partial graph in v1alpha1 or v1beta1 (planner.md, section b.2)."""

from collections.abc import Iterator, Mapping
from typing import Any

from dynamo_shared.api.crds.build import definition_of, schema_of
from dynamo_shared.api.crds.structural import Schema
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, GROUP
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import items, mapping

ALPHA, BETA = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"
_OF_ALPHA = ("services", "envs", "pvcs")

#: Key of a directive in a container, and its only valid value.
PATCH = "$patch"
APPEND = {"args": "append"}
#: Errors of directives.
UNKNOWN_DIRECTIVE = (
    "{value} is not allowed; only args: append is, which appends the args next to it to the generated ones"
)
NOT_OF_ALPHA = (
    "v1alpha1 has no $patch, and appends arguments of workers without it: leave it out, or write the override in "
    "v1beta1"
)
NOT_IN_A_CONTAINER = (
    "only containers can have $patch: write it next to the name of a container, in podTemplate.spec.containers of "
    "a component"
)
NO_CONTAINER = "required next to $patch: the name of the container that gets the arguments"
NO_ARGUMENTS = "required next to $patch: a list of strings, at least one of them not empty"
#: Location of a container in a v1beta1 override; None stands for an index.
_CONTAINER = ("spec", "components", None, "podTemplate", "spec", "containers", None)


def version_of(override: Mapping[str, Any]) -> str:
    """The `apiVersion` of an override. Without a valid one: v1alpha1 if `spec` is empty or has a field that only v1alpha1
    has, otherwise v1beta1.
    """
    if override.get("apiVersion") in (ALPHA, BETA):
        return str(override["apiVersion"])
    spec = mapping(override.get("spec"))
    return ALPHA if not spec or any(field in spec for field in _OF_ALPHA) else BETA


def unknown_fields(override: Mapping[str, Any]) -> Iterator[tuple[Location, tuple[str, ...]]]:
    """Fields of `spec` and of its components that graphs do not have, each with the known fields.

    Null fields and directives (see `wrong_directives`) are ignored.
    """
    spec, version = override.get("spec"), version_of(override)
    if not isinstance(spec, dict):
        return
    graph = definition_of(DYNAMO_GRAPH_DEPLOYMENTS.kind).at(version.partition("/")[2])
    of_spec = schema_of(graph.resource)["properties"]["spec"]["properties"]
    yield from _unknown(spec, of_spec, ("spec",))
    if version == ALPHA:
        of_service = of_spec["services"]["additionalProperties"]["properties"]
        for name, service in mapping(spec.get("services")).items():
            yield from _unknown(service, of_service, ("spec", "services", str(name)))
    else:
        of_component = of_spec["components"]["items"]["properties"]
        for index, component in enumerate(items(spec.get("components"))):
            yield from _unknown(component, of_component, ("spec", "components", index))


def _unknown(given: Any, known: Schema, at: Location) -> Iterator[tuple[Location, tuple[str, ...]]]:
    if isinstance(given, dict):
        for name, value in given.items():
            if value is not None and name not in known and name != PATCH:
                yield (*at, str(name)), tuple(known)


def directives(given: Any) -> Iterator[tuple[Location, dict[str, Any]]]:
    """Objects that have a directive, with their locations, in the order of the document."""
    pending: list[tuple[Location, Any]] = [((), given)]
    while pending:
        at, value = pending.pop()
        inner: list[tuple[Location, Any]] = []
        if isinstance(value, dict):
            if PATCH in value:
                yield at, value
            inner = [((*at, str(name)), each) for name, each in value.items() if name != PATCH]
        elif isinstance(value, list):
            inner = [((*at, index), each) for index, each in enumerate(value)]
        pending.extend(reversed(inner))


def wrong_directives(override: Mapping[str, Any]) -> Iterator[tuple[Location, str]]:
    """Invalid or misplaced directives: the location and the message of each error."""
    for at, holder in directives(override):
        name, args = holder.get("name"), holder.get("args")
        if version_of(override) == ALPHA:
            yield (*at, PATCH), NOT_OF_ALPHA
        elif not _is_container(at):
            yield (*at, PATCH), NOT_IN_A_CONTAINER
        elif holder[PATCH] != APPEND:
            for inner, value in _invalid_parts(holder[PATCH]):
                yield (*at, PATCH, *inner), UNKNOWN_DIRECTIVE.format(value=value)
        elif not (isinstance(name, str) and name):
            yield (*at, "name"), NO_CONTAINER
        elif not (isinstance(args, list) and all(isinstance(each, str) for each in args) and any(args)):
            yield (*at, "args"), NO_ARGUMENTS


def _invalid_parts(directive: Any) -> Iterator[tuple[Location, str]]:
    """The parts of a directive that are not `args: append`: the location within it, and the value for a message."""
    if not isinstance(directive, dict) or not directive:
        yield (), "an empty object" if directive == {} else shown(directive)
        return
    for name, value in directive.items():
        if APPEND.get(name) != value:
            yield (str(name),), shown(value)


def _is_container(at: Location) -> bool:
    return len(at) == len(_CONTAINER) and all(
        isinstance(part, int) if known is None else part == known for part, known in zip(at, _CONTAINER, strict=True)
    )
