"""Component deployments and requests that the Go operator stored, with the fields preserved in its annotations."""

import json
from typing import Any

import pytest
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.legacy_fields import legacy_component
from dynamo_shared.api.request_parts import parts_of
from dynamo_shared.api.v1beta1 import parse_component
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.api.validation.junk import JUNK

ALPHA, BETA = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
COMPONENT, REQUEST = "DynamoComponentDeployment", "DynamoGraphDeploymentRequest"
KEPT = {COMPONENT: "nvidia.com/dcd-spec", REQUEST: "nvidia.com/dgdr-spec"}
Object = dict[str, Any]


def stored(kind: str, version: str, spec: Object, kept: Any, **envelope: Any) -> Object:
    text = json.dumps({"version": 1, "spec": kept, **envelope})
    metadata = {"name": "worker-0", "namespace": "n", "annotations": {KEPT[kind]: text, "team": "a"}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def there_and_back(obj: Object, version: str) -> Object:
    """The spec in a version. The annotation is not in it, and nothing is lost on two round trips."""
    made = convert(obj, version)
    assert KEPT[obj["kind"]] not in made["metadata"]["annotations"]
    assert convert(convert(made, obj["apiVersion"]), version) == made
    spec: Object = made["spec"]
    return spec


def test_a_v1beta1_component_gets_back_the_fields_missing_in_v1alpha1() -> None:
    volume_mounts = [{"name": "models", "mountPoint": "/models", "useAsCompilationCache": False}]
    extra_pod_spec = {"containers": [{"name": "front", "image": "f:1"}], "mainContainer": {"image": "w:1"}}
    service = {"serviceName": "worker", "volumeMounts": volume_mounts, "extraPodSpec": extra_pod_spec}
    mount = {"name": "models", "mountPath": "/models", "subPath": "llama"}
    pod = {"containers": [{"name": "main", "resources": {}, "volumeMounts": [mount]}]}
    kept = {"name": "worker", "frontendSidecar": "front", "podTemplate": {"metadata": {}, "spec": pod}}
    main = {"name": "main", "image": "w:1", "volumeMounts": [mount]}
    assert there_and_back(stored(COMPONENT, ALPHA, service, kept), BETA) == {
        "name": "worker",
        "frontendSidecar": "front",
        "podTemplate": {"spec": {"containers": [main, {"name": "front", "image": "f:1"}]}},
    }


OF_ALPHA: Object = {
    "annotations": {"team": "alpha"},
    "labels": {"tier": "gpu"},
    "dynamoNamespace": "theirs",
    "ingress": {"enabled": True, "host": "chat"},
    "autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 5},
}


def test_a_v1alpha1_component_gets_back_the_fields_missing_in_v1beta1() -> None:
    obj = stored(COMPONENT, BETA, {"name": "worker", "type": "worker", "replicas": 2}, OF_ALPHA)
    assert there_and_back(obj, ALPHA) == {"serviceName": "worker", "componentType": "worker", "replicas": 2, **OF_ALPHA}


def test_the_platform_uses_preserved_fields_of_a_stored_component() -> None:
    legacy = legacy_component(
        parse_component(stored(COMPONENT, BETA, {"name": "worker", "type": "frontend"}, OF_ALPHA))
    )
    assert (legacy.ingress, legacy.labels) == (OF_ALPHA["ingress"], OF_ALPHA["labels"])


def test_a_component_without_a_service_name_has_none_after_a_round_trip() -> None:
    records = [{"path": "serviceName", "nil": True}]
    unnamed = stored(COMPONENT, BETA, {"name": "worker-0"}, {}, rawJSON=records)
    assert there_and_back(unnamed, ALPHA) == {}
    renamed = stored(COMPONENT, BETA, {"name": "decode"}, {}, rawJSON=records)
    assert there_and_back(renamed, ALPHA) == {"serviceName": "decode"}


REQUEST_OF_ALPHA: Object = {
    "model": "",
    "backend": "",
    "profilingConfig": {
        "config": {"extra_key": "kept", "sla": {"ttft": "old"}, "sweep": {"prefillInterpolationGranularity": 4}},
        "configMapRef": {"name": "base", "key": "graph.yaml"},
        "profilerImage": "",
        "outputPVC": "files",
    },
    "enableGpuDiscovery": False,
    "deploymentOverrides": {"name": "mine", "labels": {"team": "ml"}},
}


def request_of_alpha() -> Object:
    """Like operator 1.5 stores it; 1.2 to 1.4 have the same, plus annotations of single fields."""
    spec = {"model": "m", "backend": "auto", "autoApply": False, "searchStrategy": "rapid", "sla": {"ttft": 200}}
    return stored(REQUEST, BETA, spec, REQUEST_OF_ALPHA)


def test_a_v1alpha1_request_gets_back_the_fields_missing_in_v1beta1() -> None:
    spec = there_and_back(request_of_alpha(), ALPHA)
    assert spec["enableGpuDiscovery"] is False
    assert spec["deploymentOverrides"] == REQUEST_OF_ALPHA["deploymentOverrides"]
    assert spec["profilingConfig"] == {
        "profilerImage": "",
        "config": {"extra_key": "kept", "sla": {"ttft": 200}, "sweep": {"prefillInterpolationGranularity": 4}},
        "configMapRef": {"name": "base", "key": "graph.yaml"},
        "outputPVC": "files",
    }
    assert (spec["model"], spec["backend"]) == ("m", "auto")


def test_the_platform_uses_preserved_fields_of_a_stored_request() -> None:
    parts = parts_of(request_of_alpha())
    assert (parts.base_graph, parts.output_claim) == (("base", "graph.yaml"), "files")
    assert parts.discovers_gpus is False
    assert parts.metadata == {"name": "mine", "labels": {"team": "ml"}}
    assert parts.profiler_arguments == ("--prefill-interpolation-granularity", "4")


def test_a_v1beta1_request_gets_back_the_fields_missing_in_v1alpha1() -> None:
    sla = {"ttft": 200, "isl": 3000, "osl": 150}
    profiling = {"profilerImage": "p:1", "config": {"sla": sla}, "resources": {"requests": {"cpu": "2"}}}
    side, profiler = {"name": "side", "image": "s:1"}, {"name": "profiler", "env": [{"name": "A", "value": "b"}]}

    def job(*containers: Object) -> Object:
        pod = {"serviceAccountName": "mine", "containers": list(containers)}
        return {"backoffLimit": 1, "template": {"metadata": {"creationTimestamp": None}, "spec": pod}}

    stored_job = job({**side, "resources": {}}, {**profiler, "resources": {}})
    kept = {
        "model": "",
        "hardware": {"gpuSku": "h100_sxm", "totalGpus": 8},
        "workload": {"concurrency": 8},
        "sla": {"e2eLatency": 900},
        "overrides": {"dgd": {"metadata": {"name": "mine"}}, "profilingJob": stored_job},
        "searchStrategy": "thorough",
    }
    spec = there_and_back(stored(REQUEST, ALPHA, {"model": "m", "profilingConfig": profiling}, kept), BETA)
    assert spec["hardware"] == kept["hardware"]
    assert spec["workload"] == {"isl": 3000, "osl": 150, "concurrency": 8}
    assert spec["sla"] == {"ttft": 200, "e2eLatency": 900}
    assert spec["searchStrategy"] == "thorough"
    assert spec["overrides"]["dgd"] == {"metadata": {"name": "mine"}}
    assert spec["overrides"]["profilingJob"] == job({**profiler, "resources": {"requests": {"cpu": "2"}}}, side)


@pytest.mark.parametrize(
    ("kind", "version", "kept"),
    [
        (COMPONENT, BETA, {"name": "worker", "podTemplate": {}}),
        (COMPONENT, ALPHA, OF_ALPHA),
        (REQUEST, BETA, {"hardware": {"totalGpus": 8}}),
        (REQUEST, ALPHA, REQUEST_OF_ALPHA),
        (REQUEST, ALPHA, {}),
        (REQUEST, ALPHA, []),
        (COMPONENT, ALPHA, None),
    ],
    ids=repr,
)
def test_fields_preserved_for_another_version_are_left_alone(kind: str, version: str, kept: Any) -> None:
    obj = stored(kind, version, {"serviceName": "a"} if version == ALPHA else {"name": "a"}, kept)
    bare = {**obj, "metadata": {"name": "worker-0"}}
    target = BETA if version == ALPHA else ALPHA
    made = convert(obj, target)
    assert made["spec"] == convert(bare, target)["spec"]
    assert made["metadata"]["annotations"].items() >= obj["metadata"]["annotations"].items()


_FIELDS = [
    *("name", "podTemplate", "frontendSidecar", "ingress", "failover", "extraPodSpec", "labels", "checkpoint"),
    *("profilingConfig", "enableGpuDiscovery", "deploymentOverrides", "hardware", "sla", "overrides", "searchStrategy"),
    *("config", "configMapRef", "profilingJob", "template", "spec", "containers", "tolerations", "features", "dgd"),
]
_NESTED = st.recursive(
    JUNK,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_FIELDS), inner, min_size=1, max_size=4)
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(st.sampled_from(_FIELDS), _NESTED, max_size=5),
    st.dictionaries(st.sampled_from(_FIELDS), _NESTED, max_size=3),
    _NESTED,
    st.sampled_from([COMPONENT, REQUEST]),
    st.sampled_from([ALPHA, BETA]),
)
def test_junk_in_the_annotation_does_not_break_conversion(
    kept: Any, live: Any, records: Any, kind: str, version: str
) -> None:
    """The annotation of stored objects is read: one failure would fail every list."""
    obj = stored(kind, version, live, kept, rawJSON=records)
    target = BETA if version == ALPHA else ALPHA
    made = convert(obj, target)
    assert made["apiVersion"] == target
    bare = {**obj, "metadata": {"name": "worker-0"}}
    assert convert(made, version)["spec"] == convert(convert(bare, target), version)["spec"]
    if kind == REQUEST and version == BETA:
        parts_of(obj)
