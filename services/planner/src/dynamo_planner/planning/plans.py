"""Which graphs are planned, and how: the PlannerConfig that an annotation names, and its profile. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import PurePosixPath

from dynamo_shared.api import objects
from dynamo_shared.api.adapted import least_replicas
from dynamo_shared.api.contracts import PlannerConfig, contract_checks
from dynamo_shared.api.dynamo_namespace import GLOBAL, dynamo_namespace
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.gpus import MAX_GPUS, ReplicaGpus, of_replica
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import GPU_POWER_LIMIT, PLANNER_CONFIG
from dynamo_shared.api.resources import ObjectKey, key_of
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.words import listed
from dynamo_shared.api.untrusted.yaml_text import documents

from dynamo_planner.core.limits import Limits, watts_text
from dynamo_planner.core.observation import Pool
from dynamo_planner.core.profile import EngineGpus, Profile, ProfileError
from dynamo_planner.core.warmup import Interval, WarmupError, intervals
from dynamo_planner.inputs.engines import UnknownPowerError, gpu_watts
from dynamo_planner.inputs.outcome import InputError
from dynamo_planner.inputs.workers import SharedGpusError, UnknownGpusError, find_pools, gpus_of_worker

CONFIG_KEYS = ("planner_config.json", "planner_config.yaml")
#: Largest whole number in a PlannerConfig.
_LARGEST = 2**63 - 1
PROFILE_KEYS = ("prefill_raw_data.json", "decode_raw_data.json")


class NotPlannable(Exception):
    """A graph requests planning but cannot be planned; the reason is for its condition, the message names the
    remedy.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class PlannedGraph:
    """How one graph is planned. If an equal plan replaces it, the runner continues."""

    graph: ObjectKey
    uid: str
    config: PlannerConfig
    components: Mapping[Pool, str]
    """component of each planned pool"""
    gpus: Mapping[Pool, int | None]
    """GPUs of one worker, if its pods state them"""
    profile: Profile | None
    watts: Mapping[Pool, int] = field(default_factory=dict)
    """power limit of one worker's GPUs, if power is planned"""
    warmup: tuple[Interval, ...] = ()
    """initial load of the predictors"""
    remarks: str = ""
    """fields of the PlannerConfig without effect, or with a probably unintended one"""


def config_map_of(graph: KubeObject) -> str:
    """Name of the ConfigMap in a graph's annotation; empty if the graph requests no planning."""
    return str(objects.annotations(graph).get(PLANNER_CONFIG, "")).strip()


def read_plan(
    graph: KubeObject,
    config_map: KubeObject | None,
    profile_map: KubeObject | None,
    counted: Mapping[str, ReplicaGpus] | None = None,
    before: PlannedGraph | None = None,
) -> PlannedGraph:
    """The plan of a graph that requests one. NotPlannable if it cannot be created.

    `counted`: GPUs of components, by name; without it, GPUs in claims do not count. `before`: the graph's current plan.
    GPUs that it knows stay known while no pod states them, for example while all pods restart.
    """
    components = (graph.get("spec") or {}).get("components") or ()
    own = [each["name"] for each in components if each.get("type") == "planner"]
    if own:
        raise NotPlannable(
            "TwoPlanners",
            f"component {own[0]} is a planner, and annotation {PLANNER_CONFIG} requests the planner service: "
            "keep one of them",
        )
    if config_map is None:
        raise NotPlannable(
            "NoPlannerConfig",
            f"annotation {PLANNER_CONFIG} names ConfigMap {config_map_of(graph)}, which does not exist",
        )
    config, remarks = read_config(config_map)
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
    config = _with_gang_minimums(config, graph, components_of)
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


def _with_gang_minimums(config: PlannerConfig, graph: KubeObject, components: Mapping[Pool, str]) -> PlannerConfig:
    """The configuration, with minimums raised to the replicas that Grove starts together, because it runs no fewer."""
    least, limits, raised = least_replicas(graph), Limits(config), {}
    for pool, component in components.items():
        # Gang scheduling needs at least two: a single replica may scale to 0.
        if least.get(component, 1) > max(1, limits.least(pool)):
            raised[f"{pool.value}_min_endpoint"] = least[component]
    return config.model_copy(update=raised) if raised else config


def _gpus(config: PlannerConfig, pool: Pool, component: str, counted: ReplicaGpus, before: int | None) -> int | None:
    """GPUs of one worker of a pool. If they cannot be counted, the PlannerConfig's number is used."""
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
        raise NotPlannable("GpusUnknown", f"{error}; meanwhile, {field} can set the number") from error


def _watts(config: PlannerConfig, pools: Mapping[Pool, KubeObject], gpus: Mapping[Pool, int | None]) -> dict[Pool, int]:
    """Power limit of one worker of each pool; empty if power is not planned."""
    if config.power_limit is None:
        return {}
    watts = {pool: _watts_of(config, pool, component, gpus[pool]) for pool, component in pools.items()}
    least = {pool: config.least_replicas(pool) for pool in pools}
    need = sum(count * watts[pool] for pool, count in least.items())
    if need > config.power_limit:
        kept = " and ".join(f"{count} {pool}" for pool, count in least.items())
        raise NotPlannable(
            "InvalidPlannerConfig",
            f"total_gpu_power_limit is {watts_text(config.power_limit)}, and {kept} (min_endpoint) may draw {watts_text(need)}: "
            f"raise total_gpu_power_limit, or lower annotation {GPU_POWER_LIMIT} of their pods",
        )
    return watts


