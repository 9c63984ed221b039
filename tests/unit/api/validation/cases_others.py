# ruff: noqa: E501 - messages stand here whole
"""Cases about requests, models and checkpoints, and about kinds without separate rules."""

from dataclasses import replace
from typing import Any

from dynamo_shared.api.resources import UNCHANGED_IN_V1BETA1

from .building import ALPHA, BETA, PLAIN, Case, manifest

BLIND = replace(PLAIN, cluster_wide=False, gpu_discovery=False)
PROFILING: dict[str, Any] = {"profilerImage": "x", "config": {}}


def _request(version: str, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    made = manifest("DynamoGraphDeploymentRequest", version, {"model": "m", **spec})
    return made if status is None else {**made, "status": status}


def _old_request(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return _request(ALPHA, status, **{"backend": "vllm", "profilingConfig": PROFILING, **spec})


def _model(**spec: Any) -> dict[str, Any]:
    return manifest("DynamoModel", ALPHA, {"modelName": "m", "baseModelName": "b", **spec})


def _checkpoint(**spec: Any) -> dict[str, Any]:
    made = {"identity": {"model": "m", "backendFramework": "vllm"}, "job": {"podTemplateSpec": {}}, **spec}
    return manifest("DynamoCheckpoint", ALPHA, made)


_OF_PROFILING = (
    "warning: spec.profilingConfig.profilerImage is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has image",
    "warning: spec.profilingConfig.config is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has sla, workload, modelCache and features.planner",
)

_ROUTER = {"name": "DYN_ROUTER_MODE", "value": "kv"}
_RANDOM = {**_ROUTER, "value": "random"}


def _frontend(**main: Any) -> dict[str, Any]:
    return _component("Frontend", **main)


def _worker(**main: Any) -> dict[str, Any]:
    return _component("decode", **main)


def _component(component: str, **main: Any) -> dict[str, Any]:
    containers = [{"name": "main", **main}]
    return {"components": [{"name": component, "podTemplate": {"spec": {"containers": containers}}}]}


_MAIN = "components[0].podTemplate.spec.containers[0]"
_OLD_FRONTEND = {"extraPodSpec": {"mainContainer": {"args": ["--router-mode", "random"]}}}
#: Where an override sets the router, to what, and the override.
_ROUTERS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (f"{_MAIN}.args[1]", "'random'", _frontend(args=["--x", "--router-mode", "random"])),
    (f"{_MAIN}.args[0]", "'direct'", _frontend(args=["--router-mode=direct"], env=[_ROUTER])),
    (f"{_MAIN}.env[0]", "'random'", {**_frontend(env=[_RANDOM]), "env": [_ROUTER]}),
    ("env[0]", "'random'", {"env": [_RANDOM], "components": []}),
    ("envs[0]", "'random'", {"envs": [_RANDOM]}),
    ("services.Frontend.envs[0]", "'random'", {"services": {"Frontend": {"envs": [_RANDOM]}}}),
    ("services.Frontend.extraPodSpec.mainContainer.args[0]", "'random'", {"services": {"Frontend": _OLD_FRONTEND}}),
)

_APPEND = {"$patch": {"args": "append"}}
_NO_ARGUMENTS = "required next to $patch: a list of strings, at least one of them not empty"


#: Wrong directives of overrides: why, the override, the place and the words.
_DIRECTIVES: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "that says nothing",
        {"spec": _worker(args=["--x"], **{"$patch": {}})},
        f'spec.{_MAIN}["$patch"]: an empty object is not allowed; only args: append is, which appends the args next to it to the generated ones',
    ),
    ("with an empty argument", {"spec": _worker(**_APPEND, args=[""])}, f"spec.{_MAIN}.args: {_NO_ARGUMENTS}"),
    ("with a number", {"spec": _worker(**_APPEND, args=["--x", 1])}, f"spec.{_MAIN}.args: {_NO_ARGUMENTS}"),
)

