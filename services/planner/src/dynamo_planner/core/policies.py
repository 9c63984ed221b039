"""Creates the policy of a graph."""

from collections.abc import Sequence
from typing import Literal

from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.decision import Policy
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.warmup import Interval

PolicyName = Literal["reference", "adaptive"]


def make_policy(
    config: PlannerConfig, *, policy: PolicyName, profile: Profile | None, warmup: Sequence[Interval]
) -> Policy:
    """A policy that has learned only the given profile and trace.

    `profile`: the initial data of the engine models; `warmup`: the initial load of the predictors. The policy's methods
    are synchronous and may compute for seconds, and the first call loads numerical libraries (50 MiB, which a planner
    without graphs saves): a service must call them in a thread or a process, never on its event loop.
    """
    if policy == "reference":
        from dynamo_planner.core.reference import ReferencePolicy  # noqa: PLC0415

        return ReferencePolicy(config, profile=profile, warmup=warmup)
    if policy == "adaptive":
        from dynamo_planner.core.adaptive import AdaptivePolicy  # noqa: PLC0415

        return AdaptivePolicy(config, profile=profile, warmup=warmup)
    raise ValueError(f"policy is {policy!r}; it must be adaptive or reference")
