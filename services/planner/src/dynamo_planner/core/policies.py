"""The policy that a graph is planned by."""

from collections.abc import Sequence
from typing import Literal

from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.decision import Policy
from dynamo_planner.core.profile import Profile
from dynamo_planner.core.warmup import Interval

PolicyName = Literal["reference", "adaptive"]


def make_policy(
    config: PlannerConfig,
    *,
    policy: PolicyName,
    profile: Profile | None = None,
    warmup: Sequence[Interval] = (),
) -> Policy:
    """A policy with nothing learnt but the profile and the trace that it is given.

    `profile` is what the models of the engines begin with, `warmup` the load that predictors begin with. Its methods
    are synchronous and may compute for seconds, and the first call loads numerical libraries (50 MiB, which a planner
    without graphs does without): a service calls them in a thread or a process, never on its event loop.
    """
    if policy == "reference":
        from dynamo_planner.core.reference import ReferencePolicy  # noqa: PLC0415

        return ReferencePolicy(config, profile=profile, warmup=warmup)
    if policy == "adaptive":
        from dynamo_planner.core.adaptive import AdaptivePolicy  # noqa: PLC0415

        return AdaptivePolicy(config, profile=profile, warmup=warmup)
    raise ValueError(f"policy is {policy!r}; it must be adaptive or reference")
