"""The pod of a component: the defaults, and what the user's template changes."""

import re
from dataclasses import replace
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_pod_builder.legacy_types import missing_from, missing_from_cliques
from dynamo_pod_builder.render.pod.probes import FRONTEND

from tests.building.tables import rows

from .building import (
    CONFIG,
    component,
    component_children,
    component_deployments,
    graph,
    graph_children,
    main,
    of_kind,
    pod,
    variables,
)

ADDRESSES = render.RenderConfig(
    infrastructure=(
        ("NATS_SERVER", "nats://n:4222"),
        ("ETCD_ENDPOINTS", "e:2379"),
        ("MODEL_EXPRESS_URL", "http://m"),
        ("PROMETHEUS_ENDPOINT", "http://p"),
    )
)
ETCD = render.RenderConfig(discovery_backend="etcd")


STRICT = "DYN_NAMESPACE_PREFIX_STRICT"


@pytest.mark.parametrize(("version", "strict"), [(None, None), ("1.5.9", None), ("1.6.0", "true")])
def test_a_frontend_serves_only_its_own_graph_if_its_runtime_can(version: str | None, strict: str | None) -> None:
    stated = {"runtimeVersionOverride": version} if version else {}
    assert variables(main(component("Frontend", "frontend", **stated))).get(STRICT) == strict
    sidecars = [{"name": "front", "image": "frontend:1"}]
    _, sidecar = pod(component(sidecars=sidecars, frontendSidecar="front", **stated))["containers"]
    assert variables(sidecar).get(STRICT) == strict


@pytest.mark.parametrize(("version", "there"), [(None, False), ("1.5.9", False), ("1.6.0", True)])
def test_a_frontend_gets_a_connection_time_out_if_its_runtime_has_one(version: str | None, there: bool) -> None:
    stated = {"runtimeVersionOverride": version} if version else {}
    sidecars = [{"name": "front", "image": "frontend:1"}]
    _, sidecar = pod(component(sidecars=sidecars, frontendSidecar="front", **stated))["containers"]
    for each in (main(component("Frontend", "frontend", **stated)), sidecar):
        assert ("startupProbe" in each) is there
    own = {"startupProbe": {"tcpSocket": {"port": 1}}}
    assert main(component("Frontend", "frontend", main=own, **stated))["startupProbe"] == own["startupProbe"]


def test_users_variables_win_over_addresses_and_defaults() -> None:
    env = [
        {"name": "NATS_SERVER", "value": "mine"},
        {"name": "DYN_SYSTEM_PORT", "value": "1"},
        {"name": "A", "value": ""},
    ]
    result = variables(main(component(main={"env": env}), ADDRESSES))
    assert result["NATS_SERVER"] == "mine"
    assert result["DYN_SYSTEM_PORT"] == "1"
    assert result["ETCD_ENDPOINTS"] == "e:2379"
    assert result["MODEL_EXPRESS_URL"] == "http://m"
    assert result["A"] is None
    assert list(result) == sorted(result)


def test_unset_addresses_are_not_rendered() -> None:
    assert (
        not {"NATS_SERVER", "ETCD_ENDPOINTS", "MODEL_EXPRESS_URL", "PROMETHEUS_ENDPOINT"}
        & variables(main(component())).keys()
    )


def test_variables_of_the_graph_reach_main_and_lose_against_its_own() -> None:
    graph_env = [{"name": "A", "value": "graph"}, {"name": "B", "value": "graph"}]
    result = variables(main(component(main={"env": [{"name": "A", "value": "own"}]}), env=graph_env))
    assert (result["A"], result["B"]) == ("own", "graph")


def test_a_main_container_is_created_for_variables_of_the_graph() -> None:
    bare = {"name": "Worker", "type": "worker"}
    with pytest.raises(render.RenderError, match=r"component Worker: .*containers\[main\].image: is required"):
        main(bare, env=[{"name": "A", "value": "1"}])


@pytest.mark.parametrize("graph_env", [[], [{"name": "A", "value": "1"}]], ids=["alone", "with variables of the graph"])
@pytest.mark.parametrize("own", [[], [{"name": "main"}]], ids=["no main", "main without an image"])
def test_a_container_of_another_name_is_not_the_main_container(own: list[Any], graph_env: list[Any]) -> None:
    pod_template = {"spec": {"containers": [*own, {"name": "engine", "image": "i"}]}}
    engine = {"name": "Worker", "type": "worker", "podTemplate": pod_template}
    with pytest.raises(render.RenderError, match=r"in a container named main; the other containers are engine$"):
        main(engine, env=graph_env)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (["/bin/sh", "-c"], None)),
        ({"args": ["run"]}, (["/bin/sh", "-c"], ["run"])),
        ({"command": ["python3"], "args": []}, (["python3"], None)),
    ],
)
def test_command_and_args_of_a_worker(given: dict[str, Any], expected: tuple[Any, Any]) -> None:
    container = main(component(main=given))
    assert (container["command"], container.get("args") or None) == expected


