# ruff: noqa: E501 - messages stand here whole
"""Cases about pods, claims and ingresses that Kubernetes or rendering would refuse later."""

from typing import Any

from .building import GROVE, Case, alpha, alpha_pod, beta, beta_pod, component, components, services

CLAIM: dict[str, Any] = {
    "name": "models",
    "create": True,
    "size": "1Gi",
    "storageClass": "fast",
    "volumeAccessMode": "ReadWriteMany",
}
INGRESS_IS_DEPRECATED = "warning: spec.services.{}.ingress is deprecated since v0.11.0, and is removed in v1.0: write an Ingress or an HTTPRoute to the component's Service"


def drain(seconds: str) -> dict[str, str]:
    """A component with a drain time for terminating workers."""
    return {"name": "DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS", "value": seconds}


CASES: list[Case] = [
    Case(
        "alpha: probes and claims of services that no container can have",
        alpha("""
            a: {livenessProbe: {successThreshold: 2}, readinessProbe: {terminationGracePeriodSeconds: 5, successThreshold: 2}}
            b: {livenessProbe: {successThreshold: 2}, main: {image: x, livenessProbe: {successThreshold: 1}}}
            c: {resources: {claims: [{name: gpu}, {name: net}]}, pod: {resourceClaims: [{name: net, resourceClaimName: net}]}}
            d: {resources: {claims: [{name: gpu}]}, main: {image: x, resources: {claims: [{name: other}]}}}
        """),
        "error: spec.services.a.livenessProbe.successThreshold: must be 1 in a livenessProbe, not 2",
        "error: spec.services.a.readinessProbe.terminationGracePeriodSeconds: not allowed in a readinessProbe, which never stops a container",
        "error: spec.services.c.resources.claims[0].name: 'gpu' is not a claim of the pod: add it to spec.services.c.extraPodSpec.resourceClaims",
        "error: spec.services.d.extraPodSpec.mainContainer.resources.claims[0].name: 'other' is not a claim of the pod: add it to its resourceClaims",
        "warning: spec.services.d.resources.claims: has no effect: spec.services.d.extraPodSpec.mainContainer.resources.claims replaces it; write everything there",
    ),
    Case(
        "beta: pods that end, with Grove",
        components(beta_pod("a", restartPolicy="Never", activeDeadlineSeconds=600)),
        facts=GROVE,
    ),
    Case(
        "alpha: devices without limits",
        alpha(
            "a: {resources: {requests: {gpu: '1', cpu: '1', custom: {example.com/nic: '2'}}}}",
            "b: {gpuMemoryService: {enabled: true}, resources: {requests: {gpu: '1'}}}",
            "c: {pod: {containers: [{name: log, image: x, resources: {requests: {a.com/b: 1}}}]}}",
        ),
        'error: spec.services.a.resources.requests.custom["example.com/nic"]: needs a limit of the same amount: example.com/nic cannot be overcommitted',
        "error: spec.services.a.resources.requests.gpu: needs a limit of the same amount: nvidia.com/gpu cannot be overcommitted",
        'error: spec.services.c.extraPodSpec.containers[0].resources.requests["a.com/b"]: needs a limit of the same amount: a.com/b cannot be overcommitted',
    ),
    Case(
        "alpha: Secrets of variables that can be none",
        alpha(
            "a: {envFromSecret: HF_TOKEN}",
            "b: {frontendSidecar: {image: x, envFromSecret: HF_TOKEN}}",
            "c: {envFromSecret: hf-token}",
        ),
        "error: spec.services.a.envFromSecret: 'HF_TOKEN' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        "error: spec.services.b.frontendSidecar.envFromSecret: 'HF_TOKEN' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
    ),
    Case(
        "alpha: probes that ask nothing",
        alpha("""
            a: {main: {livenessProbe: {periodSeconds: 5}}}
            b: {kind: default, main: {livenessProbe: {periodSeconds: 5}}}
            c: {kind: '', livenessProbe: {periodSeconds: 5}}
            d:
              kind: default
              livenessProbe: {exec: {command: [x]}}
              main: {image: x, livenessProbe: {periodSeconds: 5}}
        """),
        "error: spec.services.b.extraPodSpec.mainContainer.livenessProbe: has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc",
        "error: spec.services.c.livenessProbe: has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc",
    ),
    Case(
        "beta: probes that ask nothing",
        beta(
            "a: {kind: frontend, main: {startupProbe: {periodSeconds: 5}}}",
            "b: {pod: {others: [{name: log, image: x, livenessProbe: {}}]}}",
            "c: {frontendSidecar: front, pod: {others: [{name: front, image: x, livenessProbe: {periodSeconds: 5}}]}}",
        ),
        "error: spec.components[0].podTemplate.spec.containers[0].startupProbe: has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc",
        "error: spec.components[1].podTemplate.spec.containers[1].livenessProbe: has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc",
    ),
    Case(
        "beta: mounts that can be no claims",
        beta(
            "a: {main: {volumeMounts: [{name: qwen2.5, mountPath: /q}, {name: Q, mountPath: /r}]}}",
            "b: {compilationCache: {pvcName: Cache, mountPath: /c}}",
        ),
        "error: spec.components[0].podTemplate.spec.containers[0].volumeMounts[1].name: is read as the name of a claim, because the pod has no volume of this name, and 'Q' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        "error: spec.components[1].compilationCache.pvcName: is read as the name of a claim, because the pod has no volume of this name, and 'Cache' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
    ),
    Case(
        "alpha: other containers that mount no volume",
        alpha("""
            a:
              volumeMounts: [{name: models, mountPoint: /models}]
              pod:
                containers:
                - name: log
                  image: x
                  volumeMounts: [{name: model, mountPath: /m}, {name: models, mountPath: /n}, {name: shared-memory, mountPath: /o}]
        """),
        "error: spec.services.a.extraPodSpec.containers[0].volumeMounts[0].name: 'model' is not a volume of the pod; did you mean models?: add it to spec.services.a.extraPodSpec.volumes; only main can mount claims by name",
    ),
    Case(
        "beta: other containers that mount no volume",
        beta("""
            a:
              pod:
                volumes: [{name: logs, emptyDir: {}}]
                initContainers:
                - {name: get, image: x, volumeMounts: [{name: logs, mountPath: /l}, {name: cache, mountPath: /c}, {name: topology-labels, mountPath: /t}]}
        """),
        "error: spec.components[0].podTemplate.spec.initContainers[0].volumeMounts[1].name: 'cache' is not a volume of the pod: add it to spec.components[0].podTemplate.spec.volumes; only main can mount claims by name",
    ),
    Case(
        "alpha: paths with two mounts",
        alpha("""
            a:
              volumeMounts:
              - {name: a, mountPoint: /models}
              - {name: b, mountPoint: /models}
              - {name: c, mountPoint: /dev/shm}
              - {name: d, mountPoint: /models, useAsCompilationCache: true}
        """),
        "error: spec.services.a.volumeMounts[1].mountPoint: '/models' is where 'a' is mounted already (spec.services.a.volumeMounts[0]): mount one of them elsewhere",
        "error: spec.services.a.volumeMounts[3].mountPoint: '/models' is where 'a' is mounted already (spec.services.a.volumeMounts[0]): mount one of them elsewhere",
        "warning: spec.services.a.volumeMounts[2]: the platform's /dev/shm replaces it: set the size in sharedMemory.size, or set disabled: true there to keep this one",
    ),
    Case(
        "beta: paths with two mounts",
        beta(
            """
            a:
              compilationCache: {pvcName: cache}
              main: {volumeMounts: [{name: m, mountPath: /root/.cache/vllm}]}
            b:
              compilationCache: {pvcName: cache, mountPath: /c}
              main: {volumeMounts: [{name: cache, mountPath: /c}]}
            """,
            backendFramework="vllm",
        ),
        "error: spec.components[0].compilationCache.mountPath: '/root/.cache/vllm' is where 'm' is mounted already (spec.components[0].podTemplate.spec.containers[0].volumeMounts[0]): mount one of them elsewhere",
    ),
    Case(
        "alpha: paths of mounts that are taken in another way",
        alpha("a: {volumeMounts: [{name: a, mountPoint: models}, {name: b, mountPoint: '/models:ro'}]}"),
        "warning: spec.services.a.volumeMounts[0].mountPoint: is relative to the root of the container: write '/models'",
        "warning: spec.services.a.volumeMounts[1].mountPoint: has a ':', which not all container runtimes accept in a mount path",
    ),
    Case(
        "beta: paths of mounts that are taken in another way",
        components(component("a", compilationCache={"pvcName": "cache", "mountPath": "cache"})),
        "warning: spec.components[0].compilationCache.mountPath: is relative to the root of the container: write '/cache'",
    ),
    Case(
        "beta: a path of a mount that Kubernetes takes, and not all container runtimes",
        beta("a: {main: {image: x, volumeMounts: [{name: a, mountPath: '/models:ro'}]}}"),
        "warning: spec.components[0].podTemplate.spec.containers[0].volumeMounts[0].mountPath: has a ':', which not all container runtimes accept in a mount path",
    ),
    Case(
        "alpha: pods that Grove does not place",
        services({"a": alpha_pod(nodeName="node-1")}),
        "warning: spec.services.a.extraPodSpec.nodeName: Grove places pods itself and rejects new graphs whose pods set this field: leave it out, or disable Grove for this graph",
        facts=GROVE,
    ),
    Case(
        "beta: workers that leave before, or after, their requests",
        components(
            {**beta_pod("a", terminationGracePeriodSeconds=600), "type": "worker"},
            {**beta_pod("b", {"env": [drain("599.5")]}, terminationGracePeriodSeconds=600), "type": "decode"},
            {**beta_pod("c", {"env": [{"name": "A"}, drain("60")]}), "type": "prefill"},
            {**beta_pod("d", {"env": [drain("60")]}, terminationGracePeriodSeconds=60), "type": "worker"},
            {**beta_pod("e", {"env": [drain("nan")]}, terminationGracePeriodSeconds=60), "type": "worker"},
            {
                **beta_pod("f", {"envFrom": [{"secretRef": {"name": "s"}}]}, terminationGracePeriodSeconds=600),
                "type": "worker",
            },
            {**beta_pod("g", terminationGracePeriodSeconds=600), "type": "frontend"},
            {**beta_pod("h", terminationGracePeriodSeconds=60), "type": "worker"},
        ),
        "warning: spec.components[0].podTemplate.spec.terminationGracePeriodSeconds: a worker that stops aborts its requests after 5 seconds: to give them more time, set DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS in the env of main to less than this number",
        "warning: spec.components[2].podTemplate.spec.containers[0].env[1].value: Kubernetes kills a worker 60 seconds after it begins to stop: set terminationGracePeriodSeconds to more than 60, the value of DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS",
        "warning: spec.components[3].podTemplate.spec.containers[0].env[0].value: Kubernetes kills a worker 60 seconds after it begins to stop: set terminationGracePeriodSeconds to more than 60, the value of DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS",
    ),
    Case(
        "beta: workers that leave before, or after, their requests, by a variable of their graph",
        components(
            {**beta_pod("a", terminationGracePeriodSeconds=600), "type": "worker"},
            {**beta_pod("b", {"env": [drain("5")]}), "type": "decode"},
            {**beta_pod("c"), "type": "prefill"},
            {**beta_pod("d"), "type": "worker"},
            env=[{"name": "A"}, drain("300")],
        ),
        *(
            f"warning: spec.components[{index}].podTemplate.spec.terminationGracePeriodSeconds: Kubernetes kills a worker 60 seconds after it begins to stop: set terminationGracePeriodSeconds to more than 300, the value of DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS"
            for index in (2, 3)
        ),
    ),
    Case(
        "beta: containers that sleep longer than their pod has to end",
        beta("""
            a: {main: {lifecycle: {preStop: {sleep: {seconds: 61}}}}}
            b:
              kind: epp
              eppConfig: {config: {plugins: [], schedulingProfiles: []}}
              main: {lifecycle: {preStop: {sleep: {seconds: 130}}}}
            c: {main: {lifecycle: {preStop: {sleep: {seconds: 60}}, postStart: {sleep: {seconds: 0}}}}}
            d:
              main: {lifecycle: {preStop: {sleep: {seconds: 100}}}}
              pod:
                terminationGracePeriodSeconds: 100
                others: [{name: log, image: x, lifecycle: {postStart: {sleep: {seconds: 101}}}}]
        """),
        "error: spec.components[0].podTemplate.spec.containers[0].lifecycle.preStop.sleep.seconds: must be at most 60, the pod's termination grace period in seconds: write less, or set spec.components[0].podTemplate.spec.terminationGracePeriodSeconds to at least 61",
        "error: spec.components[3].podTemplate.spec.containers[1].lifecycle.postStart.sleep.seconds: must be at most 100, the pod's termination grace period in seconds: write less, or set spec.components[3].podTemplate.spec.terminationGracePeriodSeconds to at least 101",
        "warning: spec.components[3].podTemplate.spec.terminationGracePeriodSeconds: a worker that stops aborts its requests after 5 seconds: to give them more time, set DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS in the env of main to less than this number",
    ),
    Case("beta: pods that name their node, without Grove", components(beta_pod("a", nodeName="node-1"))),
    Case(
        "alpha: claims that cannot be made",
        alpha(
            "a: {}",
            pvcs=[
                {**CLAIM, "volumeAccessMode": "ReadWriteMny", "size": "-1Gi"},
                {**CLAIM, "name": "My_Models", "storageClass": "Fast"},
                {**CLAIM, "volumeAccessMode": "ReadWriteOncePod", "size": 5},
                {"name": "Not_Made"},
            ],
        ),
        "error: spec.pvcs[0].volumeAccessMode: 'ReadWriteMny' is not an access mode; one of 'ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'; did you mean ReadWriteMany?",
        "error: spec.pvcs[0].size: must be above 0, not '-1Gi'",
        "error: spec.pvcs[1].name: 'My_Models' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        "error: spec.pvcs[1].storageClass: 'Fast' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        "warning: spec.pvcs is deprecated since v0.11.0, and is removed in v1.0: create the PersistentVolumeClaim yourself, and mount it by its name",
    ),
    Case(
        "alpha: ingresses that cannot be made",
        alpha(
            """
            a: {kind: frontend, ingress: {enabled: true, host: My_Chat}}
            b: {kind: frontend, ingress: {enabled: true, host: 10.0.0, hostSuffix: '1'}}
            c:
              kind: frontend
              ingress:
                enabled: true
                host: chat
                hostPrefix: '*.'
                ingressControllerClassName: Nginx
                tls: {secretName: a/b}
                labels: {a: b c}
            d: {kind: frontend, ingress: {enabled: true, host: A_B, useVirtualService: true, virtualServiceGateway: g}}
            e: {kind: frontend, ingress: {host: A_B}}
            """,
            f"f: {{kind: frontend, ingress: {{enabled: true, host: a, hostSuffix: {'b.' * 130}c}}}}",
        ),
        "error: spec.services.a.ingress.host: results in the host 'My_Chat.local', which is not a DNS name (lower-case letters, digits, '-' and '.', at most 253 characters): change host",
        "error: spec.services.b.ingress.host: results in the host '10.0.0.1', an IP address, but an Ingress needs a DNS name: change host or hostSuffix",
        "error: spec.services.c.ingress.labels.a: 'b c' is not a valid label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last",
        "error: spec.services.c.ingress.ingressControllerClassName: 'Nginx' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        "error: spec.services.c.ingress.tls.secretName: 'a/b' is not a valid object name: lower-case letters, digits, '-' and '.', a letter or digit first and last",
        "error: spec.services.f.ingress.host: results in the host 'a.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b.b...., which is not a DNS name (lower-case letters, digits, '-' and '.', at most 253 characters): change host or hostSuffix",
        *map(INGRESS_IS_DEPRECATED.format, "abcdef"),
    ),
]
