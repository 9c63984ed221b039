# ruff: noqa: E501 - messages stand here whole
"""Cases about annotations of graphs: autoscalers, limits of scale commands, and the others."""

from functools import partial

from .building import GROVE, Case, alpha, annotated, beta, component, components, service, services

CASES = [
    Case(
        "beta: keys of an autoscaler that are misspelt",
        beta(
            "a: {scalingAdapter: {}}",
            metadata=annotated(dynamo_autoscaling="a: {minReplica: 2, maxReplicas: 4, cooldwonPeriod: 60}"),
        ),
        'warning: metadata.annotations["nvidia.com/dynamo-autoscaling"].a.minReplica: is not a known key, and has no effect; did you mean minReplicas?',
        'warning: metadata.annotations["nvidia.com/dynamo-autoscaling"].a.cooldwonPeriod: is not a known key, and has no effect; did you mean cooldownPeriod?',
    ),
    Case(
        "beta: annotations that are misspelt",
        beta(
            "a: {main: {image: x}, metadata: {annotations: {nvidia.com/deployment-stratgy: Recreate, x/y: z}}}",
            **annotated(enable_metric="false"),
            metadata=annotated(dynamo_autoscalling="a: {}", of_another_release="true", last_applied_hash="x"),
        ),
        'warning: metadata.annotations["nvidia.com/dynamo-autoscalling"]: has no effect: the platform knows no such annotation; did you mean nvidia.com/dynamo-autoscaling?',
        'warning: spec.annotations["nvidia.com/enable-metric"]: has no effect: the platform knows no such annotation; did you mean nvidia.com/enable-metrics?',
        'warning: spec.components[0].podTemplate.metadata.annotations["nvidia.com/deployment-stratgy"]: has no effect: the platform knows no such annotation; did you mean nvidia.com/deployment-strategy?',
    ),
    Case(
        "alpha: annotations without number, of which only some are compared",
        services(
            {"a": service()},
            metadata={"annotations": {f"nvidia.com/enable-groves{number}": "" for number in range(1000)}},
        ),
        *(
            f'warning: metadata.annotations["nvidia.com/enable-groves{number}"]: has no effect: the platform knows no such annotation; did you mean nvidia.com/enable-grove?'
            for number in range(10)
        ),
    ),
    Case(
        "alpha: a key of an autoscaler that is misspelt",
        alpha(
            "a: {scalingAdapter: {enabled: true}}",
            metadata=annotated(dynamo_autoscaling="a: {maxReplicas: 4, trigers: []}"),
        ),
        'warning: metadata.annotations["nvidia.com/dynamo-autoscaling"].a.trigers: is not a known key, and has no effect; did you mean triggers?',
    ),
    Case(
        "beta: a metric of an autoscaler that is not an object",
        beta("a: {scalingAdapter: {}}", metadata=annotated(dynamo_autoscaling="a: {maxReplicas: 4, metrics: [x]}")),
        "error: metadata.annotations[\"nvidia.com/dynamo-autoscaling\"].a.metrics[0]: must be an object, not 'x'",
    ),
    Case(
        "beta: autoscalers in two documents, of which only one would be read",
        components(component("a", scalingAdapter={}), metadata=annotated(dynamo_autoscaling="{}\n---\n{}")),
        "error: metadata.annotations[\"nvidia.com/dynamo-autoscaling\"]: '{}\\n---\\n{}' is not a map of components to their autoscalers, as YAML or JSON",
    ),
    Case(
        "alpha: limits of scale commands out of order",
        services({"a": service()}, metadata=annotated(scaling_policy="{'*': {min: 3, max: 2}, b: {}}")),
        'error: metadata.annotations["nvidia.com/scaling-policy"]["*"].max: must be 0 for no limit, or at least min, which is 3',
        'error: metadata.annotations["nvidia.com/scaling-policy"].b: is not a component of this graph; * selects all components',
    ),
    Case(
        "alpha: annotations",
        alpha(
            """
            a:
              annotations: {nvidia.com/vllm-distributed-executor-backend: dask}
              extraPodMetadata:
                annotations:
                  nvidia.com/dynamo-kube-discovery-mode: Pod
                  nvidia.com/deployment-rolling-update-max-unavailable: few
            """,
            **annotated(dynamo_kube_discovery_mode="node", deployment_rolling_update_max_surge="-1"),
            metadata=annotated(dynamo_operator_origin_version="latest", vllm_distributed_executor_backend="dask"),
        ),
        "error: metadata.annotations[\"nvidia.com/dynamo-operator-origin-version\"]: 'latest' is not a semantic version such as 1.2.0; leave it out, and the platform sets it",
        "error: metadata.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: 'dask' is not allowed; one of 'mp', 'ray'",
        "error: spec.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: 'node' is not allowed; one of 'pod', 'container'",
        "error: spec.annotations[\"nvidia.com/deployment-rolling-update-max-surge\"]: '-1' is neither a number of pods nor a percentage; write 1 or 25%",
        "error: spec.services.a.annotations[\"nvidia.com/vllm-distributed-executor-backend\"]: 'dask' is not allowed; one of 'mp', 'ray'",
        "error: spec.services.a.extraPodMetadata.annotations[\"nvidia.com/dynamo-kube-discovery-mode\"]: 'Pod' is not allowed; one of 'pod', 'container'",
        "error: spec.services.a.extraPodMetadata.annotations[\"nvidia.com/deployment-rolling-update-max-unavailable\"]: 'few' is neither a number of pods nor a percentage; write 1 or 25%",
        "warning: spec.services.a.annotations is deprecated since v0.11.0, and is removed in v1.0: write extraPodMetadata.annotations, or podTemplate.metadata.annotations in v1beta1",
    ),
    Case(
        "beta: margins of an update that are left empty",
        beta(
            "a: {main: {image: x}, metadata: {annotations: {nvidia.com/deployment-rolling-update-max-surge: ''}}}",
            **annotated(deployment_rolling_update_max_unavailable=" "),
        ),
    ),
    Case(
        "alpha: how Deployments are updated, on Grove",
        alpha(
            "a: {extraPodMetadata: {annotations: {nvidia.com/deployment-strategy: Recreate}}}",
            **annotated(deployment_rolling_update_max_surge="1"),
        ),
        'warning: spec.annotations["nvidia.com/deployment-rolling-update-max-surge"]: has no effect: Grove runs this graph, and replaces its pods in its own way',
        'warning: spec.services.a.extraPodMetadata.annotations["nvidia.com/deployment-strategy"]: has no effect: Grove runs this graph, and replaces its pods in its own way',
        facts=GROVE,
    ),
    Case(
        "beta: how Deployments are updated, on Grove",
        beta(
            "a: {main: {image: x}, metadata: {annotations: {nvidia.com/deployment-strategy: Blue}}}",
            **annotated(deployment_rolling_update_max_unavailable="0"),
        ),
        'warning: spec.annotations["nvidia.com/deployment-rolling-update-max-unavailable"]: has no effect: Grove runs this graph, and replaces its pods in its own way',
        'warning: spec.components[0].podTemplate.metadata.annotations["nvidia.com/deployment-strategy"]: has no effect: Grove runs this graph, and replaces its pods in its own way',
        facts=GROVE,
    ),
    Case(
        "alpha: annotations without effect",
        alpha(
            """
            a:
              extraPodMetadata:
                annotations: {nvidia.com/dynamo-discovery-backend: consul, nvidia.com/deployment-strategy: recreate}
            """,
            **annotated(deployment_strategy="Blue"),
            metadata=annotated(deployment_strategy="Recreate", dynamo_discovery_backend="Kubernetes"),
        ),
        'warning: metadata.annotations["nvidia.com/deployment-strategy"]: has no effect here: write it in spec.annotations for all components, or in the pod template of one component',
        "warning: metadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'Kubernetes' is not a known backend, so pods get no rights to discover each other; one of 'kubernetes', 'etcd'",
        "warning: spec.annotations[\"nvidia.com/deployment-strategy\"]: 'Blue' is not a known strategy, so the platform uses RollingUpdate; one of 'RollingUpdate', 'Recreate'",
        "warning: spec.services.a.extraPodMetadata.annotations[\"nvidia.com/dynamo-discovery-backend\"]: 'consul' is not a known backend, so pods get no rights to discover each other; one of 'kubernetes', 'etcd'",
        "warning: spec.services.a.extraPodMetadata.annotations[\"nvidia.com/deployment-strategy\"]: 'recreate' is not a known strategy, so the platform uses RollingUpdate; one of 'RollingUpdate', 'Recreate'",
    ),
    Case(
        "beta: annotations that are fine",
        beta(
            """
            a:
              main: {image: x}
              metadata:
                annotations:
                  nvidia.com/deployment-strategy: Recreate
                  nvidia.com/deployment-rolling-update-max-surge: not checked
            """,
            **annotated(deployment_rolling_update_max_surge=" 25% "),
            metadata=annotated(
                dynamo_operator_origin_version="v1.2.0-rc.1",
                vllm_distributed_executor_backend="RAY",
                dynamo_kube_discovery_mode="pod",
            ),
        ),
    ),
    *(
        Case(
            f"{version}: what runs a graph overrules the switch of Grove",
            made(metadata=annotated(workload_provider="grove", enable_grove="False"), topologyConstraint=constraint),
            'warning: metadata.annotations["nvidia.com/enable-grove"]: has no effect: the annotation nvidia.com/workload-provider selects grove',
            facts=GROVE,
        )
        for version, made, constraint in (
            ("alpha", partial(services, {"a": service()}), {"topologyProfile": "dc", "packDomain": "rack"}),
            ("beta", partial(components, component("a")), {"clusterTopologyName": "dc", "packDomain": "rack"}),
        )
    ),
    *(
        Case(
            f"{version}: a DisaggregatedSet",
            made(metadata={"annotations": {"nvidia.com/enable-disaggregatedset": value}}),
            *(
                [
                    'warning: metadata.annotations["nvidia.com/enable-disaggregatedset"]: has no effect: this platform uses no DisaggregatedSet; without Grove each component has a Deployment or a LeaderWorkerSet'
                ]
                if value == "True"
                else []
            ),
        )
        for version, made, value in (
            ("alpha", partial(services, {"a": service()}), "True"),
            ("beta", partial(components, component("a")), "True"),
            ("beta, switched off", partial(components, component("a")), "false"),
        )
    ),
    Case(
        "beta: Grove is not used for a graph of components",
        components(component("a", minAvailable=1), metadata=annotated(workload_provider="component")),
        "warning: spec.components[0].minAvailable: has no effect: only Grove starts replicas together, and Grove does not run this graph",
        facts=GROVE,
    ),
    *(
        Case(
            f"{version}: what runs a graph is no longer said",
            made(),
            "error: metadata.annotations[\"nvidia.com/workload-provider\"]: cannot be changed from 'grove' to unset: create a DynamoGraphDeployment of another name",
            old=made(metadata=annotated(workload_provider="grove")),
            facts=GROVE,
        )
        for version, made in (
            ("alpha", partial(services, {"a": service()})),
            ("beta", partial(components, component("a"))),
        )
    ),
]