@pytest.mark.parametrize(
    ("type_", "ports"),
    [
        ("frontend", ["http"]),
        ("worker", ["system", "nixl"]),
        ("prefill", ["system", "nixl"]),
        ("decode", ["system", "nixl"]),
        ("planner", ["metrics", "system"]),
        (None, []),
    ],
)
def test_ports_by_type(type_: str | None, ports: list[str]) -> None:
    assert [port["name"] for port in main(component("c", type_)).get("ports", [])] == ports


@pytest.mark.parametrize(
    ("size", "limit"),
    [(None, "8Gi"), ("2Gi", "2Gi"), ("0", None), (0, None), ("0Gi", None), (1073741824, "1073741824")],
)
def test_shared_memory(size: Any, limit: str | None) -> None:
    fields = {} if size is None else {"sharedMemorySize": size}
    spec = pod(component(**fields))
    if limit is None:
        assert "volumes" not in spec
        assert not spec["containers"][0].get("volumeMounts")
    else:
        assert spec["volumes"] == [{"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": limit}}]
        assert spec["containers"][0]["volumeMounts"] == [{"name": "shared-memory", "mountPath": "/dev/shm"}]


def test_shared_memory_replaces_the_users() -> None:
    mounts = [
        {"name": "own", "mountPath": "/dev/shm"},
        {"name": "shared-memory", "mountPath": "/x"},
        {"name": "d", "mountPath": "/d"},
    ]
    spec = pod(
        component(
            main={"volumeMounts": mounts},
            pod={"volumes": [{"name": "shared-memory", "emptyDir": {}}, {"name": "d", "emptyDir": {}}]},
        )
    )
    assert [mount["mountPath"] for mount in spec["containers"][0]["volumeMounts"]] == ["/d", "/dev/shm"]
    assert [volume["name"] for volume in spec["volumes"]] == ["d", "shared-memory"]
    assert spec["volumes"][1]["emptyDir"]["medium"] == "Memory"


def test_mounts_without_a_volume_are_claims_and_volumes_have_the_order_of_mounts() -> None:
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("models", "config", "data")]
    given = [{"name": "unused", "emptyDir": {}}, {"name": "config", "configMap": {"name": "c"}}]
    spec = pod(
        component(main={"volumeMounts": [*mounts, {"name": "config", "mountPath": "/again"}]}, pod={"volumes": given})
    )
    assert [volume["name"] for volume in spec["volumes"]] == ["models", "config", "data", "shared-memory", "unused"]
    assert spec["volumes"][0] == {"name": "models", "persistentVolumeClaim": {"claimName": "models"}}


@pytest.mark.parametrize(
    ("pod_fields", "expected"),
    [({}, {"fsGroup": 1000}), ({"securityContext": {}}, {}), ({"securityContext": {"runAsUser": 1}}, {"runAsUser": 1})],
)
def test_security_context(pod_fields: dict[str, Any], expected: dict[str, Any]) -> None:
    assert pod(component(pod=pod_fields))["securityContext"] == expected


def test_pod_fields_of_the_user_win() -> None:
    spec = pod(component(pod={"terminationGracePeriodSeconds": 600, "nodeSelector": {"a": "b"}, "hostNetwork": False}))
    assert spec["terminationGracePeriodSeconds"] == 600
    assert spec["nodeSelector"] == {"a": "b"}
    # What Go leaves out counts as not given.
    assert "hostNetwork" not in spec
    assert spec["restartPolicy"] == "Always"


@pytest.mark.parametrize(
    ("config", "type_", "pod_fields", "account"),
    [
        (CONFIG, "worker", {}, "graph-k8s-service-discovery"),
        (CONFIG, "worker", {"serviceAccountName": "own"}, "own"),
        (CONFIG, "planner", {}, "planner-serviceaccount"),
        (CONFIG, "planner", {"serviceAccountName": "own"}, "planner-serviceaccount"),
        (ETCD, "worker", {}, "default"),
    ],
)
def test_service_account(config: render.RenderConfig, type_: str, pod_fields: dict[str, Any], account: str) -> None:
    assert pod(component("c", type_, pod=pod_fields), config)["serviceAccountName"] == account


VLLM = {"command": ["python3", "-m", "dynamo.vllm"]}
SGLANG = {"command": ["python3", "-m", "dynamo.sglang"]}


