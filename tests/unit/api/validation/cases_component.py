# ruff: noqa: E501 - messages stand here whole
"""Cases about components, in a graph or alone: exposure, volumes, endpoint pickers, images, roles."""

from typing import Any

from .building import GROVE, Case, alone, alpha, beta, both, component, components, manifest, service, services

EPP_CONFIG: dict[str, Any] = {"config": {"plugins": [], "schedulingProfiles": []}}

MAIN = {"name": "main", "image": "engine:1"}
#: Each role has a pod template, and its command is its author's.
OWN: list[dict[str, Any]] = [
    {"name": name, "podTemplate": {"spec": {"containers": [{**MAIN, "command": ["torchrun"], "args": [name]}]}}}
    for name in ("leader", "worker")
]
SHARED = {"gpuMemoryService": {"mode": "IntraPod"}, "failover": {"mode": "IntraPod"}}
LACKS = "required: another role has its own template, and the"

CASES = [
    Case(
        "alpha: a picker of a later runtime",
        alpha("""
            Epp:
              kind: epp
              eppConfig: {config: {plugins: [], schedulingProfiles: []}}
              main: {image: 'r:5000/frontend:1.5.0-rc1'}
        """),
        "warning: spec.services.Epp.extraPodSpec.mainContainer.image: Dynamo 1.5.0 has a new endpoint picker, which reads no eppConfig; with eppConfig, pods start the picker of 1.4 and earlier: leave eppConfig out, or set an image of 1.4 or earlier",
    ),
    Case(
        "beta: a picker of a later runtime by its version, with several replicas",
        beta("epp: {kind: epp, runtimeVersionOverride: 1.5.0, replicas: 2, scalingAdapter: {}}"),
    ),
    Case(
        "alpha: a picker of a later runtime by its tag, with volumes of its own",
        alpha("""
            Epp:
              kind: epp
              replicas: 3
              main: {image: 'frontend:1.5.1'}
              pod: {volumes: [{name: models, emptyDir: {}}]}
        """),
        "warning: spec.services.Epp.extraPodSpec.volumes: replaces the platform's volumes, so hf-cache, which main mounts, becomes a claim that must exist: add this volume, too",
    ),
    Case(
        "beta: a configuration for a picker whose tag is later",
        beta("""
            epp:
              kind: epp
              eppConfig: {config: {plugins: [], schedulingProfiles: []}}
              main: {image: 'picker:1.6.0'}
        """),
        "warning: spec.components[0].podTemplate.spec.containers[0].image: Dynamo 1.6.0 has a new endpoint picker, which reads no eppConfig; with eppConfig, pods start the picker of 1.4 and earlier: leave eppConfig out, or set an image of 1.4 or earlier",
    ),
    Case(
        "beta: a picker whose author says that it is an earlier one",
        beta("""
            epp:
              kind: epp
              eppConfig: {config: {plugins: [], schedulingProfiles: []}}
              runtimeVersionOverride: 1.4.2
              main: {image: 'picker:1.5.0'}
        """),
    ),
    Case(
        "beta: roles",
        beta(
            """
            a:
              multinode: {nodeCount: 4}
              roles: [{name: leader}, {name: worker, replicas: 4, podTemplate: {spec: {containers: [{name: main,
                  image: 'engine:1'}]}}}]
            b: {multinode: {}, roles: [{name: leader}, {name: worker, replicas: 1}]}
            """,
            backendFramework="sglang",
        ),
        "error: spec.components[0].roles[1].replicas: 4 is not allowed for the worker of 4 nodes: write 3, which follows from multinode",
        facts=GROVE,
    ),
    Case(
        "beta: templates of roles, of one and of both",
        components(
            {"name": "a", "type": "worker", "multinode": {}, "roles": OWN},
            component("b", multinode={}, roles=[OWN[0], {"name": "worker"}]),
            component("c", multinode={}, roles=[{"name": "leader"}, OWN[1]]),
        ),
    ),
    Case("alpha: templates of roles", services({"a": {"componentType": "worker", "multinode": {}, "roles": OWN}})),
    Case(
        "alpha: the template of a role next to that of the service, as component deployments of graphs have it",
        alone("v1alpha1", **service(multinode={}, roles=[{"name": "leader"}, OWN[1]])),
    ),
    Case(
        "beta: templates of roles that are not whole",
        components(
            {"name": "a", "type": "worker", "multinode": {}, "roles": [OWN[0], {"name": "worker"}]},
            component("b", multinode={}, roles=OWN),
            {"name": "c", "type": "worker", "multinode": {}, "roles": [OWN[0], {"name": "worker", "podTemplate": {}}]},
            component("d", gpus="1", multinode={}, roles=[{"name": "leader"}, OWN[1]], experimental=SHARED),
            metadata={"annotations": {"nvidia.com/dynamo-kube-discovery-mode": "container"}},
        ),
        f"error: spec.components[0].roles[1].podTemplate: {LACKS} component has no template for this role; write it here, or write podTemplate of the component",
        "error: spec.components[1].podTemplate: cannot be combined with templates of all roles, which replace it: leave it out",
        "error: spec.components[2].roles[1].podTemplate.spec.containers: needs a container main with an image: the platform creates the pods of a role from this template alone",
        "error: spec.components[3].experimental.gpuMemoryService: cannot be combined with pod templates of roles, whose commands the platform does not change: leave it out, or write podTemplate of the component for all",
        "error: spec.components[3].experimental.failover: cannot be combined with pod templates of roles, whose commands the platform does not change: leave it out, or write podTemplate of the component for all",
        facts=GROVE,
    ),
    Case(
        "alpha: mounts",
        alpha("a: {kind: frontend, volumeMounts: [{name: c, useAsCompilationCache: true}]}"),
        "error: spec.services.a.volumeMounts[0].mountPoint: required: componentType frontend has no default path for its compilation cache; write the directory of the cache",
    ),
    Case(
        "beta: directories of a cache",
        beta(
            "a: {compilationCache: {pvcName: c, mountPath: /c, subPath: vllm/1.5.0}}",
            "b: {compilationCache: {pvcName: c, mountPath: /c, subPath: a/../..}}",
        ),
        "error: spec.components[1].compilationCache.subPath: 'a/../..' must not contain '..'",
    ),
    Case(
        "beta: a frontend sidecar by another name",
        beta("a: {frontendSidecar: front, main: {image: x}, pod: {others: [{name: frontend, image: x}]}}"),
        "error: spec.components[0].frontendSidecar: 'front' is not a container of podTemplate.spec.containers other than main (frontend): add it there, or leave this out",
    ),
    Case(
        "alpha: amounts",
        alpha("a: {resources: {limits: {memory: 16Gb, cpu: '4'}, requests: {custom: {rdma/ib: one}}}}"),
        "error: spec.services.a.resources.limits.memory: '16Gb' is not a quantity; examples: 8Gi, 500m, 2",
        "error: spec.services.a.resources.requests.custom[\"rdma/ib\"]: 'one' is not a quantity; examples: 8Gi, 500m, 2",
    ),
    Case(
        "alpha: amounts that no container can have",
        alpha("""
            a:
              resources:
                limits: {cpu: '2', gpu: '1.5', gpuType: gpu.intel.com/xe}
                requests: {cpu: '4', memory: -1Gi, custom: {gpu: '1'}}
            b:
              resources: {limits: {cpu: '8'}, requests: {cpu: '4', memory: 4Gi}}
              main: {image: x, resources: {limits: {cpu: 4, memory: 2Gi}}}
        """),
        "error: spec.services.a.resources.limits.gpu: must be a whole number, not '1.5'",
        "error: spec.services.a.resources.requests.custom.gpu: no such resource; the name of a GPU is nvidia.com/gpu",
        "error: spec.services.a.resources.requests.memory: must not be negative",
        "error: spec.services.a.resources.requests.cpu: 4 is more than the limit, 2",
        "error: spec.services.b.resources.requests.memory: 4Gi is more than the limit, 2Gi",
    ),
    Case(
        "alpha: pages of memory, with other resources and without, in either place",
        alpha("""
            a: {resources: {limits: {custom: {hugepages-2Mi: 1Gi}}}}
            b: {main: {image: x, resources: {limits: {hugepages-2Mi: 1Gi}}}}
            c: {resources: {limits: {cpu: '2'}}, main: {image: x, resources: {limits: {hugepages-2Mi: 1Gi}}}}
        """),
        "error: spec.services.a.resources: has hugepages-2Mi, which needs an amount of cpu or memory: add one",
        "error: spec.services.b.extraPodSpec.mainContainer.resources: has hugepages-2Mi, which needs an amount of cpu or memory: add one",
    ),
    *both(
        "an adapter of a picker",
        services({"Epp": service("epp", eppConfig=EPP_CONFIG, scalingAdapter={"enabled": True})}),
        components(component("epp", "epp", eppConfig=EPP_CONFIG, scalingAdapter={})),
        "warning: {at}.scalingAdapter: has no effect: an endpoint picker has one replica, and admission refuses another number; leave it out",
        at=("spec.services.Epp", "spec.components[0]"),
    ),
    Case(
        "alpha: configuration of a picker elsewhere",
        services({"a": service(eppConfig=EPP_CONFIG), "b": {**service(eppConfig=EPP_CONFIG), "componentType": None}}),
        "error: spec.services.a.eppConfig: only for componentType epp; componentType is 'worker': leave one of the two out",
        "error: spec.services.b.eppConfig: only for componentType epp; componentType is not set: leave one of the two out",
    ),
    Case(
        "alpha: GPUs wherever they are asked for",
        alpha(
            "a: {resources: {requests: {gpu: '2'}}, gpuMemoryService: {enabled: true}, subComponentType: decode}",
            "b: {resources: {limits: {custom: {nvidia.com/gpu: '1'}}}, gpuMemoryService: {enabled: true}}",
            "c: {gpuMemoryService: {enabled: true}, main: {image: x, resources: {limits: {nvidia.com/gpu: 1}}}}",
        ),
    ),
    Case(
        "alpha: types that the platform does not know",
        services({"a": service("wroker"), "b": service("default"), "c": service("encode-process-data")}),
        "warning: spec.services.a.componentType: 'wroker' is not a type that the platform knows, so pods run exactly as written; one of 'frontend', 'worker', 'prefill', 'decode', 'planner', 'epp'; did you mean worker?",
        "warning: spec.services.c.componentType: 'encode-process-data' is not a type that the platform knows, so pods run exactly as written; one of 'frontend', 'worker', 'prefill', 'decode', 'planner', 'epp'",
    ),
    Case(
        "beta: no image",
        components(
            {"name": "a"},
            {"name": "b", "podTemplate": {"spec": {"containers": [{"name": "s", "image": "x"}, {"name": "main"}]}}},
        ),
        "warning: spec.components[0].podTemplate.spec.containers: the container main has no image yet, and the platform cannot create pods without one",
        "warning: spec.components[1].podTemplate.spec.containers[1].image: the container main has no image yet, and the platform cannot create pods without one",
    ),
    Case(
        "beta: a component alone",
        manifest(
            "DynamoComponentDeployment",
            "v1beta1",
            {**component("a", experimental={"gpuMemoryService": {}}), "frontendSidecar": "x"},
            name="1" + "a" * 63,
        ),
        "error: metadata.name: begins with '1', but the names of Services begin with this name, so it must begin with a letter",
        "error: metadata.name: results in the Dynamo namespace 'team-1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' of 69 characters, but a label value has at most 63: shorten it by 6",
        "error: metadata.name: results in a Service name of 64 characters, but Kubernetes allows 63: shorten it by 1",
        "error: spec.frontendSidecar: 'x' is not a container of podTemplate.spec.containers other than main: add it there, or leave this out",
        "error: spec.experimental.gpuMemoryService: needs at least one GPU: set it in resources.limits of the container main, as nvidia.com/gpu",
    ),
    *both(
        "an adapter without a graph",
        alone("v1alpha1", **service(scalingAdapter={"enabled": True})),
        alone("v1beta1", **component("a", scalingAdapter={})),
        "warning: spec.scalingAdapter: has no effect: only components of a graph get a scaling adapter; leave it out, and scale this component deployment itself (kubectl scale, an autoscaler)",
    ),
    Case(
        "beta: a component of a graph has the graph's Dynamo namespace",
        manifest(
            "DynamoComponentDeployment",
            "v1beta1",
            component("a"),
            name="a" * 60,
            ownerReferences=[
                {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "name": "a", "uid": "1"}
            ],
        ),
    ),
]
