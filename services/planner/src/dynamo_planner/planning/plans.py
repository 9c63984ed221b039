"""Which graphs are planned, by what: the PlannerConfig that an annotation names, and the profile next to it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import PurePosixPath

from dynamo_shared.api import objects
from dynamo_shared.api.adapted import least_replicas
from dynamo_shared.api.contracts import PlannerConfig, contract_errors, contract_warnings
from dynamo_shared.api.dynamo_namespace import GLOBAL, dynamo_namespace
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import field_errors, shown
from dynamo_shared.api.gpus import ReplicaGpus, of_replica
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import GPU_POWER_LIMIT, PLANNER_CONFIG
from dynamo_shared.api.resources import ObjectKey, key_of
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.words import listed
from dynamo_shared.api.untrusted.yaml_text import documents
from pydantic import ValidationError

from dynamo_planner.core.limits import Limits, watt_words
from dynamo_planner.core.observing import Pool
from dynamo_planner.core.profile import EngineGpus, Profile, ProfileError
from dynamo_planner.core.warmup import Interval, WarmupError, intervals
from dynamo_planner.inputs.engines import UnknownPowerError, gpu_watts
from dynamo_planner.inputs.outcome import InputError
from dynamo_planner.inputs.workers import SharedGpusError, UnknownGpusError, find_pools, gpus_of_worker

CONFIG_KEYS = ("planner_config.json", "planner_config.yaml")
PROFILE_KEYS = ("prefill_raw_data.json", "decode_raw_data.json")


class NotPlannable(Exception):
    """A graph asks for planning and cannot have it; the reason is for its condition, the message says what to do."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PlannedGraph:
    """How one graph is planned. Two that are equal need no new beginning."""

    graph: ObjectKey
    uid: str
    config: PlannerConfig
    components: Mapping[Pool, str]
    """component of each pool that is planned"""
    gpus: Mapping[Pool, int | None]
    """GPUs of one worker, where its pods say it"""
    profile: Profile | None
    watts: Mapping[Pool, int] = field(default_factory=dict)
    """that the GPUs of one worker may draw, where power is planned"""
    warmup: tuple[Interval, ...] = ()
    """load that predictors begin with"""
    remarks: str = ""
    """what of the PlannerConfig has no effect, or likely another one than is meant"""


def config_map_of(graph: KubeObject) -> str:
    """Name of the ConfigMap that a graph's annotation names; empty where it asks for no planning."""
    return str(objects.annotations(graph).get(PLANNER_CONFIG, "")).strip()


def read_plan(
    graph: KubeObject,
    config_map: KubeObject | None,
    profile_map: KubeObject | None,
    counted: Mapping[str, ReplicaGpus] | None = None,
    before: PlannedGraph | None = None,
) -> PlannedGraph:
    """The plan of a graph that asks for one. NotPlannable where it cannot be made.

    `counted` has the GPUs of components, by name; without it, those of claims do not count. `before` is the plan that the graph
    has: GPUs that were known once are known while no pod says it, as when all pods start again.
    """
    components = (graph.get("spec") or {}).get("components") or ()
    own = [each["name"] for each in components if each.get("type") == "planner"]
    if own:
        raise NotPlannable(
            "TwoPlanners",
            f"component {own[0]} is a planner of its own, and annotation {PLANNER_CONFIG} asks the planner service: "
            "keep one of them",
        )
    if config_map is None:
        raise NotPlannable(
            "NoPlannerConfig",
            f"annotation {PLANNER_CONFIG} names ConfigMap {config_map_of(graph)}, which does not exist",
        )
    config, remarks = _config(config_map)
    _check_namespace(config, graph)
    try:
        pools = find_pools(graph, config.mode)
        gpus = {
            pool: _gpus(
                config,
                pool,
                component["name"],
                of_replica(component) if counted is None else counted[component["name"]],
                before.gpus.get(pool) if before else None,
            )
            for pool, component in pools.items()
        }
        profile = _profile(profile_map, _engines(config, gpus))
    except (InputError, ProfileError) as error:
        raise NotPlannable("InvalidPlannerConfig", str(error)) from error
    components_of = {pool: component["name"] for pool, component in pools.items()}
    config = _that_can_run(config, graph, components_of)
    return PlannedGraph(
        graph=key_of(graph),
        uid=graph["metadata"]["uid"],
        config=config,
        components=components_of,
        gpus=gpus,
        profile=profile,
        watts=_watts(config, pools, gpus),
        warmup=_warmup(config, config_map),
        remarks=remarks,
    )


def _that_can_run(config: PlannerConfig, graph: KubeObject, components: Mapping[Pool, str]) -> PlannerConfig:
    """The configuration, whose pools keep as many replicas as Grove starts together: it runs no fewer."""
    least, limits, raised = least_replicas(graph), Limits(config), {}
    for pool, component in components.items():
        # To start together takes two: one alone may go to 0.
        if least.get(component, 1) > max(1, limits.least(pool)):
            raised[f"{pool.value}_min_endpoint"] = least[component]
    return config.model_copy(update=raised) if raised else config


def _gpus(config: PlannerConfig, pool: Pool, component: str, counted: ReplicaGpus, before: int | None) -> int | None:
    """GPUs of one worker of a pool. What the PlannerConfig says of its engines goes before what cannot be counted."""
    field, stated = f"{pool.value}_engine_num_gpu", config.engine_gpus(pool)
    try:
        return gpus_of_worker(component, counted)
    except SharedGpusError as error:
        if stated is not None:
            return stated
        raise NotPlannable("SharedGpus", f"{error}, or set {field}") from error
    except UnknownGpusError as error:
        known = stated or before
        if known is not None:
            return known
        raise NotPlannable("GpusUnknown", f"{error}; until they are, {field} may say it") from error