def test_compilation_cache_of_vllm() -> None:
    spec = pod(component(main=VLLM, compilationCache={"pvcName": "cache"}))
    container = spec["containers"][0]
    assert container["volumeMounts"][0] == {"name": "cache", "mountPath": "/root/.cache/vllm"}
    assert spec["volumes"][0] == {"name": "cache", "persistentVolumeClaim": {"claimName": "cache"}}
    assert container["env"][-1] == {"name": "VLLM_CACHE_ROOT", "value": "/root/.cache/vllm"}


def test_compilation_cache_that_the_user_mounts_too_is_mounted_once() -> None:
    own = {"name": "cache", "mountPath": "/c", "readOnly": False}
    env = [{"name": "VLLM_CACHE_ROOT", "value": "/mine"}]
    container = main(
        component(
            main={**VLLM, "volumeMounts": [own], "env": env}, compilationCache={"pvcName": "cache", "mountPath": "/c"}
        )
    )
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/c", "/dev/shm"]
    assert variables(container)["VLLM_CACHE_ROOT"] == "/mine"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (None, {"subPath": "1.5.0"}),
        ({"mountPropagation": "None"}, {"mountPropagation": "None", "subPath": "1.5.0"}),
        ({"subPath": "mine"}, {"subPath": "mine"}),
        ({"subPathExpr": "$(POD_NAME)"}, {"subPathExpr": "$(POD_NAME)"}),
    ],
)
def test_compilation_cache_in_a_directory_of_its_volume(own: dict[str, Any] | None, expected: dict[str, Any]) -> None:
    """A new version of the runtime starts with an empty cache (dynamo#14484)."""
    cache = {"name": "cache", "mountPath": "/c"}
    mounts = [] if own is None else [{**cache, **own}]
    spec = component(
        main={**VLLM, "volumeMounts": mounts},
        compilationCache={"pvcName": "cache", "mountPath": "/c", "subPath": "1.5.0"},
    )
    assert main(spec)["volumeMounts"][0] == {**cache, **expected}


def test_compilation_cache_of_another_engine_needs_a_path() -> None:
    with pytest.raises(render.RenderError, match=r"component Worker: compilationCache.mountPath: is required"):
        pod(component(main=SGLANG, compilationCache={"pvcName": "cache"}))
    container = main(component(main=SGLANG, compilationCache={"pvcName": "cache", "mountPath": "/c"}))
    assert "VLLM_CACHE_ROOT" not in variables(container)
    assert container["volumeMounts"][0]["mountPath"] == "/c"


def test_a_frontend_sidecar_is_a_frontend_with_the_volumes_of_main() -> None:
    spec = pod(
        component(
            frontendSidecar="front",
            main={"volumeMounts": [{"name": "models", "mountPath": "/models"}, {"name": "own", "mountPath": "/own"}]},
            sidecars=[
                {"name": "first", "image": "i"},
                {"name": "front", "image": "i", "volumeMounts": [{"name": "own", "mountPath": "/elsewhere"}]},
            ],
        ),
        env=[{"name": "OF_THE_GRAPH", "value": "1"}],
    )
    assert [each["name"] for each in spec["containers"]] == ["main", "first", "front"]
    front = spec["containers"][2]
    assert front["command"] == ["python3"]
    assert front["ports"] == [{"name": "http", "containerPort": 8000, "protocol": "TCP"}]
    assert [mount["mountPath"] for mount in front["volumeMounts"]] == ["/elsewhere", "/models"]
    result = variables(front)
    assert result["DYN_COMPONENT"] == "frontend"
    assert result["OF_THE_GRAPH"] == "1"
    # As recorded: only workers distinguish generations.
    assert "DYN_NAMESPACE_WORKER_SUFFIX" not in result
    assert spec["containers"][1] == {"name": "first", "image": "i", "resources": {}}


def test_a_frontend_sidecar_keeps_its_own_volume_at_a_path_of_main() -> None:
    """The API server refuses two volumes at one path."""
    spec = pod(
        component(
            frontendSidecar="front",
            main={"volumeMounts": [{"name": "models", "mountPath": "/models"}, {"name": "more", "mountPath": "/more"}]},
            sidecars=[{"name": "front", "image": "i", "volumeMounts": [{"name": "own", "mountPath": "/models"}]}],
        )
    )
    mounted = [(each["name"], each["mountPath"]) for each in spec["containers"][1]["volumeMounts"]]
    assert mounted == [("own", "/models"), ("more", "/more")]


ASKED = {"httpGet": {"path": "/mine", "port": 9}}
READY = "front.readinessProbe"


