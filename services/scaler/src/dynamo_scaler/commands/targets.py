"""The components that a command names. Pure."""

from collections.abc import Sequence

from dynamo_shared.bus.commands import CommandRefusedError
from dynamo_shared.wire.specifications.scaling import ScaleTarget

from dynamo_scaler.budgets.pools import DesiredPool, PoolKey
from dynamo_scaler.commands.request import INVALID

UNKNOWN, AMBIGUOUS = "UnknownComponent", "AmbiguousTarget"


def resolve(targets: Sequence[ScaleTarget], pools: Sequence[DesiredPool]) -> dict[PoolKey, int]:
    """Requested replicas, by pool of the graph. CommandRefusedError for targets that do not name exactly one component
    each.

    A target names a component (case-insensitive, because names differ by more than case), or its sub-component type if
    only one component has it (`type` in v1beta1: prefill, decode, worker, frontend). If both are given, both must
    match. If no component has the name, the name may be a type: people write `prefill=2`.
    """
    if not targets:
        raise CommandRefusedError(
            INVALID, "targets is empty: name a component, or a sub-component type, and its replicas"
        )
    desired: dict[PoolKey, int] = {}
    for index, target in enumerate(targets):
        key = _find(f"targets[{index}]", target, pools).key
        if key in desired:
            raise CommandRefusedError(INVALID, f"targets[{index}]: {key.component} is already a target")
        desired[key] = target.replicas
    return desired


def _find(place: str, target: ScaleTarget, pools: Sequence[DesiredPool]) -> DesiredPool:
    name, kind = target.component, target.sub_component_type.lower()
    if not name and not kind:
        raise CommandRefusedError(INVALID, f"{place}: needs component or subComponentType")
    named = [pool for pool in pools if not name or pool.key.component.lower() == name.lower()]
    if not named and not kind and any(pool.type == name.lower() for pool in pools):
        return _find(place, ScaleTarget(sub_component_type=name), pools)
    if not named:
        names = ", ".join(pool.key.component for pool in pools) or "none"
        raise CommandRefusedError(UNKNOWN, f"{place}: the graph has no component {name}; there are: {names}")
    matching = [pool for pool in named if not kind or pool.type == kind]
    if not matching:
        names = ", ".join(f"{pool.key.component} ({pool.type or 'no type'})" for pool in pools) or "none"
        raise CommandRefusedError(
            UNKNOWN, f"{place}: no component{f' {name}' if name else ''} of type {kind}; there are: {names}"
        )
    if len(matching) > 1:
        several = ", ".join(pool.key.component for pool in matching)
        raise CommandRefusedError(AMBIGUOUS, f"{place}: {kind} matches {several}; name the component")
    return matching[0]