def _watts_of(config: PlannerConfig, pool: Pool, component: KubeObject, gpus: int | None) -> int:
    engine = config.engine_gpus(pool) or gpus
    if engine is None:
        raise NotPlannable(
            "PowerUnknown",
            f"total_gpu_power_limit needs the GPUs of a replica of {component['name']}, which are unknown: set "
            f"{pool.value}_engine_num_gpu",
        )
    try:
        return engine * gpu_watts(component)
    except UnknownPowerError as error:
        raise NotPlannable("PowerUnknown", str(error)) from error


def _check_namespace(config: PlannerConfig, graph: KubeObject) -> None:
    """Refuse a foreign Dynamo namespace: a plan must follow the graph's own traffic, not that of another user
    or graph.
    """
    key, components = key_of(graph), (graph.get("spec") or {}).get("components") or ()
    own = {dynamo_namespace(key.namespace, key.name)}
    if any(each.get("globalDynamoNamespace") for each in components):
        own.add(GLOBAL)
    if config.namespace is not None and config.namespace not in own:
        raise NotPlannable(
            "InvalidPlannerConfig",
            f"namespace is {shown(config.namespace)}, but the graph's namespace is {' or '.join(sorted(own))}: remove it",
        )


def read_config(config_map: KubeObject) -> tuple[PlannerConfig, str]:
    """The configuration as written, and remarks on it, because admission does not check ConfigMaps. NotPlannable."""
    data, name = config_map.get("data") or {}, config_map["metadata"]["name"]
    key = next((each for each in CONFIG_KEYS if each in data), None)
    if key is None:
        raise NotPlannable("InvalidPlannerConfig", f"ConfigMap {name} has no key {' or '.join(CONFIG_KEYS)}")
    where = f"ConfigMap {name}, {key}"
    try:
        # JSON is a subset of YAML.
        value = next(iter(documents(data[key], SETTINGS)), None)
    except InvalidManifest as error:
        raise NotPlannable("InvalidPlannerConfig", f"{where}: {error}") from error
    if errors := contract_checks.errors(PlannerConfig, value):
        raise NotPlannable("InvalidPlannerConfig", f"{where}: {listed(map(str, errors))}")
    config = PlannerConfig.model_validate(value)
    if problem := _too_large(config):
        raise NotPlannable("InvalidPlannerConfig", f"{where}: {problem}")
    remarks = listed(map(str, contract_checks.warnings(PlannerConfig, value)))
    return config, remarks and f"{where}: {remarks}"


def _too_large(config: PlannerConfig) -> str:
    """Which whole number a policy cannot compute with; empty if it can compute with all of them."""
    of_engine = ("prefill_engine_num_gpu", "decode_engine_num_gpu")
    for name in sorted(config.model_fields_set):
        value, most = getattr(config, name, None), MAX_GPUS if name in of_engine else _LARGEST
        if isinstance(value, int) and value > most:
            return f"{name} is too large: at most {most} is allowed"
    return ""


def _warmup(config: PlannerConfig, config_map: KubeObject) -> tuple[Interval, ...]:
    """The trace that predictors learn from: a key of the same ConfigMap, named like the last part of its path."""
    if not config.load_predictor_warmup_trace:
        return ()
    key = PurePosixPath(config.load_predictor_warmup_trace).name
    text = (config_map.get("data") or {}).get(key)
    if text is None:
        raise NotPlannable(
            "InvalidPlannerConfig",
            f"load_predictor_warmup_trace: ConfigMap {config_map['metadata']['name']} has no key {key}: store the "
            "trace under this key",
        )
    try:
        return tuple(intervals(text.splitlines(), config.throughput_adjustment_interval_seconds))
    except WarmupError as error:
        raise NotPlannable("InvalidPlannerConfig", f"{key}: {error}") from error


def _engines(config: PlannerConfig, gpus: Mapping[Pool, int | None]) -> EngineGpus:
    """GPUs of the graph's engines: from its PlannerConfig, otherwise from its pods. An aggregated pool counts for both
    roles.
    """
    decode = config.engine_gpus(Pool.DECODE) or gpus.get(Pool.DECODE)
    return EngineGpus(prefill=config.engine_gpus(Pool.PREFILL) or gpus.get(Pool.PREFILL, decode), decode=decode)


def _profile(profile_map: KubeObject | None, engines: EngineGpus) -> Profile | None:
    data = (profile_map or {}).get("data") or {}
    keys = [key for key in PROFILE_KEYS if key in data]
    if not keys:
        return None
    # numpy takes 50 MiB, which a planner without profiles saves.
    from dynamo_planner.core.profile_arrays import from_json  # noqa: PLC0415

    return reduce(Profile.joined, (from_json(data[key].encode(), key, engines) for key in keys))