CASES = [
    *(
        Case(
            f"an override that is not a part of a graph: {at}",
            _request(BETA, overrides={"dgd": override}),
            f"error: spec.overrides.dgd.spec{at}: graphs have no such field, so the API server would reject the generated graph{hint}",
        )
        for at, override, hint in (
            (".nonsense", {"spec": {"nonsense": 1}}, ""),
            (".services.a.replica", {"spec": {"services": {"a": {"replica": 1}}}}, "; did you mean replicas?"),
        )
    ),
    *(
        Case(
            f"beta: a directive of an override: {why}",
            _request(BETA, overrides={"dgd": override}),
            f"error: spec.overrides.dgd.{message}",
        )
        for why, override, message in _DIRECTIVES
    ),
    Case(
        "beta: where an override would create the graph, and its status",
        _request(
            BETA,
            overrides={
                "dgd": {
                    "metadata": {"name": "a", "namespace": "b", "uid": "", "labels": {"c": "d"}},
                    "status": {"state": "successful"},
                    "spec": {"env": []},
                }
            },
        ),
        *(
            f"warning: spec.overrides.dgd.{at}: has no effect: the graph is created in the request's namespace; an override may set metadata.name, metadata.labels, metadata.annotations and spec"
            for at in ("metadata.namespace", "status")
        ),
    ),
    Case(
        "beta: arguments of an override that replace all of an engine's",
        _request(BETA, overrides={"dgd": {"spec": _worker(args=["--x"])}}),
        f"warning: spec.overrides.dgd.spec.{_MAIN}.args: replaces all arguments of the engine, but has no --model, without which the engine has no model: to keep the generated arguments, add $patch with args: append next to it",
    ),
    *(
        Case(f"beta: arguments of an override that may replace others: {why}", _request(BETA, overrides={"dgd": dgd}))
        for why, dgd in (
            ("with a model", {"spec": _worker(args=["--model-path", "m"])}),
            ("with a command", {"spec": _worker(args=["--x"], command=["python3", "-m", "mine"])}),
            ("of a frontend", {"spec": _frontend(args=["-m", "dynamo.frontend"])}),
            ("that v1alpha1 appends", {"spec": {"services": {"a": _OLD_FRONTEND}}}),
        )
    ),
    *(
        Case(
            f"beta: a router that an override replaces: {at}",
            _request(BETA, features={"kvRouter": {"enabled": True}}, overrides={"dgd": {"spec": spec}}),
            f"warning: spec.features.kvRouter.enabled: has no effect: spec.overrides.dgd.spec.{at} sets the router to {mode}; leave one of the two out",
        )
        for at, mode, spec in _ROUTERS
    ),
    *(
        Case(
            f"beta: a router next to an override: {why}",
            _request(BETA, features={"kvRouter": {"enabled": enabled}}, overrides={"dgd": {"spec": spec}}),
        )
        for why, enabled, spec in (
            ("of the same router", True, {"env": [_ROUTER]}),
            ("of another variable", True, {"env": [{"name": "A", "value": "b"}]}),
            ("that is off", False, {"env": [{**_ROUTER, "value": "random"}]}),
            ("whose flag wins", True, _frontend(args=["--router-mode=kv"], env=[{**_ROUTER, "value": "random"}])),
        )
    ),
    *(
        Case(
            f"beta: code of the model, with {backend or 'no backend'}",
            _request(
                BETA, None, **{"overrides": {"trustRemoteCode": True}, **({"backend": backend} if backend else {})}
            ),
            *expected,
        )
        for backend, *expected in (
            ("",),
            ("auto",),
            ("vllm",),
            ("sglang",),
            (
                "trtllm",
                "warning: spec.overrides.trustRemoteCode: has no effect: trtllm has no flag for it; leave it out",
            ),
        )
    ),
    Case(
        "beta: code of the model that is not to run",
        _request(BETA, backend="trtllm", overrides={"trustRemoteCode": False}),
    ),
    Case(
        "beta: words of a request",
        _request(BETA, backend="vlm", searchStrategy="fast", hardware={"gpuSku": "H100_SXM"}),
        "error: spec.backend: 'vlm' is not allowed; one of 'auto', 'vllm', 'sglang', 'trtllm'; did you mean vllm?",
        "error: spec.searchStrategy: 'fast' is not allowed; one of 'rapid', 'thorough'",
        "error: spec.hardware.gpuSku: 'H100_SXM' is not allowed; one of 'vr_nvl72', 'gb300', 'gb200', 'gb200_sxm', 'gb10', 'b300_sxm', 'b200_sxm', 'h200_sxm', 'h100_sxm', 'h100_pcie', 'a100_sxm', 'a100_pcie', 'a30', 'rtx_pro_6000_server', 'l40s', 'l40', 'l4', 'v100_sxm', 'v100_pcie', 't4', 'mi200', 'mi300'; did you mean h100_sxm?",
    ),
    Case(
        "beta: a request for nothing",
        _request(
            BETA,
            sla={"ttft": -1, "itl": 0.0},
            workload={"isl": 0, "osl": -5, "requestRate": 0},
            hardware={"totalGpus": -1234567, "vramMb": -0.5, "numGpusPerNode": 0},
        ),
        "error: spec.sla.ttft: -1 is not allowed: write a number above 0, or leave it out",
        "error: spec.sla.itl: 0.0 is not allowed: write a number above 0, or leave it out",
        "error: spec.workload.isl: 0 is not allowed: write a number above 0, or leave it out",
        "error: spec.workload.osl: -5 is not allowed: write a number above 0, or leave it out",
        "error: spec.workload.requestRate: 0 is not allowed: write a number above 0, or leave it out",
        "error: spec.hardware.vramMb: -0.5 is not allowed: write a number above 0, or leave it out",
        "error: spec.hardware.totalGpus: -1234567 is not allowed: write a number above 0, or leave it out",
    ),
    Case(
        "beta: what the planner does not read",
        _request(BETA, features={"planner": {"mode": "agg", "optimisation_target": "sla", "a.b": 1}}),
        "warning: spec.features.planner.optimisation_target: is not a known key, and has no effect; did you mean optimization_target?",
        'warning: spec.features.planner["a.b"]: is not a known key, and has no effect',
    ),
    Case(
        "alpha: what the profiler does not read",
        _old_request(
            profilingConfig={
                "profilerImage": "x",
                "config": {
                    "sweep": {"use_ai_configurator": True, "aicSystem": "h200_sxm", "webuiPort": 1},
                    "sweap": {},
                },
                "outputPVC": "files",
            }
        ),
        *_OF_PROFILING,
        "warning: spec.profilingConfig.outputPVC is deprecated since v0.11.0, and is removed in v1.0: the results are in the ConfigMap dgdr-output-<name>: leave it out",
        "warning: spec.profilingConfig.config.sweep.use_ai_configurator: is the old name of useAiConfigurator",
        "warning: spec.profilingConfig.config.sweap: is not a known key, and has no effect; did you mean sweep?",
        "warning: spec.profilingConfig.config.sweep.webuiPort: is ignored: the platform has no such page; dynadmin shows the results",
        "warning: spec.profilingConfig.outputPVC: has no effect: engines are simulated, and no Job runs; leave out sweep.useAiConfigurator, and name a backend, to measure them",
    ),
    Case(
        "beta: a Job that does not run",
        _request(
            BETA, overrides={"profilingJob": {"template": {"spec": {"tolerations": [], "nodeSelector": {"a": "b"}}}}}
        ),
        "warning: spec.overrides.profilingJob.template.spec.nodeSelector: has no effect: engines are simulated, and no Job runs; set searchStrategy to thorough to measure them",
    ),
    Case(
        "alpha: a graph in another namespace",
        _old_request(deploymentOverrides={"namespace": "other"}),
        "error: spec.deploymentOverrides.namespace: other is not the request's namespace: a user who may create requests here could create graphs there; create the request in other",
        *_OF_PROFILING,
        "warning: spec.deploymentOverrides is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has overrides.dgd",
    ),
    Case(
        "alpha: hardware that is named",
        _old_request(profilingConfig={"profilerImage": "x", "config": {"hardware": {"gpuType": "h200_sxm"}}}),
        *_OF_PROFILING,
        facts=BLIND,
    ),
    Case("beta: hardware that is named", _request(BETA, hardware={"numGpusPerNode": 8}), facts=BLIND),
    Case(
        "beta: hardware of zeros, which are discovered",
        _request(BETA, hardware={"vramMb": 0, "numGpusPerNode": 0}),
        "error: spec.hardware: set gpuSku, vramMb or numGpusPerNode: this platform may not read nodes, so it cannot discover GPUs",
        facts=BLIND,
    ),
    Case("beta: hardware that can be discovered", _request(BETA), facts=replace(BLIND, gpu_discovery=True)),
    *(
        Case(
            f"beta: a spec that may change in {phase}",
            _request(BETA, {"phase": phase}, backend="vllm"),
            old=_request(BETA, {"phase": phase}),
        )
        for phase in ("Pending", "Ready", "Failed")
    ),
    Case(
        "beta: a result that is deployed",
        _request(BETA, {"phase": "Ready"}, autoApply=True),
        old=_request(BETA, {"phase": "Ready"}, autoApply=False),
    ),
    Case(
        "beta: a result that is deployed for another spec",
        _request(BETA, {"phase": "Ready"}, backend="vllm"),
        "error: spec.backend: cannot be changed together with autoApply in phase Ready: the graph to be deployed was generated for the earlier spec; change only autoApply, or create the request again",
        old=_request(BETA, {"phase": "Ready"}, autoApply=False, backend="sglang"),
    ),
    Case(
        "alpha: a spec that stays once the graph is made",
        _old_request({"state": "Ready", "deployment": {"created": True}}, backend="sglang"),
        "error: spec.backend: cannot be changed in state Ready: profiling has begun; delete the request and create it again",
        *_OF_PROFILING,
        old=_old_request({"state": "Ready", "deployment": {"created": True}}),
    ),
    Case(
        "alpha: a spec that may change in Ready",
        _old_request({"state": "Ready"}, backend="sglang"),
        *_OF_PROFILING,
        old=_old_request({"state": "Ready"}),
    ),
    Case("adapter from a file", _model(modelType="lora", source={"uri": "file:///models/a"})),
    Case(
        "checkpoint whose defaults are said",
        _checkpoint(identity={"model": "m", "backendFramework": "vllm", "tensorParallelSize": 1}),
        old=_checkpoint(),
    ),
    Case("metadata of a worker", manifest("DynamoWorkerMetadata", ALPHA, {"data": {}})),
    Case("request of old", manifest("DynamoNimRequest", ALPHA, {"bentoTag": "a:b"})),
    Case("another user's", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}}),
]


def _in_beta(obj: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if obj is None else {**obj, "apiVersion": f"nvidia.com/{BETA}"}


CASES += [
    Case(f"beta: {case.id}", _in_beta(case.obj), *case.findings, old=_in_beta(case.old), facts=case.facts)
    for case in CASES
    if case.obj.get("kind") in {each.kind for each in UNCHANGED_IN_V1BETA1}
]
