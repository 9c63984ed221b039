# ruff: noqa: E501 - messages stand here whole
"""Cases about fields that have no effect in their place."""

from typing import Any

import yaml

from .building import (
    ALPHA,
    BETA,
    CONTAINER_DISCOVERY,
    GROVE,
    PLAIN,
    Case,
    alone,
    alpha,
    annotated,
    beta,
    both,
    component,
    manifest,
    service,
    services,
)

GRAPH, COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
IDENTITY = {"model": "m", "backendFramework": "vllm"}
SHARED = "the platform's /dev/shm replaces it: set the size in {}, or set {} there to keep this one"
SHARED_ALPHA = SHARED.format("sharedMemory.size", "disabled: true")
SHARED_BETA = SHARED.format("sharedMemorySize", "0")


def in_both(kind: str, spec: Any) -> tuple[Any, Any]:
    """An object of either version, whose specifications are the same."""
    return manifest(kind, ALPHA, spec), manifest(kind, BETA, spec)


def request(*parts: str, version: str = BETA) -> Any:
    """A request whose fields are texts of YAML."""
    spec = {name: value for part in parts for name, value in yaml.load(part, yaml.CSafeLoader).items()}
    return manifest("DynamoGraphDeploymentRequest", version, {"model": "m", "backend": "vllm", **spec})


