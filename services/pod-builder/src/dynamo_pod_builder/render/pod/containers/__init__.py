"""Defaults of the main container and the pod, by component type: one module per type."""

from collections.abc import Callable
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.containers import common, epp, frontend, planner, worker


class Defaults(NamedTuple):
    """The defaults of a component type, before the user's pod template overrides them."""

    container: Callable[[PodContext], KubeObject]
    pod: Callable[[PodContext], KubeObject]


_COMMON = Defaults(common.container, common.pod)
_WORKER = Defaults(worker.container, worker.pod)
_BY_TYPE: dict[str, Defaults] = {
    ComponentType.FRONTEND: Defaults(frontend.container, frontend.pod),
    ComponentType.WORKER: _WORKER,
    ComponentType.PREFILL: _WORKER,
    ComponentType.DECODE: _WORKER,
    ComponentType.PLANNER: Defaults(planner.container, planner.pod),
    ComponentType.EPP: Defaults(epp.container, epp.pod),
}


def defaults_of(component_type: str) -> Defaults:
    """Defaults of a component type; the common ones without a type."""
    return _BY_TYPE.get(component_type, _COMMON)
