# ruff: noqa: E501 - messages stand here whole
"""The documents inside the platform's objects: schemas, examples, and the messages for invalid values."""

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from dynamo_shared.api.contracts import CONTRACTS, Autoscaling, Contract, PlannerConfig
from dynamo_shared.api.contracts.base import names_of
from dynamo_shared.api.contracts.contract_checks import HINTS, errors, warnings
from dynamo_shared.api.contracts.planner_interpolation import Pick
from hypothesis import given
from hypothesis import strategies as st

from tests.building.tables import table_of
from tests.examples import examples
from tools.generate.json_schema import document

ROOT = Path(__file__).resolve().parents[3]
REQUESTS = sorted((ROOT / ".." / "shared" / "planning" / "dgdr").glob("*.yaml"))
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


BY_NAME = {each.name: each for each in CONTRACTS}


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(document(BY_NAME[name]))


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_schemas_are_valid_and_describe_every_field(contract: Contract) -> None:
    schema = document(contract)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("2020-12/schema")
    assert schema["$id"].endswith(f"/{contract.name}.json")
    for type_ in (schema, *schema.get("$defs", {}).values()):
        for name, node in type_.get("properties", {}).items():
            assert node.get("deprecated") or node["description"].endswith("."), name


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_examples_are_valid_without_warnings(contract: Contract) -> None:
    assert contract.examples
    for example in contract.examples:
        validator(contract.name).validate(example)
        assert errors(contract.model, example) == []
        assert warnings(contract.model, example) == []


@pytest.mark.parametrize("file", REQUESTS, ids=lambda file: file.stem)
def test_planners_of_the_references_requests_are_valid(file: Path) -> None:
    planner = yaml.safe_load(file.read_text()).get("features", {}).get("planner", {})
    validator("features.planner").validate(planner)
    assert errors(PlannerConfig, planner) == []
    unknown = [each for each in warnings(PlannerConfig, planner) if "not a known key" in each.message]
    assert unknown == []


WRONG = table_of("""
features.planner: [] | must be an object, not a list
features.planner: {mode: both, ttft: '3', itl_ms: 0, aic_interpolation: null, live_dashboard_port: 70000}
  | live_dashboard_port: 70000 is too large; at most 65535
  | itl_ms: 0 is too small; must be above 0.0
  | mode: 'both' is not allowed; one of 'disagg', 'prefill', 'decode', 'agg'
  | ttft: must be a number, not '3'
features.planner: {optimization_target: sla, enable_throughput_scaling: false}
  | enable_throughput_scaling: is false, and enable_load_scaling is false, too: enable at least one of them, or the planner scales nothing
features.planner: {optimization_target: sla, enable_load_scaling: true, load_adjustment_interval: 180}
  | load_adjustment_interval: 180 s must be shorter than throughput_adjustment_interval_seconds, 180 s
features.planner: {environment: global-planner, fpm_sample_bucket_size: 15}
  | global_planner_namespace: required with environment 'global-planner'
  | fpm_sample_bucket_size: 15 is not a square number, such as 16 or 25
features.planner: {optimization_target: load, decode_scale_up_kv_rate: 30, decode_scale_down_kv_rate: 40}
  | prefill_scale_up_queue_tokens: required with optimization_target 'load' in mode 'disagg'
  | prefill_scale_down_queue_tokens: required with optimization_target 'load' in mode 'disagg'
  | decode_scale_up_kv_rate: 30 must be above decode_scale_down_kv_rate, 40, or the planner alternately adds and removes replicas
features.planner: {enable_power_awareness: true}
  | total_gpu_power_limit: required with enable_power_awareness: the power limit of all pools together, in watts
profilingConfig.config: {hardware: {min_num_gpus_per_engine: 8, maxNumGpusPerEngine: 4}}
  | hardware.min_num_gpus_per_engine: 8 GPUs are more than maxNumGpusPerEngine, 4
profilingConfig: {profilerImage: image, config: {planner: {kalman_r: 0}}, profilerImag: x}
  | config.planner.kalman_r: 0 is too small; must be above 0.0
  | profilerImag: no such field; did you mean profilerImage?
deploymentOverrides: {labels: {a: 1}} | labels.a: must be a string, not 1
DYN_DEPLOYMENT_CONFIG: {Worker: {ServiceArgs: {workers: -1}}, Frontend: 3, routing: {mode: fastest}}
  | routing.mode: 'fastest' is not allowed; one of 'kv', 'round-robin', 'random'
  | Worker.ServiceArgs.workers: -1 is too small; at least 0
  | Frontend: must be an object, not 3
""")


@pytest.mark.parametrize(("given", "expected"), WRONG.items())
def test_an_error_is_reported_with_its_path(given: str, expected: tuple[str, ...]) -> None:
    ((name, value),) = yaml.safe_load(given).items()
    assert sorted(str(each) for each in errors(BY_NAME[name].model, value)) == sorted(expected)


