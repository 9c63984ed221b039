"""Every reader of what a tenant stores or answers: whatever it is given, it answers or raises what it says it raises.

The fast half of `make hostile`: the same texts, no server. A reader that does the work before it checks the size does not
fail here but does not end, and the suite's time-out ends it; a message that repeats its text whole fails.
"""

import base64
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import msgspec
import pytest
from dynamo_image_builder import builds, outcome
from dynamo_model_discovery.lora import responses
from dynamo_model_discovery.lora.adapter import record_of
from dynamo_model_discovery.workers import metadata as worker_metadata
from dynamo_model_discovery.workers import records as worker_records
from dynamo_planner.core.profile import ProfileError
from dynamo_planner.core.profile_arrays import from_json
from dynamo_planner.core.warmup import WarmupError, intervals
from dynamo_planner.inputs.prometheus import client as prometheus
from dynamo_planner.planning.plans import NotPlannable, read_plan
from dynamo_pod_builder.render.access import pull_secrets
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.legacy import deployment_config as legacy_config
from dynamo_pod_builder.status import checkpoint
from dynamo_profiler.requests import dcgm
from dynamo_scaler.autoscaling.desired import InvalidAutoscalingError, desired_autoscaling
from dynamo_scaler.budgets import intents
from dynamo_scaler.commands import records
from dynamo_scaler.safety.policy import InvalidPolicyError, limits_of
from dynamo_shared.api import durations, namespace_scope, quantity, runtime_version, semver
from dynamo_shared.api.conversion import NotConvertible, convert
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.manifest import load_manifests
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as names
from dynamo_shared.api.registry import env
from dynamo_shared.api.request_parts import parts_of
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.runtime.settings.scaler import ScalingLimits
from dynamo_shared.state import messages
from dynamo_shared.wire import cloudevents
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tests.examples import examples
from tests.hostile import texts
from tests.hostile.objects import component, config_map, disaggregated, graph, lease

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALPHA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").api_version
BETA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1beta1").api_version
#: A condition's message has 32 KiB at most, an Event's a kilobyte; what is wrong fits into far less.
LONGEST_MESSAGE = 4000


def _annotated(annotation: str, text: str) -> KubeObject:
    result = graph("tenant", "graph", component("Worker"), annotations={annotation: text})
    result["metadata"] |= {"uid": "u", "generation": 1}
    return result


def _other(kind: str, annotation: str, text: str) -> KubeObject:
    metadata = {"name": "it", "namespace": "tenant", "annotations": {annotation: text}}
    return {"apiVersion": BETA, "kind": kind, "metadata": metadata, "spec": {"name": "it"}}


def _planned(text: str, trace: str = "", profile: str = "") -> Any:
    result = disaggregated("tenant", "graph", annotations={names.PLANNER_CONFIG: "config"})
    result["metadata"] |= {"uid": "u", "generation": 1}
    data = {"planner_config.yaml": text, "trace.jsonl": trace}
    profile_map = config_map("tenant", "profile", {"prefill_raw_data.json": profile}) if profile else None
    return read_plan(result, config_map("tenant", "config", data), profile_map)


def _pull_secret(content: str) -> Any:
    data = base64.b64encode(content.encode("utf-8", "replace")).decode()
    type_ = "kubernetes.io/dockerconfigjson"
    return pull_secrets.index(
        [{"type": type_, "metadata": {"name": "s"}, "data": {".dockerconfigjson": each}} for each in (data, content)]
    )


def _legacy(text: str) -> Any:
    part = component("Worker")
    part["podTemplate"]["spec"]["containers"][0]["env"] = [{"name": env.DYN_DEPLOYMENT_CONFIG, "value": text}]
    place = legacy_config.ConfiguredComponent("tenant-graph", "http://graph-main.tenant.svc:8000")
    return legacy_config.apply_legacy_config(graph("tenant", "graph", part)["spec"], place)


def _worker_metadata(text: str) -> Any:
    return worker_metadata.read({"metadata": {"name": "w"}, "spec": {"data": text}})


def _leased(text: str) -> Any:
    result = lease("tenant", renewTime=text)
    result["metadata"]["creationTimestamp"] = text
    return namespace_scope.is_live(result, NOW), checkpoint.is_held(result, NOW)


