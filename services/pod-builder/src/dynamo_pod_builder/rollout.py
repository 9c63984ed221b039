"""Managed rolling updates: how many replicas the old and the new worker Deployments have at each step.

Changing a worker changes its hash and so the name of its DynamoComponentDeployment: the new one grows while the old ones
shrink, within the surge and the unavailability that the pod template allows (reference behaviour, section 1.8). Pure.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dynamo_shared.api.registry.annotations import DEPLOYMENT_MAX_SURGE, DEPLOYMENT_MAX_UNAVAILABLE

from dynamo_pod_builder.render.workloads.deployment import margin


@dataclass(frozen=True, slots=True)
class Replicas:
    """A worker DCD as it stands: replicas asked for, pods available and ready, and when it was made (RFC 3339).

    `left` are pods that there are, whether they serve or not; `share` is what its generation serves of all desired replicas.
    `behind` are those that do not serve and go only after some that do, as groups go by their number.
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
    """Replicas that the DCDs of one worker component should have next."""

    new: int
    old: Mapping[str, int]
    done: bool


def margins(component: str, desired: int, template_annotations: Mapping[str, str]) -> tuple[int, int]:
    """Surge (rounded up) and unavailability (rounded down), in pods; never both zero, or nothing could move.

    Raises RenderError for an annotation that is neither a whole number nor a percentage.
    """
    surge = _resolve(margin(component, DEPLOYMENT_MAX_SURGE, template_annotations), desired, math.ceil)
    unavailable = _resolve(margin(component, DEPLOYMENT_MAX_UNAVAILABLE, template_annotations), desired, math.floor)
    return (surge or 1, 0) if unavailable == 0 else (surge, unavailable)


def step(desired: int, new: Replicas, old: Sequence[Replicas], surge: int, unavailable: int) -> RolloutStep:
    """The next step of one component; `done` once the new pods all serve and no old one does."""
    old_replicas, behind = sum(part.replicas for part in old), sum(part.behind for part in old)
    # The reference removes no more than those that do not serve and those that serve in excess, which are never fewer.
    # What is behind may lack until the end: one that serves goes for each new one, or the update would not end.
    unavailable = max(unavailable, min(behind, desired - 1))
    removable = max(0, old_replicas - behind + min(new.replicas, new.available) - (desired - unavailable))
    # Where none may go before a new one serves, one comes, also where there are more of the old ones than are desired.
    one = min(behind, 1)
    new_target = min(desired, max(one, new.replicas, desired + max(surge, one) - old_replicas))
    done = new.ready >= desired and all(part.ready == 0 and part.replicas == 0 for part in old)
    return RolloutStep(new_target, _without(old, removable), done)


def scaled(old: Sequence[Replicas], desired: int) -> dict[str, int]:
    """Replicas of the old generations when they have as many together, because no new one can serve: more of what serves most."""
    together = sum(part.replicas for part in old)
    if desired <= together:
        return _without(old, together - max(0, desired))
    targets = {part.name: part.replicas for part in old}
    serves = max(old, key=lambda part: (part.available, part.created))
    # One that is to serve and does not would not with more pods; one that was scaled to 0 did.
    if serves.available or not together:
        targets[serves.name] += desired - together
    return targets


def _without(old: Sequence[Replicas], fewer: int) -> dict[str, int]:
    """Replicas of the old generations when there are `fewer`: first go pods that do not serve, whatever their generation.

    An update that never served, and its correction, leave one generation that serves, and it is not the newest. Of several
    that serve in part the one that serves most stays, with all its components. Of pods that are alike the newest stay: they
    are the closest to what was last known to work.
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
    """The next step where old and new pods must never run side by side: the old ones go, then the new ones come."""
    gone = all(part.replicas == 0 and part.left == 0 for part in old)
    return RolloutStep(desired if gone else 0, {part.name: 0 for part in old}, gone and new.ready >= desired)


def _resolve(given: int | str, desired: int, rounded: Callable[[float], int]) -> int:
    return given if isinstance(given, int) else rounded(desired * int(given.removesuffix("%")) / 100)
