"""What-if analysis of a graph's planner: its plan, a changed configuration and its traffic become one job. Pure."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dynamo_shared.api.contracts import contract_checks
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.api.gpus import ReplicaGpus
from dynamo_shared.api.objects import KubeObject

from dynamo_planner.core.profile import Profile
from dynamo_planner.planning.plans import CONFIG_KEYS, PlannedGraph, read_config, read_plan
from dynamo_planner.replay.job import Replays


class InvalidChange(ValueError):
    """A changed configuration that violates a rule; `field`: the key that violates it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def changed_plan(
    graph: KubeObject,
    config_map: KubeObject,
    profile_map: KubeObject | None,
    changes: Mapping[str, Any],
    counted: Mapping[str, ReplicaGpus] | None = None,
) -> tuple[PlannedGraph, list[str]]:
    """The plan that the planner reads if the changes are in the ConfigMap, and the remarks on the changed keys.
    `counted`: as for `read_plan`.

    So all that the planner derives from the configuration, such as minimums of gangs and the intervals of a warm-up
    trace, is derived from the changed one. InvalidChange, NotPlannable.
    """
    written = {**written_config(read_config(config_map)[0]), **changes}
    if errors := contract_checks.errors(PlannerConfig, written):
        first = errors[0]
        raise InvalidChange(first.path, f"{first.path}: {first.message}")
    remarks = contract_checks.warnings(PlannerConfig, written)
    data = {**config_map["data"], CONFIG_KEYS[0]: json.dumps(written)}
    plan = read_plan(graph, {**config_map, "data": data}, profile_map, counted)
    return plan, [f"{each.path} {each.message}" for each in remarks if each.path in changes]


def written_config(config: PlannerConfig) -> dict[str, Any]:
    """The keys that its author wrote, with their newest names."""
    return config.model_dump(mode="json", exclude_unset=True)


def job_of(
    plans: Sequence[PlannedGraph],
    profile: Profile,
    steps: Sequence[tuple[float, float, int, int]],
    *,
    startup: float,
    replicas: Mapping[str, int],
) -> Replays:
    """The job of a worker process for plans of one graph, which differ in their configurations.

    ProfileError if the profile lacks a part.
    """
    profile.complete()
    graph = plans[0]
    gpus = {pool.value: graph.config.engine_gpus(pool) or count for pool, count in graph.gpus.items()}
    return Replays(
        configs=tuple(written_config(plan.config) for plan in plans),
        warmups=tuple(tuple((each.requests, each.isl, each.osl) for each in plan.warmup) for plan in plans),
        steps=tuple(steps),
        prefill=tuple((each.isl, each.ttft) for each in profile.prefill),
        decode=tuple((each.context, each.kv_tokens, each.itl) for each in profile.decode),
        max_kv_tokens=profile.max_kv_tokens,
        startup=startup,
        replicas=dict(replicas),
        gpus={pool: count for pool, count in gpus.items() if count},
        watts={pool.value: watts for pool, watts in graph.watts.items()},
    )
