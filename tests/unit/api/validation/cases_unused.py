# ruff: noqa: E501 - messages stand here whole
"""Cases about fields that say nothing where they stand."""

from typing import Any

from .building import (
    ALPHA,
    BETA,
    CONTAINER_DISCOVERY,
    GROVE,
    PLAIN,
    Case,
    alpha,
    annotated,
    beta,
    component,
    components,
    manifest,
    service,
    services,
)

GRAPH, COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
IDENTITY = {"model": "m", "backendFramework": "vllm"}
SHARED = "is replaced by the platform's /dev/shm: set its size in {}, or {} there to keep this one"
SHARED_ALPHA = SHARED.format("sharedMemory.size", "disabled: true")
SHARED_BETA = SHARED.format("sharedMemorySize", "0")


def pod(main: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Fields of a service about its pods."""
    return {"extraPodSpec": {**fields, "mainContainer": {"image": "engine:1", **(main or {})}}}


def template(main: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """Fields of a component about its pods."""
    containers = [{"name": "log", "image": "log:1"}, {"name": "main", "image": "engine:1", **(main or {})}]
    return {"podTemplate": {"spec": {**fields, "containers": containers}}}


OFF_GROVE = (
    'warning: metadata.annotations["nvidia.com/kai-scheduler-queue"]: has no effect: only the pods of graphs that Grove runs wait in queues of KAI, and it does not run this graph',
    'warning: metadata.annotations["nvidia.com/grove-update-strategy"]: has no effect: it is said of Grove, which does not run this graph',
)
OF_GRAPH = annotated(enable_metrics="False", kai_scheduler_queue="q", grove_update_strategy="OnDelete")
OF_SPEC = annotated(disable_image_pull_secret_discovery="True")
NEARLY_READ_ALPHA, NEARLY_READ = (
    made(f"a: {{{of_pods}: {{annotations: {{nvidia.com/enable-metrics: 'FALSE'}}}}}}", metadata=OF_GRAPH, **OF_SPEC)
    for made, of_pods in ((alpha, "extraPodMetadata"), (beta, "log: true, metadata"))
)

CASES = [
    Case(
        "alpha: what nothing reads",
        alpha(
            "a: {modelRef: {name: m, revision: r}}",
            "b: {kind: epp, eppConfig: {configMapRef: {name: c, key: k, optional: true}}}",
            "c: {checkpoint: {enabled: true, checkpointRef: r, identity: {model: m, backendFramework: vllm}}}",
            "d: {checkpoint: {enabled: false, checkpointRef: r, identity: {model: m, backendFramework: vllm}}}",
            "e: {checkpoint: {enabled: true, identity: {model: m, backendFramework: vllm}}}",
            "f: {pod: {terminationGracePeriodSeconds: 0}}",
            "g: {kind: planner, pod: {serviceAccountName: mine}}",
            "h: {kind: planner, pod: {serviceAccountName: planner-serviceaccount}}",
        ),
        "warning: spec.services.a.modelRef.revision: has no effect: engines load the revision that their own flags name, such as --revision",
        "warning: spec.services.b.eppConfig.configMapRef.optional: has no effect: an endpoint picker does not start without its configuration",
        "warning: spec.services.c.checkpoint.identity: has no effect: checkpointRef names the checkpoint; leave one of the two out",
        "warning: spec.services.f.extraPodSpec.terminationGracePeriodSeconds: 0 has no effect: pods get the default of their type; write 1 or more",
        "warning: spec.services.g.extraPodSpec.serviceAccountName: has no effect: a planner of a graph runs as planner-serviceaccount, which may scale the graph",
    ),
    Case(
        "beta: what nothing reads",
        beta(
            "a: {modelRef: {name: m, revision: r}}",
            "b: {kind: epp, eppConfig: {configMapRef: {name: c, key: k, optional: true}}}",
            "c: {experimental: {checkpoint: {checkpointRef: r, identity: {model: m, backendFramework: vllm}}}}",
            "d: {log: true, pod: {terminationGracePeriodSeconds: 0}}",
            "e: {log: true, pod: {terminationGracePeriodSeconds: 1}}",
            "f: {kind: planner, log: true, pod: {serviceAccountName: mine}}",
        ),
        "warning: spec.components[0].modelRef.revision: has no effect: engines load the revision that their own flags name, such as --revision",
        "warning: spec.components[1].eppConfig.configMapRef.optional: has no effect: an endpoint picker does not start without its configuration",
        "warning: spec.components[2].experimental.checkpoint.identity: has no effect: checkpointRef names the checkpoint; leave one of the two out",
        "warning: spec.components[3].podTemplate.spec.terminationGracePeriodSeconds: 0 has no effect: pods get the default of their type; write 1 or more",
        "warning: spec.components[5].podTemplate.spec.serviceAccountName: has no effect: a planner of a graph runs as planner-serviceaccount, which may scale the graph",
    ),
    Case(
        "alpha: shared memory of the author's",
        alpha("""
            a: {volumeMounts: [{name: v, mountPoint: /v}, {name: s, mountPoint: /dev/shm}]}
            b:
              main: {volumeMounts: [{name: shared-memory, mountPath: /s}]}
              pod: {volumes: [{name: shared-memory, emptyDir: {}}]}
            c: {sharedMemory: {disabled: true}, main: {volumeMounts: [{name: s, mountPath: /dev/shm}]}}
        """),
        f"warning: spec.services.a.volumeMounts[1]: {SHARED_ALPHA}",
        f"warning: spec.services.b.extraPodSpec.mainContainer.volumeMounts[0]: {SHARED_ALPHA}",
        f"warning: spec.services.b.extraPodSpec.volumes[0]: {SHARED_ALPHA}",
    ),
    Case(
        "beta: shared memory of the author's",
        beta(
            "a: {log: true, main: {volumeMounts: [{name: s, mountPath: /dev/shm}]}}",
            "b: {log: true, sharedMemorySize: 1Gi, pod: {volumes: [{name: v}, {name: shared-memory}]}}",
            "c: {log: true, sharedMemorySize: 0, pod: {volumes: [{name: shared-memory}]}}",
        ),
        f"warning: spec.components[0].podTemplate.spec.containers[1].volumeMounts[0]: {SHARED_BETA}",
        f"warning: spec.components[1].podTemplate.spec.volumes[1]: {SHARED_BETA}",
    ),
    Case(
        "alpha: ports without the one that is asked",
        alpha(
            """
            a: {kind: frontend, main: {ports: [{containerPort: 8000}]}}
            b: {kind: frontend, main: {ports: [{containerPort: 1, name: http}]}}
            c: {subComponentType: decode, main: {ports: [{containerPort: 1, name: rpc}]}}
            d: {kind: default, main: {ports: [{containerPort: 1}]}}
            e:
              gpus: '1'
              gpuMemoryService: {enabled: true}
              failover: {enabled: true}
              main: {ports: [{containerPort: 1}]}
            """,
            metadata=CONTAINER_DISCOVERY,
        ),
        "warning: spec.services.a.extraPodSpec.mainContainer.ports: has no port http, which probes and the Service name: add containerPort 8000 of that name",
        "warning: spec.services.c.extraPodSpec.mainContainer.ports: has no port system, which probes and the Service name: add containerPort 9090 of that name",
    ),
    Case(
        "beta: ports without the one that is asked",
        beta("""
            a: {kind: planner, log: true, main: {ports: [{containerPort: 9085, name: metrics}]}}
            b: {log: true, main: {ports: []}}
            c:
              kind: epp
              log: true
              eppConfig: {configMapRef: {name: c, key: k}}
              main: {ports: [{containerPort: 9002}]}
        """),
        "warning: spec.components[0].podTemplate.spec.containers[1].ports: has no port system, which probes and the Service name: add containerPort 9090 of that name",
    ),
    Case(
        "alpha: engines that listen elsewhere than they are asked",
        alpha(
            "a: {kind: frontend, main: {env: [{name: DYN_HTTP_PORT, value: '9000'}]}}",
            "b: {envs: [{name: DYN_SYSTEM_PORT, value: '8081'}]}",
            "c: {envs: [{name: DYN_SYSTEM_PORT, value: '9090'}, {name: DYN_HTTP_PORT, value: '1'}]}",
        ),
        "warning: spec.services.a.extraPodSpec.mainContainer.env[0].value: it listens there, and probes and the Service ask port http, which is 8000: leave DYN_HTTP_PORT out",
        "warning: spec.services.b.envs[0].value: it listens there, and probes and the Service ask port system, which is 9090: leave DYN_SYSTEM_PORT out",
    ),
    Case(
        "beta: engines that listen elsewhere than they are asked",
        beta("""
            a: {log: true, main: {env: [{name: DYN_SYSTEM_PORT, value: '8081'}]}}
            b:
              kind: frontend
              log: true
              main: {env: [{name: DYN_HTTP_PORT, value: '9000'}], ports: [{containerPort: 9000, name: http}]}
            c: {kind: planner, log: true, main: {env: [{name: DYN_SYSTEM_PORT}]}}
            d: {kind: frontend, log: true, main: {args: [-m, dynamo.frontend, --http-port, '9000']}}
            e: {kind: frontend, log: true, main: {args: [python3 -m dynamo.frontend --http-port=8000 -x]}}
            f: {kind: frontend, log: true, main: {command: [x, --http-port 80], env: [{name: DYN_HTTP_PORT, value: '8'}]}}
        """),
        "warning: spec.components[0].podTemplate.spec.containers[1].env[0].value: it listens there, and probes and the Service ask port system, which is 9090: leave DYN_SYSTEM_PORT out",
        "warning: spec.components[3].podTemplate.spec.containers[1].args: it listens there, and probes and the Service ask port http, which is 8000: leave --http-port out",
        "warning: spec.components[5].podTemplate.spec.containers[1].command: it listens there, and probes and the Service ask port http, which is 8000: leave --http-port out",
    ),
    Case(
        "alpha: volumes of a picker",
        alpha("""
            a:
              kind: epp
              eppConfig: {configMapRef: {name: c, key: k}}
              main: {volumeMounts: [{name: v, mountPath: /v}]}
              pod: {volumes: [{name: v, emptyDir: {}}]}
        """),
        "warning: spec.services.a.extraPodSpec.mainContainer.volumeMounts: replaces the mounts of the platform: the picker has no configuration; mount epp-config at /etc/epp, too",
    ),
    *(
        Case(
            f"beta: volumes of a picker ({len(mounts)} mounts, {len(volumes)} volumes)",
            components(
                component(
                    "a",
                    "epp",
                    eppConfig={"configMapRef": {"name": "c", "key": "k"}},
                    **template({"volumeMounts": mounts} if mounts else {}, volumes=volumes),
                )
            ),
            *(
                f"warning: spec.components[0].podTemplate.spec.volumes: replaces the volumes of the platform: {name}, which main mounts, becomes a claim that must exist; write it, too"
                for name in missing
            ),
        )
        for mounts, volumes, missing in (
            ([], [{"name": "v", "emptyDir": {}}], ["epp-config"]),
            ([{"name": "epp-config", "mountPath": "/etc/epp"}], [{"name": "v", "emptyDir": {}}], ["epp-config"]),
            (
                [{"name": "x", "mountPath": "/etc/epp"}],
                [{"name": "x", "emptyDir": {}}, {"name": "y", "emptyDir": {}}],
                [],
            ),
            ([], [], []),
        )
    ),
    *(
        Case(
            f"{version}: annotations that are nearly read",
            made,
            *queue,
            "warning: metadata.annotations[\"nvidia.com/enable-metrics\"]: 'False' has no effect: only 'false' is read",
            "warning: spec.annotations[\"nvidia.com/disable-image-pull-secret-discovery\"]: 'True' has no effect: only 'true' is read",
            f"warning: spec.{at}.annotations[\"nvidia.com/enable-metrics\"]: 'FALSE' has no effect: only 'false' is read",
            facts=facts,
        )
        for version, made, at, facts, queue in (
            (ALPHA, NEARLY_READ_ALPHA, "services.a.extraPodMetadata", PLAIN, OFF_GROVE),
            (BETA, NEARLY_READ, "components[0].podTemplate.metadata", GROVE, ()),
            (f"{BETA} off Grove", NEARLY_READ, "components[0].podTemplate.metadata", PLAIN, OFF_GROVE),
        )
    ),
    Case(
        "beta: metadata of pods",
        beta("a: {log: true, metadata: {labels: {a: b}, annotations: {a: b}, name: x, finalizers: [a/b]}}"),
        "warning: spec.components[0].podTemplate.metadata.name: has no effect: pods get labels and annotations of their template, and nothing else of its metadata",
        "warning: spec.components[0].podTemplate.metadata.finalizers: has no effect: pods get labels and annotations of their template, and nothing else of its metadata",
    ),
    Case(
        "alpha: what needs another field",
        alpha(
            "a: {resources: {limits: {gpuType: amd.com/gpu, custom: {x/gpu: '1'}}, requests: {gpuType: x/gpu, gpu: '1'}}}",
            "b: {sharedMemory: {disabled: true, size: 1Gi}}",
            "c: {subComponentType: prefill}",
            "d: {subComponentType: encode}",
            "e: {kind: frontend, subComponentType: decode}",
            "f: {serviceName: g}",
            "g: {serviceName: g}",
            pvcs=[
                {"name": "a", "size": "1Gi", "storageClass": "", "volumeAccessMode": "ReadWriteOnce"},
                {"name": "b", "create": True, "size": "1Gi", "storageClass": "s", "volumeAccessMode": "ReadWriteOnce"},
            ],
        ),
        "warning: spec.pvcs is deprecated since v0.11.0, and is removed in v1.0: create the PersistentVolumeClaim itself, and mount it by its name",
        "warning: spec.pvcs[0].size: has no effect: the claim is not created; set create: true, or leave it out",
        "warning: spec.pvcs[0].volumeAccessMode: has no effect: the claim is not created; set create: true, or leave it out",
        "warning: spec.services.a.resources.limits.gpuType: has no effect without gpu: set gpu to the number of GPUs",
        "warning: spec.services.b.sharedMemory.size: has no effect: disabled is true; leave one of the two out",
        "warning: spec.services.d.subComponentType: has no effect: only prefill and decode of componentType worker mean something",
        "warning: spec.services.e.subComponentType: has no effect: only prefill and decode of componentType worker mean something",
        "warning: spec.services.f.serviceName: has no effect: the service is called 'f', which is its key in spec.services",
    ),
    Case(
        "alpha: compilation caches",
        services(
            {
                "a": service(
                    volumeMounts=[
                        {"name": "v", "mountPoint": "/v"},
                        {"name": "w", "useAsCompilationCache": True},
                        {"name": "x", "mountPoint": "/x", "useAsCompilationCache": True},
                    ]
                ),
                "b": service(
                    "frontend", volumeMounts=[{"name": "v", "mountPoint": "/v", "useAsCompilationCache": True}]
                ),
            }
        ),
        "warning: spec.services.a.volumeMounts[2].useAsCompilationCache: has no effect: volumeMounts[1] is the compilation cache, and a component has one; this is mounted as any volume",
        "warning: spec.services.b.volumeMounts[0].useAsCompilationCache: has no effect: only workers compile; this is mounted as any volume",
    ),
    Case(
        "alpha: the main container",
        alpha("""
            a:
              volumeMounts: [{name: v, mountPoint: /w}]
              envFromSecret: s
              resources: {claims: [{name: a}]}
              main: {name: engine, volumeMounts: [{name: w, mountPath: /w}], envFrom: [{secretRef: {name: t}}],
                  resources: {claims: [{name: b}]}}
              pod: {containers: [{name: log, image: l}, {name: main, image: 'other:1'}], resourceClaims: [
                  {name: a, resourceClaimTemplateName: t}, {name: b, resourceClaimTemplateName: t}]}
            b:
              volumeMounts: [{name: v, useAsCompilationCache: true}, {name: o, mountPoint: /o}]
              main: {name: main, volumeMounts: [{name: w, mountPath: /w}]}
        """),
        "warning: spec.services.a.volumeMounts: has no effect: spec.services.a.extraPodSpec.mainContainer.volumeMounts takes its place; write all of it there",
        "warning: spec.services.a.envFromSecret: has no effect: spec.services.a.extraPodSpec.mainContainer.envFrom takes its place; write all of it there",
        "warning: spec.services.a.resources.claims: has no effect: spec.services.a.extraPodSpec.mainContainer.resources.claims takes its place; write all of it there",
        "warning: spec.services.a.extraPodSpec.mainContainer.name: has no effect: the container is called main",
        "warning: spec.services.a.extraPodSpec.containers[1]: has no effect: the container main is written in extraPodSpec.mainContainer",
    ),
    Case(
        "alpha: a gateway of no VirtualService",
        services({"a": service("frontend", ingress={"enabled": True, "host": "h", "virtualServiceGateway": "g"})}),
        "warning: spec.services.a.ingress is deprecated since v0.11.0, and is removed in v1.0: write an Ingress or an HTTPRoute to the component's Service",
        "warning: spec.services.a.ingress.virtualServiceGateway: has no effect without useVirtualService: true; an Ingress is made",
    ),
    Case(
        "alpha: what a VirtualService does not use",
        alpha("""
            a:
              kind: frontend
              ingress: {enabled: true, host: h, useVirtualService: true, virtualServiceGateway: g, tls: {secretName: s},
                  ingressControllerClassName: c}
        """),
        "warning: spec.services.a.ingress is deprecated since v0.11.0, and is removed in v1.0: write an Ingress or an HTTPRoute to the component's Service",
        "warning: spec.services.a.ingress.ingressControllerClassName: has no effect: a VirtualService is made; its Gateway 'g' has the certificates",
        "warning: spec.services.a.ingress.tls: has no effect: a VirtualService is made; its Gateway 'g' has the certificates",
    ),
    *(
        Case(
            f"{version}: a component alone",
            manifest(COMPONENT, version, {**made, "topologyConstraint": {"packDomain": "rack"}}),
            "warning: spec.topologyConstraint: has no effect: only Grove packs pods by topology, and it runs graphs; write a DynamoGraphDeployment",
        )
        for version, made in ((ALPHA, service(serviceName="a")), (BETA, component("a")))
    ),
    *(
        Case(
            f"{version}: annotations of pods on a component alone",
            manifest(
                COMPONENT, version, made, **annotated(enable_metrics="false", deployment_strategy="Recreate", x="y")
            ),
            *(
                f'warning: metadata.annotations["nvidia.com/{name}"]: has no effect here: write it in {place}'
                for name in ("enable-metrics", "deployment-strategy")
            ),
        )
        for version, made, place in (
            (ALPHA, service(serviceName="a"), "spec.extraPodMetadata.annotations"),
            (BETA, component("a"), "spec.podTemplate.metadata.annotations"),
        )
    ),
    Case(
        "beta: a component of a graph is not warned of what the graph says",
        manifest(
            COMPONENT,
            BETA,
            component("a", topologyConstraint={"packDomain": "rack"}),
            ownerReferences=[
                {"apiVersion": f"nvidia.com/{BETA}", "kind": GRAPH, "name": "g", "uid": "1", "controller": True}
            ],
        ),
    ),
    *(
        Case(
            f"{version}: a source that no worker loads{suffix}",
            manifest(
                "DynamoModel",
                version,
                {"modelName": "m", "baseModelName": "b", "source": {"uri": "s3://b/p"}, **fields},
            ),
            *(
                ()
                if fields.get("modelType") == "lora"
                else (
                    "warning: spec.source: has no effect: workers load a model from its source only with modelType lora",
                )
            ),
        )
        for version in (ALPHA, BETA)
        for suffix, fields in (("", {}), (" (adapter)", {"modelType": "adapter"}), (" (lora)", {"modelType": "lora"}))
    ),
    *(
        Case(
            f"{version}: the Job of a checkpoint",
            manifest(
                "DynamoCheckpoint",
                version,
                {
                    "identity": IDENTITY,
                    "job": {
                        "podTemplateSpec": {
                            "metadata": {"labels": {"a": "b"}, "name": "x"},
                            "spec": {"containers": [{"name": "main", "image": "i"}], "restartPolicy": "OnFailure"},
                        },
                        "backoffLimit": 3,
                        "ttlSecondsAfterFinished": 60,
                    },
                },
            ),
            "warning: spec.job.podTemplateSpec.metadata.name: has no effect: the pod gets labels and annotations of its template, and nothing else of its metadata",
            "warning: spec.job.podTemplateSpec.spec.restartPolicy: has no effect: the pod of the Job is never started again",
            "warning: spec.job.backoffLimit: has no effect: the Job runs once; create the checkpoint again to take it again",
            "warning: spec.job.ttlSecondsAfterFinished: has no effect: the Job is kept for 300 seconds after its end",
        )
        for version in (ALPHA, BETA)
    ),
    *(
        Case(
            f"beta: what a simulation does not use ({strategy})",
            manifest(
                "DynamoGraphDeploymentRequest",
                BETA,
                {
                    "model": "m",
                    "backend": "vllm",
                    "searchStrategy": strategy,
                    "hardware": {"gpuSku": "h100_sxm", "interconnect": "nvlink", "rdma": True},
                    "overrides": {
                        "profilingJob": {
                            "backoffLimit": 1,
                            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"priorityClassName": "p"}},
                        }
                    },
                },
            ),
            *(
                f"warning: spec.{at}: has no effect: engines are simulated, and no Job runs; set searchStrategy to thorough to measure them"
                for at in (
                    "hardware.interconnect",
                    "hardware.rdma",
                    "overrides.profilingJob.backoffLimit",
                    "overrides.profilingJob.template.metadata",
                    "overrides.profilingJob.template.spec.priorityClassName",
                )
                if strategy == "rapid"
            ),
        )
        for strategy in ("rapid", "thorough")
    ),
    *(
        Case(
            f"beta: what to favour next to latencies ({strategy})",
            manifest(
                "DynamoGraphDeploymentRequest",
                BETA,
                {
                    "model": "m",
                    "backend": "vllm",
                    "searchStrategy": strategy,
                    "sla": {"optimizationType": "latency", "ttft": 200, "itl": 10},
                },
            ),
            *(
                (
                    "warning: spec.sla.optimizationType: has no effect next to ttft, itl: engines are simulated, and chosen by latencies; leave one or the other out",
                )
                if strategy == "rapid"
                else ()
            ),
        )
        for strategy in ("rapid", "thorough")
    ),
    Case(
        "alpha: what to favour next to latencies",
        manifest(
            "DynamoGraphDeploymentRequest",
            ALPHA,
            {
                "model": "m",
                "backend": "auto",
                "profilingConfig": {
                    "profilerImage": "i",
                    "config": {"sla": {"optimizationType": "latency", "ttft": 200}},
                },
            },
        ),
        "warning: spec.profilingConfig.profilerImage is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has image",
        "warning: spec.profilingConfig.config is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has sla, workload, modelCache and features.planner",
        "warning: spec.profilingConfig.config.sla.optimizationType: has no effect next to ttft: engines are simulated, and chosen by latencies; leave one or the other out",
    ),
]
