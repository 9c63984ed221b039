"""What changed in an object. Pure."""

from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
from dynamo_shared.runtime.routes import CacheChange

from dynamo_pod_builder.children import OF_SETS
from dynamo_pod_builder.reconcilers.namespace import is_shared
from dynamo_pod_builder.status.workload import WORKLOADS, outlook, reported

#: Workloads that count pods: of component deployments and of Grove.
COUNTED = frozenset({*WORKLOADS, *OF_SETS})
#: The metadata that concerns reconcilers. A spec that was changed and changed back has another generation, which the
#: status must name; the versions in between may never be observed.
_RELEVANT = ("generation", "uid", "labels", "annotations", "deletionTimestamp")


def relevant(obj: KubeObject) -> list[Any]:
    """What this service's own status write leaves unchanged."""
    return [obj.get("spec"), *map(obj["metadata"].get, _RELEVANT)]


def is_of_replicas(change: CacheChange) -> bool:
    """Whether only the desired replicas of an object changed."""
    old, new = change.old, change.new
    if (
        old is None
        or new is None
        or _lasting_metadata(old) != _lasting_metadata(new)
        or old.get("status") != new.get("status")
    ):
        return False
    before, after = ({**each.get("spec", {}), "replicas": None} for each in (old, new))
    return before == after


def is_of_status(change: CacheChange) -> bool:
    """Whether only the status of an object changed, or its field managers."""
    old, new = change.old, change.new
    return (
        old is not None
        and new is not None
        and _lasting_metadata(old) == _lasting_metadata(new)
        and old.get("spec") == new.get("spec")
    )


def is_of_spec(change: CacheChange) -> bool:
    """Whether the spec of an existing object changed."""
    old, new = change.old, change.new
    return old is not None and new is not None and old.get("spec") != new.get("spec")


def is_of_outlook(change: CacheChange) -> bool:
    """Whether the number of serving pods of a workload changed, or it became stuck or recovered."""
    return change.resource in COUNTED and outlook(change.old) != outlook(change.new)


def concerns_workload(change: CacheChange) -> bool:
    """Whether more changed than parts of a status that are not read."""
    return not is_of_status(change) or reported(change.old) != reported(change.new)


def was_shared(change: CacheChange) -> bool:
    """Whether graphs shared an object that was changed or deleted, and so must recreate it. New objects need nothing."""
    return change.old is not None and is_shared(change.old)


def _lasting_metadata(obj: KubeObject) -> KubeObject:
    """Metadata without fields that count changes, and without annotations on an adapter, which belong to their writers."""
    left_out = {"resourceVersion", "generation", "managedFields"}
    if obj.get("kind") == DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS.kind:
        left_out.add("annotations")
    return {name: value for name, value in obj["metadata"].items() if name not in left_out}
