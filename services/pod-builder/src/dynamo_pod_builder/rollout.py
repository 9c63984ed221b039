"""Managed rolling updates: the replicas of the old and the new worker Deployments at each step.

A changed worker has another hash, and so another DynamoComponentDeployment name: the new one grows while the old ones
shrink, within the surge and the unavailability that the pod template allows (reference behaviour, section 1.8). Pure.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dynamo_shared.api.registry.annotations import DEPLOYMENT_MAX_SURGE, DEPLOYMENT_MAX_UNAVAILABLE

from dynamo_pod_builder.render.workloads.deployment import margin


@dataclass(frozen=True, slots=True)
class Replicas:
    """An observed worker DCD: desired replicas, available and ready pods, and its creation time (RFC 3339).

    `left`: existing pods, serving or not; `share`: the share of all desired replicas that its generation serves.
    `behind`: pods that do not serve but are removed only after some that do, because groups are removed by number.
    """

    name: str
    replicas: int
    available: int
    ready: int
    created: str = ""
    left: int = 0
    share: float = 0.0
    behind: int = 0


@dataclass(frozen=True, slots=True)
class RolloutStep:
    """The next replicas of the DCDs of one worker component."""

    new: int
    old: Mapping[str, int]
    done: bool


def margins(component: str, desired: int, template_annotations: Mapping[str, str]) -> tuple[int, int]:
    """Surge (rounded up) and unavailability (rounded down), in pods; never both zero, or the update could not move.

    Raises RenderError for an annotation that is neither a whole number nor a percentage.
    """
    surge = _resolve(margin(component, DEPLOYMENT_MAX_SURGE, template_annotations), desired, math.ceil)
    unavailable = _resolve(margin(component, DEPLOYMENT_MAX_UNAVAILABLE, template_annotations), desired, math.floor)
    return (surge or 1, 0) if unavailable == 0 else (surge, unavailable)


def step(desired: int, new: Replicas, old: Sequence[Replicas], surge: int, unavailable: int) -> RolloutStep:
    """The next step of one component; `done` when all new pods serve and no old one does."""
    old_replicas, behind = sum(part.replicas for part in old), sum(part.behind for part in old)
    # The reference removes at most the pods that do not serve plus the serving pods in excess, which are never fewer.
    # Pods that are behind may be missing until the end: a serving pod is removed for each new one, or the update would
    # not end.
    unavailable = max(unavailable, min(behind, desired - 1))
    removable = max(0, old_replicas - behind + min(new.replicas, new.available) - (desired - unavailable))
    # If no old pod may go before a new one serves, one new pod is created, even if old pods exceed the desired number.
    one = min(behind, 1)
    new_target = min(desired, max(one, new.replicas, desired + max(surge, one) - old_replicas))
    done = new.ready >= desired and all(part.ready == 0 and part.replicas == 0 for part in old)
    return RolloutStep(new_target, _without(old, removable), done)


def scaled(old: Sequence[Replicas], desired: int) -> dict[str, int]:
    """Replicas of the old generations, `desired` in total, because no new pod can serve: the best serving one grows."""
    together = sum(part.replicas for part in old)
    if desired <= together:
        return _without(old, together - desired)
    targets = {part.name: part.replicas for part in old}
    serves = max(old, key=lambda part: (part.available, part.created))
    # A generation that should serve but does not would not serve with more pods; one that was scaled to 0 may.
    if serves.available or not together:
        targets[serves.name] += desired - together
    return targets


def _without(old: Sequence[Replicas], fewer: int) -> dict[str, int]:
    """Replicas of the old generations with `fewer` in total: pods that do not serve go first, from any generation.

    After an update that never served, and its correction, one generation serves, and it is not the newest. If several
    serve in part, the one that serves most stays, with all its components. Among equal pods the newest stay: they are
    the closest to the last version that is known to work.
    """
    first = sorted(old, key=lambda part: (part.share, part.created))
    targets = {part.name: part.replicas for part in first}
    for part in first:
        gone = min(fewer, max(0, part.replicas - part.available - part.behind))
        targets[part.name] -= gone
        fewer -= gone
    for part in first:
        gone = min(fewer, targets[part.name])
        targets[part.name] -= gone
        fewer -= gone
    return targets


def replace_all(desired: int, new: Replicas, old: Sequence[Replicas]) -> RolloutStep:
    """The next step if old and new pods must never run side by side: first the old ones are removed."""
    gone = all(part.replicas == 0 and part.left == 0 for part in old)
    return RolloutStep(desired if gone else 0, {part.name: 0 for part in old}, gone and new.ready >= desired)


def _resolve(given: int | str, desired: int, rounded: Callable[[float], int]) -> int:
    return given if isinstance(given, int) else rounded(desired * int(given.removesuffix("%")) / 100)