LIKELY_NOT_MEANT = table_of("""
features.planner: {max_gpu_budgt: 3}
  | max_gpu_budgt: is not a known key, and has no effect; did you mean max_gpu_budget?
features.planner: {enabled: false}
  | enabled: is not a known key, and has no effect: this object enables the planner, with any content; to disable the planner, leave the object out
features.planner: {ttft: 300, policy: reference}
  | ttft: is the old name of ttft_ms
  | ttft: ignored with optimization_target 'throughput'; only 'sla' uses this target
features.planner: {environment: virtual, total_gpu_power_limit: 900, min_endpoint: 2}
  | environment: 'virtual' has no effect: the scaler executes the decisions
  | total_gpu_power_limit: ignored without enable_power_awareness: true
features.planner: {enable_power_awareness: true, total_gpu_power_limit: 900}
features.planner: {mode: decode, prefill_min_endpoint: 2, load_predictor: prophet}
  | prefill_min_endpoint: ignored in mode 'decode', which has no such pool
  | load_predictor: ignored with policy 'adaptive'; only 'reference' reads it
features.planner: {policy: reference, decode_min_endpoint: 2, kalman_r: 5}
features.planner: {optimization_target: sla, pre_deployment_sweeping_mode: none}
  | pre_deployment_sweeping_mode: 'none' measures no profile: without one, the planner holds the replicas until the engines have reported enough iterations, load_min_observations
features.planner: {policy: reference, pre_deployment_sweeping_mode: none}
features.planner: {batch_scheduling: {enabled: true}}
  | batch_scheduling: is ignored: the planner service plans batch jobs together with other requests
features.planner: {no_operation: true} | no_operation: is the old name of advisory
features.planner: {environment: kubernetes}
features.planner: {ttft_ms: 300, enable_load_scaling: false}
features.planner: {min_gpu_budget: 9} | min_gpu_budget: 9 is above max_gpu_budget, 8, which takes precedence
profilingConfig: {profilerImage: x, config: {sweep: {dry_run: true, fast: 1}}}
  | config.sweep.dry_run: is the old name of dryRun
  | config.sweep.fast: is not a known key, and has no effect
DYN_DEPLOYMENT_CONFIG: {Worker: {served_model_name: x}}
dynamo-autoscaling: {Worker: {maxReplicas: 2, minReplica: 1, metrics: [{own: 1}]}}
  | Worker.minReplica: is not a known key, and has no effect; did you mean minReplicas?
""")


@pytest.mark.parametrize(("given", "expected"), LIKELY_NOT_MEANT.items())
def test_a_probable_mistake_is_a_warning_and_not_an_error(given: str, expected: tuple[str, ...]) -> None:
    ((name, value),) = yaml.safe_load(given).items()
    assert errors(BY_NAME[name].model, value) == []
    assert [str(each) for each in warnings(BY_NAME[name].model, value)] == [*expected]
    if name != "DYN_DEPLOYMENT_CONFIG":
        validator(name).validate(value)


def test_older_names_are_read_like_current_ones() -> None:
    config = PlannerConfig.model_validate({"ttft": 300, "load_adjustment_interval": 7.0, "no_operation": True})
    assert (config.ttft_ms, config.load_adjustment_interval_seconds, config.advisory) == (300, 7, True)


def test_targets_other_than_sla_have_only_reactive_scaling() -> None:
    assert (PlannerConfig().load_scaling, PlannerConfig().throughput_scaling) == (True, False)
    sla = PlannerConfig.model_validate({"optimization_target": "sla"})
    assert (sla.load_scaling, sla.throughput_scaling) == (False, True)


def test_gpus_of_an_engine() -> None:
    assert Pick.model_validate({"tp": 4, "pp": 2}).gpus == 8
    assert Pick.model_validate({"tp": 2, "dp": 8, "moe_tp": 2, "moe_ep": 8}).gpus == 16


def with_one_name_a_field(contract: Contract, value: dict[str, Any]) -> dict[str, Any]:
    """The value without second names of a field: the current name counts, and only the schema checks the older one."""
    fields = {key: name for name, field in contract.model.model_fields.items() for key in names_of(name, field)}
    first: dict[str, str] = {}
    for key in value:
        first.setdefault(fields.get(key, key), key)
    return {key: value[key] for key in first.values()}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
@examples(20)
@given(data=st.data())
def test_no_junk_raises_anything(contract: Contract, data: st.DataObject) -> None:
    keys = st.sampled_from([*document(contract)["properties"], "other"])
    value = data.draw(st.dictionaries(keys, JSON_VALUES, max_size=4) | JSON_VALUES)
    if isinstance(value, dict):
        value = with_one_name_a_field(contract, value)
    warnings(contract.model, value)
    if not errors(contract.model, value):
        validator(contract.name).validate(value)


def test_only_the_first_of_thousands_of_unknown_keys_get_a_hint() -> None:
    """A tenant writes them, and each hint takes time."""
    asked = {"Worker": {"maxReplicas": 1, **{f"minReplica{number}": 1 for number in range(100)}}}
    hinted = ["did you mean" in each.message for each in warnings(Autoscaling, asked)]
    assert hinted == [True] * HINTS + [False] * (100 - HINTS)