@rows(
    "own, lacking, expected",
    {
        "the same kind": (ASKED, set(), {**FRONTEND["readinessProbe"], **ASKED}),
        "its own delay": (
            {**ASKED, "initialDelaySeconds": 1, "successThreshold": 2},
            set(),
            {**FRONTEND["readinessProbe"], **ASKED, "initialDelaySeconds": 1, "successThreshold": 2},
        ),
        "a part of the question": (
            {"httpGet": {"path": "/x"}},
            set(),
            {**FRONTEND["readinessProbe"], "httpGet": {"path": "/x", "port": "http"}},
        ),
        "another kind": ({"exec": {"command": ["x"]}}, set(), {"exec": {"command": ["x"]}}),
        "pods of an earlier release have it so": (ASKED, {READY}, ASKED),
        "another container has it so": (ASKED, {"a.readinessProbe"}, {**FRONTEND["readinessProbe"], **ASKED}),
    },
)
def test_a_probe_of_a_frontend_sidecar_is_completed(own, lacking, expected) -> None:
    front = {"name": "front", "image": "i", "readinessProbe": own}
    (dcd,) = component_deployments(graph(component(frontendSidecar="front", sidecars=[front]))).values()
    (made,) = of_kind(component_children(dcd, lacking=frozenset(lacking)), "Deployment")
    probe = made["spec"]["template"]["spec"]["containers"][1]["readinessProbe"]
    assert probe == expected
    assert (READY in missing_from(dcd, made)) == ("initialDelaySeconds" not in probe)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"type_": "frontend"}, id="frontend"),
        pytest.param({"type_": "worker", "modelRef": {"name": "m"}}, id="worker of a model"),
        pytest.param({"type_": "prefill"}, id="prefill"),
        pytest.param(
            {"sidecars": [{"name": "logs", "image": "i", "readinessProbe": ASKED}]}, id="worker with a sidecar"
        ),
    ],
)
def test_pods_of_this_release_lack_nothing(fields) -> None:
    """Otherwise the component is rendered again as soon as it has a workload."""
    single = component(**fields)
    (dcd,) = component_deployments(graph(single)).values()
    (made,) = of_kind(component_children(dcd), "Deployment")
    assert missing_from(dcd, made) == frozenset()
    on_grove = graph(single)
    (clique_set,) = of_kind(graph_children(on_grove, replace(CONFIG, grove=True)), "PodCliqueSet")
    assert missing_from_cliques(on_grove, clique_set["spec"]["template"]["cliques"]) == {"Worker": frozenset()}


def test_discovery_by_container() -> None:
    parts = component(frontendSidecar="front", sidecars=[{"name": "front", "image": "i"}])
    containers = pod(parts, annotations={"nvidia.com/dynamo-kube-discovery-mode": "container"})["containers"]
    assert [each["name"] for each in containers] == ["main", "front"]
    for each in containers:
        result = variables(each)
        assert (result["CONTAINER_NAME"], result["DYN_KUBE_DISCOVERY_MODE"]) == (each["name"], "container")


@pytest.mark.parametrize(("backend", "value"), [("kubernetes", "kubernetes"), ("etcd", None), ("other", "kubernetes")])
def test_discovery_backend(backend: str, value: str | None) -> None:
    result = variables(main(component(), annotations={"nvidia.com/dynamo-discovery-backend": backend}))
    assert result.get("DYN_DISCOVERY_BACKEND") == value


def test_global_dynamo_namespace() -> None:
    assert variables(main(component(globalDynamoNamespace=True)))["DYN_NAMESPACE"] == "dynamo"
    assert variables(main(component(), name="a.b"))["DYN_NAMESPACE"] == "ns-a-b"