def _build(text: str) -> Any:
    """A build whose pod, which runs a tenant's Dockerfile, says this in every place."""
    end = {"exitCode": 1, "reason": text, "message": text}
    entries = [{"name": name, "state": {"terminated": end}} for name in ("fetch", "build")]
    waits = [{"name": "build", "state": {"waiting": {"reason": text, "message": text}}}]
    pods: list[Any] = [{"status": {"reason": text, "containerStatuses": each}} for each in (entries, waits)]
    ended: list[Any] = [[], [{"type": "Failed", "status": "True", "reason": text, "lastTransitionTime": text}]]
    jobs = [{"metadata": {"name": "j", "creationTimestamp": text}, "status": {"conditions": each}} for each in ended]
    complete = {"metadata": {"name": "j"}, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
    said = {
        "status": {"containerStatuses": [{"name": "build", "state": {"terminated": {"message": f"digest={text}"}}}]}
    }
    return [outcome.observe(job, pods, NOW) for job in jobs], outcome.observe(complete, [said], NOW)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _state(text: str) -> Any:
    version = messages.version_in({"uid": text, "resourceVersion": text, "created": text})
    return version, messages.decode_object(_bytes(text)), messages.decode_marker(_bytes(text))


@dataclass(frozen=True)
class Reader:
    """A reader, by what it is given, and what it says it raises."""

    read: Callable[[str], Any]
    raises: tuple[type[Exception], ...] = ()


READERS: dict[str, Reader] = {
    "manifest": Reader(load_manifests, (InvalidManifest,)),
    "PlannerConfig": Reader(_planned, (NotPlannable,)),
    "warm-up trace": Reader(
        lambda text: _planned("load_predictor_warmup_trace: trace.jsonl\n", trace=text), (NotPlannable,)
    ),
    "warm-up lines": Reader(lambda text: intervals(text.splitlines(), 60.0), (WarmupError,)),
    "profile": Reader(lambda text: from_json(text, "profile"), (ProfileError,)),
    "autoscaling": Reader(
        lambda text: desired_autoscaling(_annotated(names.AUTOSCALING, text), "Worker"), (InvalidAutoscalingError,)
    ),
    "scaling policy": Reader(
        lambda text: limits_of(_annotated(names.SCALING_POLICY, text), "Worker", ScalingLimits()), (InvalidPolicyError,)
    ),
    "scaling intents": Reader(lambda text: intents.read(_annotated(names.SCALING_INTENTS, text))),
    "last scaled": Reader(lambda text: records.read(_annotated(names.LAST_SCALED, text))),
    "origin version": Reader(semver.parse),
    "version of a runtime": Reader(
        lambda text: (runtime_version.runtime_version(text), runtime_version.runtime_version("", text))
    ),
    "fields that the operator kept": Reader(
        lambda text: convert(_annotated(names.OPERATOR_GRAPH_SPEC, text), ALPHA), (NotConvertible,)
    ),
    "fields that the operator kept of a component": Reader(
        lambda text: convert(_other("DynamoComponentDeployment", names.OPERATOR_COMPONENT_SPEC, text), ALPHA)
    ),
    "fields that the operator kept of a request": Reader(
        lambda text: parts_of(_other("DynamoGraphDeploymentRequest", names.OPERATOR_REQUEST_SPEC, text))
    ),
    "preserved fields": Reader(
        lambda text: convert(_annotated(names.PRESERVED_FIELDS, text), ALPHA), (NotConvertible,)
    ),
    "packed fields": Reader(
        lambda text: convert(_annotated(names.PRESERVED_FIELDS, f"zlib:{text}"), ALPHA), (NotConvertible,)
    ),
    "loaded adapter": Reader(lambda text: record_of(_annotated(names.LOADED_ADAPTER, text))),
    "legacy configuration": Reader(_legacy, (RenderError,)),
    "pull secret": Reader(_pull_secret),
    "registry": Reader(lambda text: (pull_secrets.host_of(text), pull_secrets.host_of_key(text))),
    "tag of an archive": Reader(builds.parse_tag, (builds.InvalidTag,)),
    "pod of a build": Reader(_build),
    "worker record": Reader(_worker_metadata),
    "etcd record": Reader(
        lambda text: worker_records.parse(f"v1/instances/{text[:1000]}", _bytes(text)),
        (worker_records.UnreadableError,),
    ),
    "listing of adapters": Reader(lambda text: responses.names_in(_bytes(text))),
    "cards of a worker": Reader(lambda text: responses.is_published("a", _bytes(text))),
    "complaint of a worker": Reader(
        lambda text: (responses.complaint(_bytes(text)), responses.is_refusal(_bytes(text)))
    ),
    "Prometheus": Reader(
        lambda text: prometheus._series(_bytes(text), "vector", "http://prometheus"), (prometheus.PrometheusError,)
    ),
    "DCGM": Reader(lambda text: dcgm.parse(text, "node")),
    "quantity": Reader(quantity.parse, (ValueError,)),
    "duration": Reader(durations.seconds, (ValueError,)),
    "lease": Reader(_leased),
    "STATE": Reader(_state, (msgspec.DecodeError, ValueError)),
    "CloudEvent": Reader(lambda text: cloudevents.decode(_bytes(text)), (msgspec.DecodeError, ValueError)),
}


@cache
def _texts() -> dict[str, str]:
    """By name; half a gibibyte is packed for one of them."""
    return {
        **dict(texts.yaml_texts()),
        "bomb-as-mode": texts.alias_bomb_at("mode"),
        "bomb-as-component": texts.alias_bomb_at("Worker"),
        "json-deep-object": texts.nested(60_000, '{"a":', "}"),
        "json-digits": '{"a": ' + "9" * 100_000 + "}",
        "json-exponent": '{"timestamp": 1e400, "input_length": 1e308, "output_length": 1e308}',
        "json-long-integer": '{"timestamp": 1' + "0" * 400 + ', "input_length": 1, "output_length": 1}',
        "json-constants": '{"timestamp": NaN, "input_length": Infinity, "output_length": -Infinity}',
        "json-surrogates": '{"\\ud800": "\\udfff", "loras": ["\\ud800"]}',
        "json-nul": '{"loras": {"\\u0000": 1}}',
        "packed-bomb": texts.packed_bomb(),
        "packed-short": "zlib:",
        "metrics-labels": "DCGM_FI_DEV_GPU_TEMP{" + ",".join(f'a{n}="b"' for n in range(20_000)) + "} 1\n",
        "metrics-open": 'DCGM_FI_DEV_GPU_TEMP{gpu="' + "\\" * 60_001 + "\n",
        **{f"date-{number}": text for number, text in enumerate(texts.DATES)},
        **{f"duration-{number}": text for number, text in enumerate(texts.DURATIONS)},
        **{f"quantity-{number}": text for number, text in enumerate(texts.QUANTITIES)},
        **{f"name-{number}": text for number, text in enumerate(texts.NAMES)},
    }


def _read(reader: Reader, text: str) -> None:
    said = ""
    try:
        reader.read(text)
    except reader.raises as error:
        said = str(error)
    assert len(said) <= LONGEST_MESSAGE, "the message repeats what it was given"


@pytest.mark.parametrize("name", READERS)
def test_expensive_texts_are_read_quickly(name: str) -> None:
    failed: dict[str, str] = {}
    for what, text in _texts().items():
        try:
            _read(READERS[name], text)
        except Exception as error:
            failed[what] = f"{type(error).__name__}: {str(error)[:100]}"
    assert not failed


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=10), inner, max_size=5),
    max_leaves=15,
)
_KEYS = st.sampled_from(
    re.findall(
        r"\w+",
        "timestamp input_length output_length mode ttft loras data status message replicas current at command auths "
        "endpoints model_cards namespace component instance_id prefill_isl prefill_ttft z_itl version for fields "
        "components order Worker min max up down cooldown Common ServiceArgs workers specversion id source type",
    )
)
_DOCUMENTS = st.dictionaries(_KEYS, _JSON | st.dictionaries(_KEYS, _JSON, max_size=4), max_size=6)


@pytest.mark.parametrize("name", READERS)
@examples(10, suppress_health_check=list(HealthCheck))
@given(value=_DOCUMENTS | _JSON)
def test_documents_of_known_keys_and_any_values_are_read(name: str, value: Any) -> None:
    _read(READERS[name], json.dumps(value))


@pytest.mark.parametrize("name", READERS)
@examples(10, suppress_health_check=list(HealthCheck))
@given(text=st.text(max_size=200))
def test_any_text_is_read(name: str, text: str) -> None:
    _read(READERS[name], text)
