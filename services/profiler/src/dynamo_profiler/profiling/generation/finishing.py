"""Finishes graphs: with what a request sets besides its overrides, and checked like all others before they are offered:
against the schema and all rules of admission.
"""

from collections.abc import Sequence
from typing import Any

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

from dynamo_profiler.profiling.generation.kv_router import routed
from dynamo_profiler.profiling.generation.pull_secrets import share_pull_secrets
from dynamo_profiler.profiling.generation.trust_remote_code import trusting
from dynamo_profiler.profiling.results import ProfilingFailed

VERSION = "runtimeVersionOverride"
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
    text = "; ".join(map(str, errors[:_SHOWN]))
    more = f"; and {len(errors) - _SHOWN} more" if len(errors) > _SHOWN else ""
    if changed:
        raise ProfilingFailed(
            "InvalidOverride",
            f"admission would refuse the graph with spec.overrides.dgd: {text}{more}; correct the override",
        )
    raise ProfilingFailed(
        "InvalidGraph", f"admission would refuse the generated graph: {text}{more}; please report this"
    )


def versioned(graph: KubeObject, spec: DynamoGraphDeploymentRequestSpec) -> KubeObject:
    """The graph with the request's version of Dynamo, which the tags of its images do not show, in each component
    without its own.
    """
    version = spec.runtime_version_override
    if not version:
        return graph
    components = [_versioned(each, version) for each in graph["spec"]["components"]]
    return {**graph, "spec": {**graph["spec"], "components": components}}


def _versioned(component: Any, version: str) -> Any:
    """Leaves an invalid component unchanged: it is reported with all other errors of the graph."""
    if not isinstance(component, dict) or component.get(VERSION):
        return component
    return {**component, VERSION: version}