PROBE_PATH = r"component Worker: podTemplate.spec.containers\[main\]"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"frontendSidecar": "none"}, "component Worker: frontendSidecar: names 'none'"),
        ({"main": {"volumeMounts": [{"name": "a"}]}}, PROBE_PATH + r".volumeMounts\[0\].mountPath: is required"),
        ({"main": {"volumeMounts": [{"mountPath": "/a"}]}}, PROBE_PATH + r".volumeMounts\[0\].name: is required"),
        ({"main": {"image": ""}}, PROBE_PATH + ".image: is required"),
        (
            {
                "main": {**VLLM, "volumeMounts": [{"name": "x", "mountPath": "/c"}]},
                "compilationCache": {"pvcName": "p", "mountPath": "/c"},
            },
            "compilationCache.mountPath: volume x is already mounted at /c",
        ),
    ],
)
def test_refusals_name_component_and_field(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(render.RenderError, match=rf"^(?=component Worker: ).*{message}"):
        pod(component(**fields))


def test_a_probe_without_a_handler_needs_a_default() -> None:
    assert (
        main(component(main={"startupProbe": {"initialDelaySeconds": 180}}))["startupProbe"]["httpGet"]["path"]
        == "/live"
    )
    with pytest.raises(render.RenderError, match=r"containers\[main\].startupProbe: has no handler"):
        main(component("c", None, main={"startupProbe": {"initialDelaySeconds": 180}}))


def test_a_null_probe_is_left_out() -> None:
    # Through the type, as the pod-builder reads it: it removes other nulls, but not this one.
    result = main(component("worker", main={"livenessProbe": None, "lifecycle": None}))
    assert "livenessProbe" not in result
    assert "lifecycle" not in result
    assert {"readinessProbe", "startupProbe"} <= result.keys()


def test_a_null_probe_of_a_sidecar_is_left_out() -> None:
    spec = pod(component(sidecars=[{"name": "side", "image": "i", "livenessProbe": None}]))
    assert spec["containers"][1] == {"name": "side", "image": "i", "resources": {}}


def test_a_claim_whose_name_is_not_a_valid_volume_name() -> None:
    """Names of claims may have dots and 253 characters; names of volumes may not."""
    long = f"{'a' * 60}.{'b' * 60}"
    mounts = [{"name": "qwen2.5", "mountPath": "/m"}, {"name": "plain", "mountPath": "/p"}]
    sidecar = {"name": "log", "image": "l", "volumeMounts": [{"name": "qwen2.5", "mountPath": "/l"}]}
    first = {"name": "pull", "image": "p", "volumeMounts": [{"name": "qwen2.5", "mountPath": "/w"}]}
    given_ = component(
        main={"volumeMounts": mounts},
        sidecars=[sidecar],
        pod={"initContainers": [first]},
        compilationCache={"pvcName": long, "mountPath": "/c"},
    )
    spec = pod(given_)
    claims = {each["name"]: (each.get("persistentVolumeClaim") or {}).get("claimName") for each in spec["volumes"]}
    model, plain, cache, memory = claims
    assert [claims[name] for name in (model, plain, cache, memory)] == ["qwen2.5", "plain", long, None]
    assert re.fullmatch(r"qwen2-5-[0-9a-f]{8}", model)
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", name) for name in claims)
    for container in (*spec["containers"], *spec["initContainers"]):
        assert {each["name"] for each in container["volumeMounts"]} <= claims.keys()
    assert spec["containers"][1]["volumeMounts"] == [{"name": model, "mountPath": "/l"}]
    assert sidecar["volumeMounts"] == [{"name": "qwen2.5", "mountPath": "/l"}]


def test_other_containers_have_each_variable_once() -> None:
    """Kubernetes accepts duplicates and uses the last one. Server-side apply rejects them."""
    twice = [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "A", "value": "$(B)"}]
    sidecar, init = ({"name": name, "image": "x", "env": twice} for name in ("log", "get"))
    result = pod(component(sidecars=[sidecar], pod={"initContainers": [init]}))
    once = twice[1:]
    assert result["containers"][1]["env"] == once
    assert result["initContainers"][0]["env"] == once


@pytest.mark.parametrize(
    ("image", "override", "later"),
    [
        ("engine:1.4.2", None, False),
        ("engine:nightly", None, False),
        ("engine:1.5.0", None, False),
        ("engine:nightly", "1.5.1", True),
        ("engine:1.5.0", "1.4.2", False),
    ],
)
@pytest.mark.parametrize("type_", ["worker", "prefill", "decode"])
def test_workers_of_a_later_runtime_get_a_canary_request_and_three_probes(
    type_: str, image: str, override: str | None, *, later: bool
) -> None:
    stated = {} if override is None else {"runtimeVersionOverride": override}
    container = main(component("Worker", type_, main={"image": image}, **stated))
    assert variables(container)["DYN_HEALTH_CHECK_ENABLED"] == ("true" if later else "false")
    assert container["livenessProbe"]["failureThreshold"] == (3 if later else 1)
    assert container["image"] == image


def test_a_template_has_precedence_over_the_version_of_the_runtime() -> None:
    own = {"env": [{"name": "DYN_HEALTH_CHECK_ENABLED", "value": "false"}], "livenessProbe": {"failureThreshold": 2}}
    container = main(component("Worker", main={"image": "engine:1.5.0", **own}, runtimeVersionOverride="1.5.0"))
    assert variables(container)["DYN_HEALTH_CHECK_ENABLED"] == "false"
    assert container["livenessProbe"]["failureThreshold"] == 2
