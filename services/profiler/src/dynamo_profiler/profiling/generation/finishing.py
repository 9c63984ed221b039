"""Checks generated graphs like all others before they are offered: against the schema and all rules of admission."""

from collections.abc import Sequence

from dynamo_shared.api.errors import FieldError
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.validation.check import validate
from dynamo_shared.api.validation.facts import Facts

from dynamo_profiler.profiling.results import ProfilingFailed

_SHOWN = 5


def lint(graph: KubeObject, *, changed: bool) -> None:
    """Raise ProfilingFailed with all errors, if any. `changed`: the graph includes the request's overrides."""
    refuse([*schema_errors(graph), *validate(graph, None, Facts()).errors], changed=changed)


def refuse(errors: Sequence[FieldError], *, changed: bool) -> None:
    """Raise ProfilingFailed with these errors, if any."""
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
