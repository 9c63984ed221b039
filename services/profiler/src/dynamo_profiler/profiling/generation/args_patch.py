"""`$patch: {args: append}` in an override: appends its arguments to the graph's, and removes the directive."""

from typing import Any

from dynamo_shared.api.containers import containers_of, with_containers
from dynamo_shared.api.engines import frontend
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.graph_overrides import PATCH
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.rules import Location
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_profiler.profiling.results import ProfilingFailed

_AT: Location = ("podTemplate", "spec", "containers")


def appended(change: KubeObject, component: KubeObject, at: Location) -> KubeObject:
    """The change of a generated component at `at`, with the complete arguments in place of each directive.

    Raises ProfilingFailed if the graph has no such container, or the container has no arguments.
    """
    if not any(isinstance(each, dict) and PATCH in each for each in containers_of(change.get("podTemplate"))):
        return change
    made = [
        _whole(each, component, (*at, *_AT, index)) if isinstance(each, dict) and PATCH in each else each
        for index, each in enumerate(containers_of(change.get("podTemplate")))
    ]
    return {**change, "podTemplate": with_containers(change["podTemplate"], lambda _: made)}


def _whole(container: KubeObject, component: KubeObject, at: Location) -> KubeObject:
    known = {
        each["name"]: args for each in containers_of(component.get("podTemplate")) if (args := _args(each, component))
    }
    name = container["name"]
    if name not in known:
        have = ", ".join(map(repr, known)) or "none"
        raise ProfilingFailed(
            "InvalidOverride",
            f"{path_of((*at, PATCH))}: the generated {component['name']} has no container {name!r} with arguments to append "
            f"to, only {have}; remove $patch if the container is new",
        )
    return {
        **{key: each for key, each in container.items() if key != PATCH},
        "args": [*known[name], *container["args"]],
    }


def _args(container: KubeObject, component: KubeObject) -> list[Any]:
    """Arguments of a generated container. A frontend without arguments has the platform's."""
    if "args" in container or "command" in container:
        return list(container.get("args") or ())
    is_frontend = component.get("type") == ComponentType.FRONTEND and container["name"] == MAIN
    return list(frontend.ARGS) if is_frontend else []