def _watts(config: PlannerConfig, pools: Mapping[Pool, KubeObject], gpus: Mapping[Pool, int | None]) -> dict[Pool, int]:
    """What one worker of each pool may draw; nothing where power is not planned."""
    if config.power_limit is None:
        return {}
    watts = {pool: _watts_of(config, pool, component, gpus[pool]) for pool, component in pools.items()}
    least = {pool: config.least_replicas(pool) for pool in pools}
    need = sum(count * watts[pool] for pool, count in least.items())
    if need > config.power_limit:
        kept = " and ".join(f"{count} {pool}" for pool, count in least.items())
        raise NotPlannable(
            "InvalidPlannerConfig",
            f"total_gpu_power_limit is {watt_words(config.power_limit)}, and {kept} (min_endpoint) may draw {watt_words(need)}: "
            f"raise it, or lower annotation {GPU_POWER_LIMIT} of their pods",
        )
    return watts


def _watts_of(config: PlannerConfig, pool: Pool, component: KubeObject, gpus: int | None) -> int:
    engine = config.engine_gpus(pool) or gpus
    if engine is None:
        raise NotPlannable(
            "PowerUnknown",
            f"total_gpu_power_limit counts the GPUs of {component['name']}, and nothing says how many a replica has: set "
            f"{pool.value}_engine_num_gpu",
        )
    try:
        return engine * gpu_watts(component)
    except UnknownPowerError as error:
        raise NotPlannable("PowerUnknown", str(error)) from error


def _check_namespace(config: PlannerConfig, graph: KubeObject) -> None:
    """A plan is made of what the graph itself does: another Dynamo namespace is another user's, or of another graph."""
    key, components = key_of(graph), (graph.get("spec") or {}).get("components") or ()
    own = {dynamo_namespace(key.namespace, key.name)}
    if any(each.get("globalDynamoNamespace") for each in components):
        own.add(GLOBAL)
    if config.namespace is not None and config.namespace not in own:
        raise NotPlannable(
            "InvalidPlannerConfig",
            f"namespace is {shown(config.namespace)}; the graph's own is {' or '.join(sorted(own))}: leave it out",
        )


def _config(config_map: KubeObject) -> tuple[PlannerConfig, str]:
    """The configuration, and remarks on it: no admission reads ConfigMaps."""
    data, name = config_map.get("data") or {}, config_map["metadata"]["name"]
    key = next((each for each in CONFIG_KEYS if each in data), None)
    if key is None:
        raise NotPlannable("InvalidPlannerConfig", f"ConfigMap {name} has no key {' or '.join(CONFIG_KEYS)}")
    where = f"ConfigMap {name}, {key}"
    try:
        # JSON is YAML.
        value = next(iter(documents(data[key], SETTINGS)), None)
    except InvalidManifest as error:
        raise NotPlannable("InvalidPlannerConfig", f"{where}: {error}") from error
    errors = contract_errors("features.planner", value)
    if errors:
        raise NotPlannable("InvalidPlannerConfig", f"{where}: {listed(map(str, errors))}")
    try:
        config = PlannerConfig.model_validate(value)
    except ValidationError as error:
        problems = (str(each) for each in field_errors(error))
        raise NotPlannable("InvalidPlannerConfig", f"{where}: {listed(problems)}") from error
    remarks = listed(map(str, contract_warnings("features.planner", value)))
    return config, remarks and f"{where}: {remarks}"


def _warmup(config: PlannerConfig, config_map: KubeObject) -> tuple[Interval, ...]:
    """The trace that predictors learn from: a key of the same ConfigMap, called as the last part of its path."""
    if not config.load_predictor_warmup_trace:
        return ()
    key = PurePosixPath(config.load_predictor_warmup_trace).name
    text = (config_map.get("data") or {}).get(key)
    if text is None:
        raise NotPlannable(
            "InvalidPlannerConfig",
            f"load_predictor_warmup_trace: ConfigMap {config_map['metadata']['name']} has no key {key}: put the trace there",
        )
    try:
        return tuple(intervals(text.splitlines(), config.throughput_adjustment_interval_seconds))
    except WarmupError as error:
        raise NotPlannable("InvalidPlannerConfig", f"{key}: {error}") from error


def _engines(config: PlannerConfig, gpus: Mapping[Pool, int | None]) -> EngineGpus:
    """GPUs of the graph's engines: as its PlannerConfig says, or as its pods do. One pool that does both has both."""
    decode = config.engine_gpus(Pool.DECODE) or gpus.get(Pool.DECODE)
    return EngineGpus(prefill=config.engine_gpus(Pool.PREFILL) or gpus.get(Pool.PREFILL, decode), decode=decode)


def _profile(profile_map: KubeObject | None, engines: EngineGpus) -> Profile | None:
    data = (profile_map or {}).get("data") or {}
    keys = [key for key in PROFILE_KEYS if key in data]
    if not keys:
        return None
    # numpy takes 50 MiB: a planner without profiles does without.
    from dynamo_planner.core.profile_arrays import from_json  # noqa: PLC0415

    return reduce(Profile.joined, (from_json(data[key].encode(), key, engines) for key in keys))
