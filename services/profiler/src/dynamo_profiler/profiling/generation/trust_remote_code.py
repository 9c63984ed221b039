"""`overrides.trustRemoteCode`: engines may run code that comes with the model."""

from typing import Any

from dynamo_shared.api.containers import with_main
from dynamo_shared.api.engines import options
from dynamo_shared.api.engines.started import engines_started, script_at
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.role_templates import with_templates
from dynamo_shared.api.untrusted.reading import items, mapping
from dynamo_shared.api.v1beta1 import ComponentType
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec

OPTION = "trust_remote_code"
_WORKERS = (ComponentType.WORKER, ComponentType.PREFILL, ComponentType.DECODE)


def trusting(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """The graph with the flag on each worker whose engine has one, if the request sets it. Applied after the overrides.

    Simulated engines run no such code, and TensorRT-LLM has no flag for it.
    """
    if spec.overrides is None or not spec.overrides.trust_remote_code:
        return graph
    components = [_trusting(each) for each in graph["spec"]["components"]]
    return {**graph, "spec": {**graph["spec"], "components": components}}


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
    flags = [flag for engine in started for flag in options.flags(engine, OPTION, value=True) or ()]
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
