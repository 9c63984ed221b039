"""What-if analysis of a graph's planner: its plan, a changed configuration and its traffic become one job. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from dynamo_shared.api.contracts import contract_checks
from dynamo_shared.api.contracts.planner import PlannerConfig

from dynamo_planner.core.profile import Profile
from dynamo_planner.planning.plans import PlannedGraph
from dynamo_planner.replay.job import Replays


class InvalidChange(ValueError):
    """A changed configuration that violates a rule; `field`: the key that violates it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def changed_config(config: PlannerConfig, changes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The written configuration with changes, and the remarks on the changed keys. InvalidChange."""
    written = {**written_config(config), **changes}
    if errors := contract_checks.errors(PlannerConfig, written):
        first = errors[0]
        raise InvalidChange(first.path, f"{first.path}: {first.message}")
    remarks = contract_checks.warnings(PlannerConfig, written)
    return written, [f"{each.path} {each.message}" for each in remarks if each.path in changes]


def written_config(config: PlannerConfig) -> dict[str, Any]:
    """The keys that its author wrote, with their newest names."""
    return config.model_dump(mode="json", exclude_unset=True)


def job_of(
    plan: PlannedGraph,
    profile: Profile,
    configs: Sequence[Mapping[str, Any]],
    steps: Sequence[tuple[float, float, int, int]],
    *,
    startup: float,
    replicas: Mapping[str, int],
) -> Replays:
    """The job of a worker process. ProfileError if the profile lacks a part."""
    profile.complete()
    config = plan.config
    gpus = {pool.value: config.engine_gpus(pool) or count for pool, count in plan.gpus.items()}
    return Replays(
        configs=tuple(dict(each) for each in configs),
        steps=tuple(steps),
        prefill=tuple((each.isl, each.ttft) for each in profile.prefill),
        decode=tuple((each.context, each.kv_tokens, each.itl) for each in profile.decode),
        max_kv_tokens=profile.max_kv_tokens,
        startup=startup,
        replicas=dict(replicas),
        gpus={pool: count for pool, count in gpus.items() if count},
        watts={pool.value: watts for pool, watts in plan.watts.items()},
        warmup=tuple((each.requests, each.isl, each.osl) for each in plan.warmup),
    )
