# ruff: noqa: E501 - messages stand here whole
"""Cases about graphs as a whole: components, names, restarts, claims, topology, annotations."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.api.validation.building import (
    CONTAINER_DISCOVERY,
    FAILOVER_INTRA,
    GMS_INTER,
    GMS_INTRA,
    GROVE,
    PLAIN,
    Case,
    annotated,
    component,
    components,
    service,
    services,
)

LONG = "a" * 40

CASES = [
    Case(
        "alpha: autoscalers that cannot be made",
        services(
            {"a": service(scalingAdapter={"enabled": True}), "b": service()},
            metadata=annotated(
                dynamo_autoscaling="{a: {minReplicas: 3, maxReplicas: 2}, b: {maxReplicas: 2}, c: {maxReplicas: 2}}"
            ),
        ),
        errors=(
            'metadata.annotations["nvidia.com/dynamo-autoscaling"].a.maxReplicas: must be at least minReplicas, which is 3',
            'metadata.annotations["nvidia.com/dynamo-autoscaling"].b: b has no scalingAdapter.enabled: enable it, and the autoscaler has something to write to',
            'metadata.annotations["nvidia.com/dynamo-autoscaling"].c: is not a component of this graph',
        ),
    ),
    Case(
        "beta: autoscalers that cannot be made",
        components(
            component("a", scalingAdapter={}),
            component("b"),
            metadata=annotated(
                dynamo_autoscaling='{"a": {"maxReplicas": 0}, "b": {"maxReplicas": 2}, "c": {"maxReplicas": 2}}'
            ),
        ),
        errors=(
            'metadata.annotations["nvidia.com/dynamo-autoscaling"].a.maxReplicas: 0 is too small; at least 1',
            'metadata.annotations["nvidia.com/dynamo-autoscaling"].b: b has no scalingAdapter: enable it, and the autoscaler has something to write to',
            'metadata.annotations["nvidia.com/dynamo-autoscaling"].c: is not a component of this graph',
        ),
    ),
    Case(
        "beta: autoscalers that are not a map",
        components(component("a", scalingAdapter={}), metadata=annotated(dynamo_autoscaling="on: [")),
        errors=(
            "metadata.annotations[\"nvidia.com/dynamo-autoscaling\"]: 'on: [' is not a map of components to their autoscalers, as YAML or JSON",
        ),
    ),
    Case(
        "beta: autoscalers in two documents, of which only one would be read",
        components(component("a", scalingAdapter={}), metadata=annotated(dynamo_autoscaling="{}\n---\n{}")),
        errors=(
            "metadata.annotations[\"nvidia.com/dynamo-autoscaling\"]: '{}\\n---\\n{}' is not a map of components to their autoscalers, as YAML or JSON",
        ),
    ),
    Case(
        "beta: limits of scale commands in two documents",
        components(component("a"), metadata=annotated(scaling_policy="{}\n---\n{}")),
        errors=(
            "metadata.annotations[\"nvidia.com/scaling-policy\"]: '{}\\n---\\n{}' is not a map of components to their limits, as YAML or JSON",
        ),
    ),
    Case(
        "beta: autoscalers that can be made",
        components(
            component("a", scalingAdapter={}),
            metadata=annotated(
                dynamo_autoscaling="a: {minReplicas: 0, maxReplicas: 4, triggers: [{type: cron}], pollingInterval: 5}"
            ),
        ),
    ),
    Case(
        "beta: limits of scale commands with mistakes",
        components(
            component("a"),
            metadata=annotated(scaling_policy="{a: {mim: 2, down: {cooldown: soon}, up: {step: -1}}, b: {min: 1}}"),
        ),
        errors=(
            'metadata.annotations["nvidia.com/scaling-policy"].a.up.step: -1 is too small; at least 0',
            'metadata.annotations["nvidia.com/scaling-policy"].a.down.cooldown: write a duration such as 30s, 15m or 1h30m, or seconds; at most a day',
            'metadata.annotations["nvidia.com/scaling-policy"].a.mim: no such field',
            'metadata.annotations["nvidia.com/scaling-policy"].b: is not a component of this graph; * stands for all',
        ),
    ),
    Case(
        "alpha: limits of scale commands out of order",
        services({"a": service()}, metadata=annotated(scaling_policy="{'*': {min: 3, max: 2}, b: {}}")),
        errors=(
            'metadata.annotations["nvidia.com/scaling-policy"]["*"].max: must be 0, for any number, or at least min, which is 3',
            'metadata.annotations["nvidia.com/scaling-policy"].b: is not a component of this graph; * stands for all',
        ),
    ),
    Case(
        "alpha: limits of scale commands that are not a map",
        services({"a": service()}, metadata=annotated(scaling_policy="x")),
        errors=(
            "metadata.annotations[\"nvidia.com/scaling-policy\"]: 'x' is not a map of components to their limits, as YAML or JSON",
        ),
    ),
    Case(
        "beta: limits of scale commands",
        components(
            component("a"),
            metadata=annotated(scaling_policy="{a: {min: 2, max: 0, down: {cooldown: 1h30m, step: 1}}, '*': {max: 5}}"),
        ),
    ),
    Case("alpha: no service", services({}), errors=("spec.services: at least one service is needed",)),
    Case("beta: no component", components(), errors=("spec.components: at least one component is needed",)),
    Case(
        "beta: no spec", {**components(), "spec": None}, errors=("spec.components: at least one component is needed",)
    ),
    Case(
        "alpha: two pickers",
        services(
            {
                name: service("epp", eppConfig={"config": {"plugins": [], "schedulingProfiles": []}})
                for name in ("Epp", "Other")
            }
        ),
        errors=(
            "spec.services.Other.componentType: a graph has at most one service of componentType epp; spec.services.Epp is one already",
        ),
    ),
    Case(
        "alpha: claims",
        services(
            {"a": service()},
            pvcs=[
                {"name": ""},
                {"name": "b", "create": True, "size": "0", "storageClass": "", "volumeAccessMode": ""},
                {"name": "c", "create": False, "storageClass": ""},
            ],
        ),
        errors=(
            "spec.pvcs[0].name: must not be empty",
            "spec.pvcs[1].storageClass: must not be empty: create is true, and a claim is made of size, storageClass and volumeAccessMode",
            "spec.pvcs[1].volumeAccessMode: must not be empty: create is true, and a claim is made of size, storageClass and volumeAccessMode",
            "spec.pvcs[1].size: must not be '0': create is true, and a claim is made of size, storageClass and volumeAccessMode",
        ),
        warnings=(
            "spec.pvcs is deprecated since v0.11.0, and is removed in v1.0: create the PersistentVolumeClaim itself, and mount it by its name",
        ),
    ),
    Case(
        "alpha: order of a parallel restart",
        services({"a": service()}, restart={"id": "1", "strategy": {"type": "Parallel", "order": ["a"]}}),
        errors=(
            "spec.restart.strategy.order: not allowed with type Parallel, which restarts all at once: leave it out, or use Sequential",
        ),
    ),
    Case(
        "beta: order of a parallel restart",
        components(component("a"), restart={"id": "1", "strategy": {"type": "Parallel", "order": ["a"]}}),
        errors=(
            "spec.restart.strategy.order: not allowed with type Parallel, which restarts all at once: leave it out, or use Sequential",
        ),
    ),
    Case(
        "alpha: order of a restart",
        services(
            {"Frontend": service("frontend"), "Decode": service()},
            restart={"id": "1", "strategy": {"order": ["Frontend", "Frontend", "decode"]}},
        ),
        errors=(
            "spec.restart.strategy.order[1]: 'Frontend' stands at [0] already; name each service once",
            "spec.restart.strategy.order[2]: 'decode' is not a service of this graph; did you mean Decode?",
            "spec.restart.strategy.order: lacks Decode: name every service once, or leave order out for the alphabetical one",
        ),
    ),
    Case(
        "beta: order of a restart",
        components(
            component("frontend", "frontend"),
            component("decode"),
            component("c"),
            restart={"id": "1", "strategy": {"order": ["decode", "decode", "xyz"]}},
        ),
        errors=(
            "spec.restart.strategy.order[1]: 'decode' stands at [0] already; name each component once",
            "spec.restart.strategy.order[2]: 'xyz' is not a component of this graph; one of frontend, decode, c",
            "spec.restart.strategy.order: lacks frontend, c: name every component once, or leave order out for the alphabetical one",
        ),
    ),
    Case(
        "beta: order with every component once",
        components(component("a"), component("b"), restart={"id": "1", "strategy": {"order": ["b", "a"]}}),
    ),
    Case(
        "alpha: failover in a pod without discovery of containers",
        services({"a": service(gpus="1", gpuMemoryService=GMS_INTRA, failover=FAILOVER_INTRA)}),
        errors=(
            "metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: must be 'container': spec.services.a.failover keeps several engines in one pod, and each must be discovered by itself",
        ),
    ),
    Case(
        "beta: failover in a pod with discovery of pods",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {}, "failover": {}}),
            metadata=annotated(dynamo_kube_discovery_mode="pod"),
        ),
        errors=(
            "metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: must be 'container', not 'pod': spec.components[0].experimental.failover keeps several engines in one pod, and each must be discovered by itself",
        ),
    ),
    Case(
        "alpha: failover in a pod with discovery of containers",
        services(
            {"a": service(gpus="1", gpuMemoryService=GMS_INTRA, failover=FAILOVER_INTRA)},
            metadata=CONTAINER_DISCOVERY,
        ),
    ),
    Case(
        "alpha: GPU memory between pods without Grove",
        services({"a": service(gpus="1", gpuMemoryService=GMS_INTER)}, backendFramework="vllm"),
        errors=(
            "spec.services.a.gpuMemoryService.mode: 'interPod' needs Grove, which this platform does not use: write intraPod, or leave gpuMemoryService out",
        ),
    ),
    Case(
        "beta: GPU memory between pods without Grove",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {"mode": "InterPod"}}), backendFramework="vllm"
        ),
        errors=(
            "spec.components[0].experimental.gpuMemoryService.mode: 'InterPod' needs Grove, which this platform does not use: write IntraPod, or leave gpuMemoryService out",
        ),
    ),
    Case(
        "alpha: GPU memory between pods of a graph that Grove does not run",
        services(
            {"a": service(gpus="1", gpuMemoryService=GMS_INTER)},
            backendFramework="vllm",
            metadata=annotated(enable_grove="False"),
        ),
        facts=GROVE,
        errors=(
            "spec.services.a.gpuMemoryService.mode: 'interPod' needs Grove, which the annotation nvidia.com/enable-grove turns off for this graph: remove it",
        ),
    ),
    Case(
        "beta: GPU memory between pods of a graph that Grove does not run",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {"mode": "InterPod"}}),
            backendFramework="vllm",
            metadata=annotated(enable_grove="false"),
        ),
        facts=GROVE,
        errors=(
            "spec.components[0].experimental.gpuMemoryService.mode: 'InterPod' needs Grove, which the annotation nvidia.com/enable-grove turns off for this graph: remove it",
        ),
    ),
    Case(
        "alpha: GPU memory between pods of no named engine",
        services({"a": service(gpus="1", gpuMemoryService=GMS_INTER)}),
        facts=GROVE,
        errors=(
            "spec.backendFramework: must be vllm, not unset: spec.services.a.gpuMemoryService.mode is 'interPod', which only vLLM can do",
        ),
    ),
    Case(
        "beta: GPU memory between pods of another engine",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {"mode": "InterPod"}}),
            backendFramework="sglang",
        ),
        facts=GROVE,
        errors=(
            "spec.backendFramework: must be vllm, not 'sglang': spec.components[0].experimental.gpuMemoryService.mode is 'InterPod', which only vLLM can do",
        ),
    ),
    Case(
        "beta: GPU memory between pods where no one knows of Grove",
        components(
            component("a", gpus="1", experimental={"gpuMemoryService": {"mode": "InterPod"}}), backendFramework="vllm"
        ),
        facts=replace(PLAIN, grove=None),
    ),
    Case(
        "alpha: names of services",
        services({"my.service": service(), "Decode": service(), "decode": service(), "-a": service(), "": service()}),
        errors=(
            "spec.services[\"my.service\"]: 'my.service' is not a valid service name: letters, digits and '-', a letter or digit first and last, at most 63 characters; rename it",
            "spec.services.decode: differs from spec.services.Decode in case only, and their objects would have the same names; rename one of them",
            "spec.services.-a: '-a' is not a valid service name: letters, digits and '-', a letter or digit first and last, at most 63 characters; rename it",
            "spec.services[\"\"]: '' is not a valid service name: letters, digits and '-', a letter or digit first and last, at most 63 characters; rename it",
        ),
    ),
    Case(
        "alpha: name of a worker that leaves no room for its hash",
        services({"W" * 32: service(), "F" * 32: service("frontend")}, metadata={"name": "a" * 25}),
        errors=(
            "spec.services.WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW: makes a name of 67 characters (aaaaaaaaaaaaaaaaaaaaaaaaa-wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww-<hash>), where Kubernetes allows 63: shorten it or metadata.name by 4",
        ),
    ),
    Case(
        "beta: names of objects",
        components(component("w" * 40), component("f" * 40, "frontend"), metadata={"name": LONG}),
        errors=(
            "spec.components[0].name: makes a name of 90 characters (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww-<hash>), where Kubernetes allows 63: shorten it or metadata.name by 27",
            "spec.components[1].name: makes a name of 81 characters (aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-ffffffffffffffffffffffffffffffffffffffff), where Kubernetes allows 63: shorten it or metadata.name by 18",
        ),
    ),
    Case(
        "beta: names of objects where no one knows of Grove",
        components(component("w" * 32), component("f" * 40, "frontend"), metadata={"name": "a" * 25}),
        facts=replace(PLAIN, grove=None),
        errors=(
            "spec.components[1].name: makes a name of 66 characters (aaaaaaaaaaaaaaaaaaaaaaaaa-ffffffffffffffffffffffffffffffffffffffff), where Kubernetes allows 63: shorten it or metadata.name by 3",
        ),
    ),
    Case(
        "alpha: name of a graph",
        services({"a": service()}, metadata={"name": "3d", "namespace": "n" * 63}),
        errors=(
            "metadata.name: begins with '3'; it begins the names of Services, which begin with a letter",
            "metadata.name: makes the Dynamo namespace 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-3d', 66 characters, where a label holds 63: shorten it by 3",
        ),
    ),
    Case(
        "beta: name of a graph",
        components(component("a"), metadata={"name": "3d", "namespace": "n" * 63}),
        errors=(
            "metadata.name: begins with '3'; it begins the names of Services, which begin with a letter",
            "metadata.name: makes the Dynamo namespace 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-3d', 66 characters, where a label holds 63: shorten it by 3",
        ),
    ),
    Case(
        "beta: graphs in the shared Dynamo namespace have none of their own",
        components(component("a", globalDynamoNamespace=True), metadata={"name": "d", "namespace": "n" * 63}),
    ),
    Case(
        "alpha: names under Grove",
        services(
            {"S" * 38: service(), "m" * 25: service(multinode={"nodeCount": 2})},
            backendFramework="sglang",
            metadata={"name": "graph-of-some-length"},
        ),
        facts=GROVE,
        errors=(
            "spec.services.SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS: makes names of 46 characters together (8 of the graph + ssssssssssssssssssssssssssssssssssssss), where Grove allows 45: shorten it by 1",
            "spec.services.mmmmmmmmmmmmmmmmmmmmmmmmm: makes names of 62 characters together (8 of the graph + mmmmmmmmmmmmmmmmmmmmmmmmm + mmmmmmmmmmmmmmmmmmmmmmmmm-ldr), where Grove allows 45: shorten it by 9",
        ),
    ),
    Case(
        "beta: names under Grove",
        components(
            component("s" * 20),
            component(
                "g" * 17, gpus="1", multinode={"nodeCount": 12}, experimental={"gpuMemoryService": {"mode": "InterPod"}}
            ),
            backendFramework="vllm",
            metadata={"name": "graph-of-some-length"},
        ),
        facts=GROVE,
        errors=(
            "spec.components[1].name: makes names of 49 characters together (8 of the graph + ggggggggggggggggg + ggggggggggggggggg-wkr-11), where Grove allows 45: shorten it by 2",
        ),
    ),
    Case(
        "alpha: annotations",
        services(
            {
                "a": service(
                    annotations={"nvidia.com/vllm-distributed-executor-backend": "dask"},
                    extraPodMetadata={
                        "annotations": {
                            "nvidia.com/dynamo-kube-discovery-mode": "Pod",
                            "nvidia.com/deployment-rolling-update-max-unavailable": "few",
                        }
                    },
                )
            },
            annotations={
                "nvidia.com/dynamo-kube-discovery-mode": "node",
                "nvidia.com/deployment-rolling-update-max-surge": "-1",
            },
            metadata=annotated(dynamo_operator_origin_version="latest", vllm_distributed_executor_backend="dask"),
        ),
        errors=(
            "metadata.annotations[\"nvidia.com/dynamo-operator-origin-version\"]: 'latest' is not a semantic version such as 1.2.0; leave it out, and the platform sets it",
            "metadata.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: 'dask' is not allowed; one of 'mp', 'ray'",
            "spec.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: 'node' is not allowed; one of 'pod', 'container'",
            "spec.annotations[\"nvidia.com/deployment-rolling-update-max-surge\"]: '-1' is neither a number of pods nor a percentage; write 1 or 25%",
            "spec.services.a.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: 'dask' is not allowed; one of 'mp', 'ray'",
            "spec.services.a.extraPodMetadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: 'Pod' is not allowed; one of 'pod', 'container'",
            "spec.services.a.extraPodMetadata.annotations[\"nvidia.com/deployment-rolling-update-max-unavailable\"]: 'few' is neither a number of pods nor a percentage; write 1 or 25%",
        ),
        warnings=(
            "spec.services.a.annotations is deprecated since v0.11.0, and is removed in v1.0: write extraPodMetadata.annotations, or podTemplate.metadata.annotations in v1beta1",
        ),
    ),
    Case(
        "alpha: a planner next to the planner service",
        services(
            {"a": service(componentType="planner")},
            metadata=annotated(planner_config="planner-config"),
        ),
        errors=(
            'metadata.annotations["nvidia.com/planner-config"]: component a is a planner of its own, and this asks the planner service: keep one of them',
        ),
    ),
    Case(
        "beta: a planner next to the planner service",
        components(component("a", type="planner"), metadata=annotated(planner_config="planner-config")),
        errors=(
            'metadata.annotations["nvidia.com/planner-config"]: component a is a planner of its own, and this asks the planner service: keep one of them',
        ),
    ),
    Case(
        "beta: annotations",
        components(
            component(
                "a",
                podTemplate={
                    "metadata": {
                        "annotations": {
                            "nvidia.com/vllm-distributed-executor-backend": "",
                            "nvidia.com/dynamo-kube-discovery-mode": "node",
                            "nvidia.com/deployment-rolling-update-max-surge": "25.5%",
                        }
                    },
                    "spec": {"containers": [{"name": "main", "image": "x"}]},
                },
            ),
            annotations={
                "nvidia.com/vllm-distributed-executor-backend": "dask",
                "nvidia.com/deployment-rolling-update-max-unavailable": "half",
            },
            metadata=annotated(dynamo_operator_origin_version="1.2", dynamo_kube_discovery_mode="Container"),
        ),
        errors=(
            "metadata.annotations[\"nvidia.com/dynamo-operator-origin-version\"]: '1.2' is not a semantic version such as 1.2.0; leave it out, and the platform sets it",
            "metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: 'Container' is not allowed; one of 'pod', 'container'",
            "spec.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: 'dask' is not allowed; one of 'mp', 'ray'",
            "spec.annotations[\"nvidia.com/deployment-rolling-update-max-unavailable\"]: 'half' is neither a number of pods nor a percentage; write 1 or 25%",
            "spec.components[0].podTemplate.metadata.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: '' is not allowed; one of 'mp', 'ray'",
            "spec.components[0].podTemplate.metadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: 'node' is not allowed; one of 'pod', 'container'",
            "spec.components[0].podTemplate.metadata.annotations[\"nvidia.com/deployment-rolling-update-max-surge\"]: '25.5%' is neither a number of pods nor a percentage; write 1 or 25%",
        ),
    ),
    Case(
        "alpha: labels and annotations that no object can have",
        services(
            {"a": service(extraPodMetadata={"labels": {"team": "a/b"}, "annotations": {"my note": ""}})},
            labels={"team": "blue team", "ok": ""},
            annotations={"note!": "x"},
        ),
        errors=(
            "spec.labels.team: 'blue team' is not a valid label value, which has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
            "spec.annotations[\"note!\"]: is not a valid key; it has at most 63 letters, digits, '-', '_' and '.', begins and ends with a letter or digit, and may stand behind a DNS name and a '/'",
            "spec.services.a.extraPodMetadata.labels.team: 'a/b' is not a valid label value, which has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
            "spec.services.a.extraPodMetadata.annotations[\"my note\"]: is not a valid key; it has at most 63 letters, digits, '-', '_' and '.', begins and ends with a letter or digit, and may stand behind a DNS name and a '/'",
        ),
    ),
    Case(
        "beta: labels that no object can have",
        components(component("a"), labels={"team": "blue team"}),
        errors=(
            "spec.labels.team: 'blue team' is not a valid label value, which has at most 63 letters, digits, '-', '_' and '.', and begins and ends with a letter or digit",
        ),
    ),
    Case(
        "alpha: more pods unavailable than there are",
        services(
            {
                "a": service(
                    extraPodMetadata={"annotations": {"nvidia.com/deployment-rolling-update-max-unavailable": "101%"}}
                )
            },
            annotations={
                "nvidia.com/deployment-rolling-update-max-surge": "200%",
                "nvidia.com/deployment-rolling-update-max-unavailable": "100%",
            },
        ),
        errors=(
            "spec.services.a.extraPodMetadata.annotations[\"nvidia.com/deployment-rolling-update-max-unavailable\"]: '101%' is more than all pods; write 100% at most",
        ),
    ),
    Case(
        "beta: more pods unavailable than there are",
        components(component("a"), annotations={"nvidia.com/deployment-rolling-update-max-unavailable": "150%"}),
        errors=(
            "spec.annotations[\"nvidia.com/deployment-rolling-update-max-unavailable\"]: '150%' is more than all pods; write 100% at most",
        ),
    ),
    Case(
        "alpha: annotations without effect",
        services(
            {
                "a": service(
                    extraPodMetadata={
                        "annotations": {
                            "nvidia.com/dynamo-discovery-backend": "consul",
                            "nvidia.com/deployment-strategy": "recreate",
                        }
                    }
                )
            },
            annotations={"nvidia.com/deployment-strategy": "Blue"},
            metadata=annotated(deployment_strategy="Recreate", dynamo_discovery_backend="Kubernetes"),
        ),
        warnings=(
            'metadata.annotations["nvidia.com/deployment-strategy"]: has no effect here: write it in spec.annotations for all components, or in the pod template of one',
            "metadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'Kubernetes' is not known; one of 'kubernetes', 'etcd': pods get no rights to discover each other",
            "spec.annotations[\"nvidia.com/deployment-strategy\"]: 'Blue' is not known; one of 'RollingUpdate', 'Recreate': RollingUpdate is used",
            "spec.services.a.extraPodMetadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'consul' is not known; one of 'kubernetes', 'etcd': pods get no rights to discover each other",
            "spec.services.a.extraPodMetadata.annotations[\"nvidia.com/deployment-strategy\"]: 'recreate' is not known; one of 'RollingUpdate', 'Recreate': RollingUpdate is used",
        ),
    ),
    Case(
        "beta: annotations without effect",
        components(
            component(
                "a",
                podTemplate={
                    "metadata": {
                        "annotations": {
                            "nvidia.com/dynamo-discovery-backend": "consul",
                            "nvidia.com/deployment-strategy": "recreate",
                        }
                    },
                    "spec": {"containers": [{"name": "main", "image": "x"}]},
                },
            ),
            annotations={"nvidia.com/deployment-strategy": "Blue"},
            metadata=annotated(deployment_strategy="Recreate", dynamo_discovery_backend="Kubernetes"),
        ),
        warnings=(
            'metadata.annotations["nvidia.com/deployment-strategy"]: has no effect here: write it in spec.annotations for all components, or in the pod template of one',
            "metadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'Kubernetes' is not known; one of 'kubernetes', 'etcd': pods get no rights to discover each other",
            "spec.annotations[\"nvidia.com/deployment-strategy\"]: 'Blue' is not known; one of 'RollingUpdate', 'Recreate': RollingUpdate is used",
            "spec.components[0].podTemplate.metadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'consul' is not known; one of 'kubernetes', 'etcd': pods get no rights to discover each other",
            "spec.components[0].podTemplate.metadata.annotations[\"nvidia.com/deployment-strategy\"]: 'recreate' is not known; one of 'RollingUpdate', 'Recreate': RollingUpdate is used",
        ),
    ),
    Case(
        "beta: annotations that are fine",
        components(
            component(
                "a",
                podTemplate={
                    "metadata": {
                        "annotations": {
                            "nvidia.com/deployment-strategy": "Recreate",
                            "nvidia.com/deployment-rolling-update-max-surge": "not checked",
                        }
                    },
                    "spec": {"containers": [{"name": "main", "image": "x"}]},
                },
            ),
            annotations={"nvidia.com/deployment-rolling-update-max-surge": " 25% "},
            metadata=annotated(
                dynamo_operator_origin_version="v1.2.0-rc.1",
                vllm_distributed_executor_backend="RAY",
                dynamo_kube_discovery_mode="pod",
            ),
        ),
    ),
    Case(
        "alpha: a domain without a topology",
        services({"a": service(topologyConstraint={"packDomain": "rack"})}),
        facts=GROVE,
        errors=(
            "spec.topologyConstraint: required, since a has a topologyConstraint: set topologyProfile to the ClusterTopology that has the domains",
        ),
    ),
    Case(
        "beta: domains without a topology",
        components(*(component(name, topologyConstraint={"packDomain": "rack"}) for name in ("a", "b"))),
        facts=GROVE,
        errors=(
            "spec.topologyConstraint: required, since a, b have a topologyConstraint: set clusterTopologyName to the ClusterTopology that has the domains",
        ),
    ),
    Case(
        "alpha: a service without a domain",
        services(
            {"a": service(topologyConstraint={"packDomain": "rack"}), "b": service()},
            topologyConstraint={"topologyProfile": "dc"},
        ),
        facts=GROVE,
        errors=(
            "spec.services.b.topologyConstraint: required, since spec.topologyConstraint has no packDomain: set packDomain here, or there for all",
        ),
    ),
    Case(
        "beta: a component without a domain",
        components(component("b"), topologyConstraint={"clusterTopologyName": "dc"}),
        facts=GROVE,
        errors=(
            "spec.components[0].topologyConstraint: required, since spec.topologyConstraint has no packDomain: set packDomain here, or there for all",
        ),
    ),
    Case(
        "alpha: no such topology",
        services({"a": service()}, topologyConstraint={"topologyProfile": "dcc", "packDomain": "rack"}),
        facts=GROVE,
        errors=(
            "spec.topologyConstraint.topologyProfile: 'dcc' is not a ClusterTopology of this cluster; did you mean dc?",
        ),
    ),
    Case(
        "beta: no such topology, and none at all",
        components(component("a"), topologyConstraint={"clusterTopologyName": "dc", "packDomain": "rack"}),
        facts=replace(GROVE, topologies={}),
        errors=(
            "spec.topologyConstraint.clusterTopologyName: 'dc' is not a ClusterTopology of this cluster; there are: none",
        ),
    ),
    Case(
        "alpha: domains",
        services(
            {
                "a": service(topologyConstraint={"packDomain": "zone"}),
                "b": service(topologyConstraint={"packDomain": "x"}),
            },
            topologyConstraint={"topologyProfile": "dc", "packDomain": "rack"},
        ),
        facts=GROVE,
        errors=(
            "spec.services.a.topologyConstraint.packDomain: 'zone' is wider than 'rack' of spec.topologyConstraint; one of rack, host",
            "spec.services.b.topologyConstraint.packDomain: 'x' is not a domain of ClusterTopology 'dc'; one of zone, rack, host",
        ),
    ),
    Case(
        "beta: domains",
        components(
            component("a", topologyConstraint={"packDomain": "host"}),
            component("b", topologyConstraint={"packDomain": "rack"}),
            component("c"),
            topologyConstraint={"clusterTopologyName": "dc", "packDomain": "host"},
        ),
        facts=GROVE,
        errors=(
            "spec.components[1].topologyConstraint.packDomain: 'rack' is wider than 'host' of spec.topologyConstraint; one of host",
        ),
    ),
    Case(
        "beta: no such domain for the graph",
        components(component("a"), topologyConstraint={"clusterTopologyName": "dc", "packDomain": "row"}),
        facts=GROVE,
        errors=(
            "spec.topologyConstraint.packDomain: 'row' is not a domain of ClusterTopology 'dc'; one of zone, rack, host",
        ),
    ),
    Case(
        "beta: topologies that no one knows",
        components(component("a"), topologyConstraint={"clusterTopologyName": "x", "packDomain": "row"}),
        facts=replace(GROVE, topologies=None),
    ),
    *(
        Case(
            f"{version}: several nodes, and nothing that runs them",
            of,
            facts=replace(PLAIN, leader_worker_sets=False),
            warnings=(
                f"{at}.multinode: replicas of several nodes cannot run here, so the whole graph fails: install "
                "LeaderWorkerSet or Grove, or leave multinode out",
            ),
        )
        for version, of, at in (
            (
                "alpha",
                services({"a": service(multinode={"nodeCount": 2})}, backendFramework="sglang"),
                "spec.services.a",
            ),
            (
                "beta",
                components(component("a", multinode={"nodeCount": 2}), backendFramework="sglang"),
                "spec.components[0]",
            ),
        )
    ),
    *(
        Case(
            f"several nodes, and {name} runs them",
            components(component("a", multinode={"nodeCount": 2}), backendFramework="sglang"),
            facts=replace(facts, leader_worker_sets=lws),
        )
        for name, facts, lws in (
            ("LeaderWorkerSet", PLAIN, True),
            ("Grove", GROVE, False),
            ("no one knows what", PLAIN, None),
        )
    ),
    Case(
        "alpha: topology without Grove",
        services({"a": service()}, topologyConstraint={"topologyProfile": "x", "packDomain": "rack"}),
        warnings=(
            "spec.topologyConstraint: has no effect: only Grove packs pods by topology, and it does not run this graph",
        ),
    ),
    Case(
        "beta: topology without Grove",
        components(component("a"), topologyConstraint={"clusterTopologyName": "x", "packDomain": "rack"}),
        warnings=(
            "spec.topologyConstraint: has no effect: only Grove packs pods by topology, and it does not run this graph",
        ),
    ),
]