MODEL = {"modelName": "m", "baseModelName": "b", "source": {"uri": "s3://b/p"}}
UNLOADED = "warning: spec.source: has no effect: workers load a model from its source only with modelType lora"
JOB_OF_A_CHECKPOINT = """
podTemplateSpec:
  metadata: {labels: {a: b}, name: x}
  spec: {containers: [{name: main, image: i}], restartPolicy: OnFailure}
backoffLimit: 3
ttlSecondsAfterFinished: 60
"""
ONLY_OF_JOBS = """
hardware: {gpuSku: h100_sxm, interconnect: nvlink, rdma: true}
overrides:
  profilingJob:
    backoffLimit: 1
    template: {metadata: {labels: {a: b}}, spec: {priorityClassName: p}}
"""
CONTAINERS_OF_JOBS = """
overrides:
  profilingJob:
    template:
      spec: {containers: [{name: output-copier, image: a, resources: {limits: {cpu: 1}}}, {name: mine, image: b}, {name: c}]}
"""
LATENCIES = "sla: {optimizationType: latency, ttft: 200, itl: 10}"
OF_PODS = annotated(enable_metrics="false", deployment_strategy="Recreate", x="y")
OFF_GROVE = (
    'warning: metadata.annotations["nvidia.com/kai-scheduler-queue"]: has no effect: only the pods of graphs that Grove runs wait in queues of KAI, and Grove does not run this graph',
    'warning: metadata.annotations["nvidia.com/grove-update-strategy"]: has no effect: only Grove uses it, and Grove does not run this graph',
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
        f"warning: spec.services.b.extraPodSpec.volumes[0]: {SHARED_ALPHA}",
    ),
    Case(
        "alpha: shared memory of the author's, with the size of the platform's",
        alpha("""
            a:
              sharedMemory: {size: 64Gi}
              main: {volumeMounts: [{name: s, mountPath: /dev/shm}]}
              pod: {volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 65536Mi}}]}
        """),
    ),
    Case(
        "beta: shared memory of the author's, with the size of the platform's, with another, on disk",
        beta(
            "a: {log: true, sharedMemorySize: 1Gi, main: {volumeMounts: [{name: s, mountPath: /dev/shm}]}, pod: {volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 1024Mi}}]}}",
            "b: {log: true, sharedMemorySize: 1Gi, main: {volumeMounts: [{name: s, mountPath: /dev/shm}]}, pod: {volumes: [{name: s, emptyDir: {medium: Memory, sizeLimit: 2Gi}}]}}",
            "c: {log: true, sharedMemorySize: 1Gi, main: {volumeMounts: [{name: s, mountPath: /dev/shm}]}, pod: {volumes: [{name: s, emptyDir: {sizeLimit: 1Gi}}]}}",
        ),
        f"warning: spec.components[1].podTemplate.spec.containers[1].volumeMounts[0]: {SHARED_BETA}",
        f"warning: spec.components[2].podTemplate.spec.containers[1].volumeMounts[0]: {SHARED_BETA}",
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
        "warning: spec.services.a.extraPodSpec.mainContainer.ports: has no port http, which probes and the Service use: add containerPort 8000 with this name",
        "warning: spec.services.c.extraPodSpec.mainContainer.ports: has no port system, which probes and the Service use: add containerPort 9090 with this name",
    ),
    Case(
        "alpha: engines that listen elsewhere than they are asked",
        alpha(
            "a: {kind: frontend, main: {env: [{name: DYN_HTTP_PORT, value: '9000'}]}}",
            "b: {envs: [{name: DYN_SYSTEM_PORT, value: '8081'}]}",
            "c: {envs: [{name: DYN_SYSTEM_PORT, value: '9090'}, {name: DYN_HTTP_PORT, value: '1'}]}",
        ),
        "warning: spec.services.a.extraPodSpec.mainContainer.env[0].value: the container listens on this port, but probes and the Service use port http, which is 8000: leave DYN_HTTP_PORT out",
        "warning: spec.services.b.envs[0].value: the container listens on this port, but probes and the Service use port system, which is 9090: leave DYN_SYSTEM_PORT out",
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
        "warning: spec.components[0].podTemplate.spec.containers[1].env[0].value: the container listens on this port, but probes and the Service use port system, which is 9090: leave DYN_SYSTEM_PORT out",
        "warning: spec.components[3].podTemplate.spec.containers[1].args: the container listens on this port, but probes and the Service use port http, which is 8000: leave --http-port out",
        "warning: spec.components[5].podTemplate.spec.containers[1].command: the container listens on this port, but probes and the Service use port http, which is 8000: leave --http-port out",
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
        "warning: spec.services.a.extraPodSpec.mainContainer.volumeMounts: replaces the platform's mounts, so the picker has no configuration: mount epp-config at /etc/epp, too",
    ),
    *(
        Case(
            f"beta: volumes of a picker: {pod}",
            beta(f"a: {{kind: epp, log: true, eppConfig: {{configMapRef: {{name: c, key: k}}}}, {pod}}}"),
            *(
                f"warning: spec.components[0].podTemplate.spec.volumes: replaces the platform's volumes, so {name}, which main mounts, becomes a claim that must exist: add this volume, too"
                for name in missing
            ),
        )
        for pod, *missing in (
            ("pod: {volumes: [{name: v, emptyDir: {}}]}", "epp-config"),
            (
                "main: {volumeMounts: [{name: epp-config, mountPath: /etc/epp}]}, pod: {volumes: [{name: v, emptyDir: {}}]}",
                "epp-config",
            ),
            (
                "main: {volumeMounts: [{name: x, mountPath: /etc/epp}]}, pod: {volumes: [{name: x, emptyDir: {}}, {name: y, emptyDir: {}}]}",
            ),
            ("pod: {volumes: []}",),
        )
    ),
    *(
        Case(
            f"{version}: annotations that are nearly read",
            made,
            *queue,
            "warning: metadata.annotations[\"nvidia.com/enable-metrics\"]: 'False' has no effect: the platform reads only 'false'",
            "warning: spec.annotations[\"nvidia.com/disable-image-pull-secret-discovery\"]: 'True' has no effect: the platform reads only 'true'",
            f"warning: spec.{at}.annotations[\"nvidia.com/enable-metrics\"]: 'FALSE' has no effect: the platform reads only 'false'",
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
        "warning: spec.components[0].podTemplate.metadata.name: has no effect: pods get only labels and annotations from the metadata of their template",
        "warning: spec.components[0].podTemplate.metadata.finalizers: has no effect: pods get only labels and annotations from the metadata of their template",
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
        "warning: spec.pvcs is deprecated since v0.11.0, and is removed in v1.0: create the PersistentVolumeClaim yourself, and mount it by its name",
        "warning: spec.pvcs[0].size: has no effect: the claim is not created; set create: true, or leave it out",
        "warning: spec.pvcs[0].volumeAccessMode: has no effect: the claim is not created; set create: true, or leave it out",
        "warning: spec.services.a.resources.limits.gpuType: has no effect without gpu: set gpu to the number of GPUs",
        "warning: spec.services.b.sharedMemory.size: has no effect: disabled is true; leave one of the two out",
        "warning: spec.services.d.subComponentType: becomes only a label of the pods: only prefill and decode with componentType worker change what pods run",
        "warning: spec.services.e.subComponentType: becomes only a label of the pods: only prefill and decode with componentType worker change what pods run",
        "warning: spec.services.f.serviceName: has no effect: the name of the service is its key in spec.services, 'f'",
    ),
    Case(
        "alpha: compilation caches",
        alpha("""
            a:
              volumeMounts:
              - {name: v, mountPoint: /v}
              - {name: w, useAsCompilationCache: true}
              - {name: x, mountPoint: /x, useAsCompilationCache: true}
            b: {kind: frontend, volumeMounts: [{name: v, mountPoint: /v, useAsCompilationCache: true}]}
        """),
        "warning: spec.services.a.volumeMounts[2].useAsCompilationCache: has no effect: volumeMounts[1] is the compilation cache, and a component has one; this is mounted like any volume",
        "warning: spec.services.b.volumeMounts[0].useAsCompilationCache: has no effect: only workers compile; this is mounted like any volume",
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
        "warning: spec.services.a.volumeMounts: has no effect: spec.services.a.extraPodSpec.mainContainer.volumeMounts replaces it; write everything there",
        "warning: spec.services.a.envFromSecret: has no effect: spec.services.a.extraPodSpec.mainContainer.envFrom replaces it; write everything there",
        "warning: spec.services.a.resources.claims: has no effect: spec.services.a.extraPodSpec.mainContainer.resources.claims replaces it; write everything there",
        "warning: spec.services.a.extraPodSpec.mainContainer.name: has no effect: the container always has the name main",
        "warning: spec.services.a.extraPodSpec.containers[1]: has no effect: the container main is written in extraPodSpec.mainContainer",
    ),
    Case(
        "alpha: a gateway of no VirtualService",
        services({"a": service("frontend", ingress={"enabled": True, "host": "h", "virtualServiceGateway": "g"})}),
        "warning: spec.services.a.ingress is deprecated since v0.11.0, and is removed in v1.0: write an Ingress or an HTTPRoute to the component's Service",
        "warning: spec.services.a.ingress.virtualServiceGateway: has no effect without useVirtualService: true; the platform creates an Ingress",
    ),
    Case(
        "alpha: what a VirtualService does not use",
        alpha("""
            a:
              kind: frontend
              ingress: {enabled: true, host: h, useVirtualService: true, virtualServiceGateway: g, tls: {secretName: s}}
        """),
        "warning: spec.services.a.ingress is deprecated since v0.11.0, and is removed in v1.0: write an Ingress or an HTTPRoute to the component's Service",
        "warning: spec.services.a.ingress.tls: has no effect: the platform creates a VirtualService, whose Gateway 'g' has the certificates",
    ),
    *both(
        "topology of a component alone",
        alone(ALPHA, **service(serviceName="a", topologyConstraint={"packDomain": "rack"})),
        alone(BETA, **component("a", topologyConstraint={"packDomain": "rack"})),
        "warning: spec.topologyConstraint: has no effect: only Grove packs pods by topology, and Grove runs only graphs; write a DynamoGraphDeployment",
    ),
    *both(
        "annotations of pods on a component alone",
        manifest(COMPONENT, ALPHA, service(serviceName="a"), **OF_PODS),
        manifest(COMPONENT, BETA, component("a"), **OF_PODS),
        'warning: metadata.annotations["nvidia.com/enable-metrics"]: has no effect here: write it in {at}.annotations',
        'warning: metadata.annotations["nvidia.com/deployment-strategy"]: has no effect here: write it in {at}.annotations',
        at=("spec.extraPodMetadata", "spec.podTemplate.metadata"),
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
    *both(
        "a source that no worker loads (adapter)", *in_both("DynamoModel", {**MODEL, "modelType": "adapter"}), UNLOADED
    ),
    *both("a source that no worker loads (lora)", *in_both("DynamoModel", {**MODEL, "modelType": "lora"})),
    *both(
        "the Job of a checkpoint",
        *in_both("DynamoCheckpoint", {"identity": IDENTITY, "job": yaml.load(JOB_OF_A_CHECKPOINT, yaml.CSafeLoader)}),
        "warning: spec.job.podTemplateSpec.metadata.name: has no effect: the pod gets only labels and annotations from the metadata of its template",
        "warning: spec.job.podTemplateSpec.spec.restartPolicy: has no effect: the Job never restarts its pod",
        "warning: spec.job.backoffLimit: has no effect: the Job runs once; to repeat it, recreate the DynamoCheckpoint",
        "warning: spec.job.ttlSecondsAfterFinished: has no effect: the Job is kept for 300 seconds after its end",
    ),
    Case(
        "beta: what a simulation does not use (rapid)",
        request("searchStrategy: rapid", ONLY_OF_JOBS),
        *(
            f"warning: spec.{at}: has no effect: engines are simulated, and no Job runs; set searchStrategy to thorough to measure them"
            for at in (
                "hardware.interconnect",
                "hardware.rdma",
                "overrides.profilingJob.backoffLimit",
                "overrides.profilingJob.template.metadata",
                "overrides.profilingJob.template.spec.priorityClassName",
            )
        ),
    ),
    Case("beta: what a simulation does not use (thorough)", request("searchStrategy: thorough", ONLY_OF_JOBS)),
    Case(
        "beta: containers that no Job has (thorough)",
        request("searchStrategy: thorough", CONTAINERS_OF_JOBS),
        *(
            f"warning: spec.overrides.profilingJob.template.spec.containers[{at}: has no effect: {why}; leave it out"
            for at, why in (
                ("0].image", "this container runs the profiler's image, because it needs its Python"),
                ("2]", "the Job has only the containers profiler and output-copier"),
            )
        ),
    ),
    Case(
        "beta: what to favour next to latencies (rapid)",
        request("searchStrategy: rapid", LATENCIES),
        "warning: spec.sla.optimizationType: has no effect together with ttft, itl: the simulation selects engines by latency; leave one or the other out",
    ),
    Case("beta: what to favour next to latencies (thorough)", request("searchStrategy: thorough", LATENCIES)),
    Case(
        "alpha: what to favour next to latencies",
        request(
            "backend: auto",
            "profilingConfig: {profilerImage: i, config: {sla: {optimizationType: latency, ttft: 200}}}",
            version=ALPHA,
        ),
        "warning: spec.profilingConfig.profilerImage is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has image",
        "warning: spec.profilingConfig.config is deprecated since v0.11.0, and is removed in v1.0: v1beta1 has sla, workload, modelCache and features.planner",
        "warning: spec.profilingConfig.config.sla.optimizationType: has no effect together with ttft: the simulation selects engines by latency; leave one or the other out",
    ),
]
