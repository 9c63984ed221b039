# ruff: noqa: E501 - messages stand here whole
"""Errors of pod templates, in the messages that their author reads.

Messages that tests/admission/cases/pods already has are not repeated here.
"""

import copy
import json
import re
from typing import Any

import pytest
import yaml
from dynamo_shared.api.embedded import Checker
from dynamo_shared.api.embedded.rules.templates import of_template
from dynamo_shared.api.field_errors import path_of
from dynamo_shared.api.model import embedded
from dynamo_shared.api.resources import DEPLOYMENTS
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples

from .published import FULL_TEMPLATE, document

TEMPLATE = "io.k8s.api.core.v1.PodTemplateSpec"
FULL = yaml.load(FULL_TEMPLATE.read_text(), yaml.CSafeLoader)
CHECKER = Checker.from_documents(
    document(),
    resources=[DEPLOYMENTS],
    schemas=lambda _: {"type": "object", "properties": {"template": embedded(TEMPLATE, "spec.containers")}},
)


def errors(template: Any) -> list[str]:
    return [
        str(error) for error in CHECKER.errors({"apiVersion": "apps/v1", "kind": "Deployment", "template": template})
    ]


def rows_of(table: str) -> dict[str, str]:
    """Fields as YAML, and what is said about them: lines with ` => ` between, or with the second on the next line."""
    return dict(re.findall(r"^(.+?) =>\s+(.+)$", table, re.MULTILINE))


def full() -> Any:
    return copy.deepcopy(FULL)


def in_pod(**fields: Any) -> list[str]:
    return [error.removeprefix("template.spec.") for error in errors({"spec": fields})]


def in_main(**fields: Any) -> list[str]:
    return [error.removeprefix("containers[0].") for error in in_pod(containers=[{"name": "main", **fields}])]


def test_a_template_with_all_fields_is_valid() -> None:
    template = full()
    before = copy.deepcopy(template)
    assert errors(template) == []
    assert template == before


@pytest.mark.parametrize("template", [{}, {"spec": {}}, {"spec": {"containers": []}}, {"metadata": None, "spec": None}])
def test_a_partial_template_is_valid(template: Any) -> None:
    assert errors(template) == []


def test_null_is_absent() -> None:
    assert in_main(image=None, env=None, args=[None], livenessProbe=None, resources={"limits": {"cpu": None}}) == []
    assert in_main(env=[None, {"name": None}]) == [
        "env[0].name: required, and missing",
        "env[1].name: required, and missing",
    ]


PUBLISHED = rows_of("""
resources: {Limits: {}} => resources.Limits: no such field; did you mean limits?
nothing_like_it: 1 => nothing_like_it: no such field
ports: [{containerPort: 1, zzz: 1}] => ports[0].zzz: no such field; there are containerPort, hostIP, hostPort, name, protocol
resources: x => resources: must be an object, not 'x'
env: [A=b] => env[0]: must be an object, not 'A=b'
env: [{name: A, value: 1}] => env[0].value: must be a string, not 1
env: [{name: A, value: true}] => env[0].value: must be a string, not true
env: [{name: ''}] => env[0].name: must not be empty
args: --model x => args: must be a list, not '--model x'
args: [5] => args[0]: must be a string, not 5
tty: 'yes' => tty: must be true or false, not 'yes'
ports: [{containerPort: http}] => ports[0].containerPort: must be an integer, not 'http'
ports: [{containerPort: 80.5}] => ports[0].containerPort: must be an integer, not 80.5
ports: [{containerPort: true}] => ports[0].containerPort: must be an integer, not true
startupProbe: {periodSeconds: 10000000000} => startupProbe.periodSeconds: 10000000000 does not fit an integer of 32 bits
ports: [{containerPort: 1, protocol: HTTP}] => ports[0].protocol: 'HTTP' is not allowed; one of SCTP, TCP, UDP
lifecycle: {stopSignal: SIGTERN} => lifecycle.stopSignal: 'SIGTERN' is not allowed; did you mean SIGTERM?
livenessProbe: {httpGet: {port: true}} => livenessProbe.httpGet.port: must be an integer or a string, not true
resources: {limits: {memory: 8GB}} => resources.limits.memory: '8GB' is not a quantity; examples: 8Gi, 500m, 2, 1e9
resources: {limits: {memory: [8Gi]}} => resources.limits.memory: must be a quantity, not a list; examples: 8Gi, 500m, 2, 1e9
volumeMounts: [{name: a, mountPath: /x}, {name: b, mountPath: /x}] =>
    volumeMounts[1]: has the same mountPath '/x' as the item at 0
ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}] =>
    ports[1]: has the same containerPort 80 and protocol 'TCP' as the item at 0
""")


@pytest.mark.parametrize(("fields", "message"), PUBLISHED.items())
def test_errors_that_the_published_types_detect(fields: str, message: str) -> None:
    assert in_main(**yaml.load(fields, yaml.CSafeLoader)) == [message]


NOT_PUBLISHED = rows_of("""
env: [{name: A=B}] =>
    env[0].name: 'A=B' is not a valid name of an environment variable: printable ASCII characters, and no '=' among them
env: [{name: A, valueFrom: {}}] => env[0].valueFrom: must have a source, such as fieldRef or secretKeyRef
env: [{name: A, valueFrom: {secretKeyRef: {key: k}}}] => env[0].valueFrom.secretKeyRef.name: required, and missing
envFrom: [{prefix: A_}] => envFrom[0]: must have a source: configMapRef or secretRef
envFrom: [{secretRef: {name: s}, configMapRef: {name: c}}] => envFrom[0]: must have one source, not a configMapRef and a secretRef
ports: [{containerPort: 0}] => ports[0].containerPort: 0 is too small; at least 1
ports: [{containerPort: 70000}] => ports[0].containerPort: 70000 is too large; at most 65535
ports: [{containerPort: 1, name: HTTP}] =>
    ports[0].name: 'HTTP' is not a valid port name: at most 15 lower-case letters, digits and single '-' between them, and at least one letter
ports: [{containerPort: 1, name: a}, {containerPort: 2, name: a}] => ports[1].name: another port of the container has the name 'a'
resources: {limits: {gpu: 1}} => resources.limits.gpu: no such resource; the name of a GPU is nvidia.com/gpu
resources: {limits: {memroy: 1}} => resources.limits.memroy: no such resource; did you mean memory?
resources: {limits: {fpga: 1}} =>
    resources.limits.fpga: no such resource; other resources have a domain in their name, such as nvidia.com/gpu
resources: {limits: {cpu: '-1'}} => resources.limits.cpu: must not be negative
resources: {limits: {nvidia.com/gpu: 1500m}} => resources.limits["nvidia.com/gpu"]: must be a whole number, not '1500m'
resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}} => resources.requests.memory: 2Gi is more than the limit, 1Gi
resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}} =>
    resources.requests["nvidia.com/gpu"]: must equal the limit, 2; nvidia.com/gpu cannot be overcommitted
livenessProbe: {exec: {command: [a]}, grpc: {port: 1}} => livenessProbe: must have one action, not exec and grpc
livenessProbe: {successThreshold: 2} => livenessProbe.successThreshold: must be 1 in a livenessProbe, not 2
livenessProbe: {periodSeconds: -1} => livenessProbe.periodSeconds: -1 is too small; at least 0
readinessProbe: {tcpSocket: {port: my_port}} =>
    readinessProbe.tcpSocket.port: 'my_port' is not a valid port name: at most 15 lower-case letters, digits and single '-' between them, and at least one letter
restartPolicy: always => restartPolicy: 'always' is not allowed; one of Always, Never, OnFailure
securityContext: {runAsUser: -1} => securityContext.runAsUser: -1 is too small; at least 0
""")


@pytest.mark.parametrize(("fields", "message"), NOT_PUBLISHED.items())
def test_errors_that_the_published_types_do_not_detect(fields: str, message: str) -> None:
    assert in_main(**yaml.load(fields, yaml.CSafeLoader)) == [message]


OF_PODS = rows_of("""
containers: main => containers: must be a list, not 'main'
containers: [{name: a}, {name: a}] => containers[1]: has the same name 'a' as the item at 0
{containers: [{name: a}], initContainers: [{name: a}]} => initContainers[0].name: another container already has the name 'a'
containers: [{name: Main}] =>
    containers[0].name: 'Main' is not a valid name: lower-case letters, digits and '-', a letter or digit first and last, at most 63 characters
restartPolicy: Sometimes => restartPolicy: 'Sometimes' is not allowed; one of Always, Never, OnFailure
volumes: [{name: a, emptyDir: {}, hostPath: {path: /x}}] => volumes[0]: must have one source, not emptyDir and hostPath
volumes: [{name: a, emptyDir: {sizeLimit: -1Gi}}] => volumes[0].emptyDir.sizeLimit: must not be negative
volumes: [{name: a, secret: {}}] => volumes[0].secret.secretName: required, and missing
tolerations: [{operator: Exists, value: x}] => tolerations[0].value: must be empty if the operator is Exists
tolerations: [{}] => tolerations[0].operator: must be Exists if there is no key
tolerations: [{key: k, tolerationSeconds: 5}] => tolerations[0].effect: must be NoExecute if tolerationSeconds is set
nodeSelector: {pool: a b} =>
    nodeSelector.pool: 'a b' is not a valid label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last
nodeSelector: {gpus: 8} => nodeSelector.gpus: must be a string, not 8
""")


@pytest.mark.parametrize(("fields", "message"), OF_PODS.items())
def test_pods(fields: str, message: str) -> None:
    assert in_pod(**yaml.load(fields, yaml.CSafeLoader)) == [message]


def test_labels_and_annotations() -> None:
    key = "is not a valid key: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last, optionally after a DNS name and a '/'"
    annotations = {"Example.com/note": "any thing", "a/b/c": ""}
    metadata = {"labels": {"a b": "", "ok": "x" * 64}, "annotations": annotations, "creationTimestamp": "yesterday"}
    assert errors({"metadata": metadata}) == [
        "template.metadata.creationTimestamp: 'yesterday' is not a valid time; write it like 2026-01-31T12:00:00Z",
        f'template.metadata.labels["a b"]: {key}',
        f"template.metadata.labels.ok: '{'x' * 64}' is not a valid label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last",
        f'template.metadata.annotations["a/b/c"]: {key}',
    ]


def test_all_errors_are_reported_at_once() -> None:
    resources = {"limts": {}, "requests": {"cpu": 2}, "limits": {"cpu": 1}}
    main = {"name": "main", "env": "x", "resources": resources, "tty": 1}
    assert in_pod(containers=[main], volumes={}) == [
        "containers[0].env: must be a list, not 'x'",
        "containers[0].resources.limts: no such field; did you mean limits?",
        "containers[0].resources.requests.cpu: 2 is more than the limit, 1",
        "containers[0].tty: must be true or false, not 1",
        "volumes: must be a list, not an object",
    ]


def test_fields_that_the_platform_completes_may_be_missing() -> None:
    """Defaults set the image of main, a probe's handler and a claim's volume; the last of equal variables counts."""
    assert (
        in_main(
            livenessProbe={"periodSeconds": 5},
            volumeMounts=[{"name": "model-cache", "mountPath": "/models"}],
            env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        )
        == []
    )


def test_quantities_are_compared_as_they_are_stored() -> None:
    """In thousandths, rounded up. A prefix of a variable source may end with '-', which no object name does."""
    assert in_main(resources={"requests": {"cpu": "200u"}, "limits": {"cpu": "100u"}}) == []
    assert in_main(resources={"requests": {"cpu": "1.0002"}, "limits": {"cpu": "1.0001"}}) == []
    assert in_main(resources={"requests": {"cpu": "1.0011"}, "limits": {"cpu": "1.001"}}) != []
    assert in_main(envFrom=[{"secretRef": {"name": "a-"}}]) == []
    assert in_main(envFrom=[{"secretRef": {"name": "-"}}]) != []


def test_the_errors_of_an_object_are_limited() -> None:
    result = in_pod(**{f"field{number}": 1 for number in range(100_000)})
    assert len(result) == 100
    assert len(in_main(env=[{}] * 1000)) == 100


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@examples(30)
@given(st.data())
def test_no_value_in_any_place_raises(data: st.DataObject) -> None:
    template = full()
    node, path = template, []
    while isinstance(node, dict | list) and node:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        key = data.draw(st.sampled_from(list(keys)))
        path.append(key)
        if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.integers(0, 4)) == 0:
            node[key] = data.draw(json_values)
            break
        node = node[key]
    json.dumps(template)
    for error in errors(template):
        assert error.startswith("template.")


PODS_THAT_DO_NOT_HOLD_TOGETHER = rows_of("""
{shareProcessNamespace: true, hostPID: true} => shareProcessNamespace: cannot be combined with hostPID
{dnsPolicy: None, dnsConfig: {}} => dnsConfig.nameservers: required, because dnsPolicy is None
resourceClaims: [{name: a}] => resourceClaims[0]: must have one source: resourceClaimName or
resourceClaims: [{name: A, resourceClaimName: c}] => resourceClaims[0].name: 'A' is not a valid name: lower-case letters
volumes: [{name: v, hostPath: {path: /../a}}] => volumes[0].hostPath.path: '/../a' must not contain
volumes: [{name: v, nfs: {server: s, path: models}}] => volumes[0].nfs.path: 'models' must be an absolute path
volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: /p}]}}] =>
    volumes[0].secret.items[0].path: '/p' must be a relative path
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}} =>
    affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: required, because operator is In
""") | {"securityContext: {seccompProfile: {type: Localhost}}": "securityContext.seccompProfile.localhostProfile: "}


@pytest.mark.parametrize(("fields", "problem"), PODS_THAT_DO_NOT_HOLD_TOGETHER.items())
def test_contradicting_pods(fields: str, problem: str) -> None:
    (observed,) = in_pod(**yaml.load(fields, yaml.CSafeLoader))
    assert observed.startswith(problem)


_AFFINITY = (
    "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{}]}}}}}}"
)
_NEARBY = "affinity: {{podAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{}]}}}}"
_SPREAD = "topologySpreadConstraints: [{{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: {}}}]"
_PROJECTED = "volumes: [{{name: v, projected: {{sources: [{}]}}}}]"
_CLAIM = "volumes: [{{name: v, ephemeral: {{volumeClaimTemplate: {{spec: {}}}}}}}]"
#: What the API server rejects in pods of a template, and our message.
REFUSED_LATER = rows_of("""
activeDeadlineSeconds: 0 => activeDeadlineSeconds: 0 is too small; at least 1
activeDeadlineSeconds: 2147483648 => activeDeadlineSeconds: 2147483648 is too large; at most 2147483647
tolerations: [{key: k, value: a b}] => tolerations[0].value: 'a b' is not a valid label value: at most
dnsConfig: {searches: [a..b]} => dnsConfig.searches[0]: 'a..b' is not a valid domain: lower-case
dnsConfig: {searches: ['a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a']} =>
    dnsConfig.searches: must not have more than 32 domains, not 33
dnsConfig: {options: [{value: '2'}]} => dnsConfig.options[0].name: required: the name of an option
hostAliases: [{ip: host, hostnames: [a]}] => hostAliases[0].ip: 'host' is not an IP address
hostAliases: [{ip: 10.0.0.1, hostnames: [A_B]}] => hostAliases[0].hostnames[0]: 'A_B' is not a valid object name
readinessGates: [{conditionType: a b}] => readinessGates[0].conditionType: 'a b' is not a valid key: at most
schedulingGates: [{name: a b}] => schedulingGates[0].name: 'a b' is not a valid key: at most
overhead: {cpu: '-1'} => overhead.cpu: must not be negative
securityContext: {sysctls: [{name: A, value: '1'}]} => securityContext.sysctls[0].name: 'A' is not a valid name of a kernel
securityContext: {sysctls: [{name: a, value: '1'}, {name: a, value: '2'}]} => securityContext.sysctls[1].name: 'a' is set twice
securityContext: {supplementalGroups: [5, -1]} => securityContext.supplementalGroups[1]: -1 is too small; at least 0
securityContext: {seccompProfile: {type: RuntimeDefault, localhostProfile: p}} =>
    securityContext.seccompProfile.localhostProfile: only allowed with type Localhost
securityContext: {seccompProfile: {type: Localhost, localhostProfile: /p}} =>
    securityContext.seccompProfile.localhostProfile: '/p' must be a relative path
securityContext: {appArmorProfile: {type: Localhost, localhostProfile: ' p'}} =>
    securityContext.appArmorProfile.localhostProfile: ' p' must not begin or end with blanks
securityContext: {appArmorProfile: {type: Unconfined, localhostProfile: p}} =>
    securityContext.appArmorProfile.localhostProfile: only allowed with type Localhost
{hostNetwork: true, containers: [{name: a, ports: [{containerPort: 1, hostPort: 2}]}]} =>
    containers[0].ports[0].hostPort: must be the containerPort, because hostNetwork is true
{containers: [{name: a, volumeDevices: [{name: v, devicePath: /dev/a}]}], volumes: [{name: v, emptyDir: {}}]} =>
    containers[0].volumeDevices[0].name: 'v' must be a persistentVolumeClaim
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}] =>
    topologySpreadConstraints[0].matchLabelKeys: needs a labelSelector
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}, matchLabelKeys: [a b]}] =>
    topologySpreadConstraints[0].matchLabelKeys[0]: 'a b' is not a valid key
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {a: b c}}}] =>
    topologySpreadConstraints[0].labelSelector.matchLabels.a: 'b c' is not a valid label value
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a b, operator: Exists}]}]}}} =>
    affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: 'a b' is not a valid key
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: Exists}]}]}}} =>
    affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator: must be In or NotIn for a field, not 'Exists'
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]}}} =>
    affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values: must be one value, because a field has one
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a b}]}} =>
    affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: 'a b' is not a valid key
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaces: [A]}]}} =>
    affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaces[0]: 'A' is not a valid name
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}]}} =>
    affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator: 'Gt' is not allowed; one of In, NotIn, Exists, DoesNotExist
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, namespaceSelector: {matchExpressions: [{key: a, operator: In}]}}]}} =>
    affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].namespaceSelector.matchExpressions[0].values: required, because operator is In
affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a, labelSelector: {matchExpressions: [{key: a, operator: In, values: [b c]}]}}]}} =>
    affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].values[0]: 'b c' is not a valid label value
volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: ..p}]}}] =>
    volumes[0].secret.items[0].path: '..p' must not begin with '..'
volumes: [{name: v, downwardAPI: {items: [{path: p}]}}] => volumes[0].downwardAPI.items[0]: must have one source: fieldRef
volumes: [{name: v, downwardAPI: {items: [{path: p, resourceFieldRef: {resource: limits.cpu}}]}}] =>
    volumes[0].downwardAPI.items[0].resourceFieldRef.containerName: required: the container
volumes: [{name: v, projected: {sources: [{secret: {name: s}, configMap: {name: c}}]}}] =>
    volumes[0].projected.sources[0]: must have one source, not secret and configMap: add an item for each
volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}}, {configMap: {name: c, items: [{key: k, path: p}]}}]}}] =>
    volumes[0].projected.sources[1].configMap.items[0].path: 'p' is already the path of another file (sources[0])
volumes: [{name: v, projected: {sources: [{serviceAccountToken: {path: p, expirationSeconds: 599}}]}}] =>
    volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds: 599 is too small; at least 600
volumes: [{name: v, ephemeral: {}}] => volumes[0].ephemeral.volumeClaimTemplate: required: the claim
volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce, ReadWriteOncePod], resources: {requests: {storage: 1Gi}}}}}}] =>
    volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes: must be only ReadWriteOncePod
volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce]}}}}] =>
    volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage: required: the size
volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 0}}}}}}] =>
    volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests.storage: must be above 0, not 0
volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], selector: {matchLabels: {a: b c}}, resources: {requests: {storage: 1}}}}}}] =>
    volumes[0].ephemeral.volumeClaimTemplate.spec.selector.matchLabels.a: 'b c' is not a valid label value
""") | {
    f"dnsConfig: {{searches: {['.'.join(['a' * 63] * 3)] * 11}}}": "dnsConfig.searches: has 2111 characters including blanks",
    f"securityContext: {{appArmorProfile: {{type: Localhost, localhostProfile: {'p' * 4096}}}}}": "securityContext.appArmorProfile.localhostProfile: must not have more than 4095 bytes",
}


@pytest.mark.parametrize(("fields", "problem"), REFUSED_LATER.items())
def test_errors_that_the_api_server_would_report_later(fields: str, problem: str) -> None:
    (observed,) = in_pod(**yaml.load(fields, yaml.CSafeLoader))
    assert observed.startswith(problem)


TAKEN = [
    # Leading zeros, and every notation of IPv6.
    *(
        f"dnsConfig: {{nameservers: ['{address}']}}"
        for address in (
            "010.0.0.1",
            "::",
            "::1",
            "1::",
            "2001:DB8::1",
            "1:2:3:4:5:6:7:8",
            "1:2:3:4:5:6:7::",
            "::ffff:010.0.0.1",
        )
    ),
    *(f"dnsConfig: {{searches: ['{domain}']}}" for domain in (".", "a.", "_a.b_c", "svc.cluster.local")),
    "hostAliases: [{ip: '::1', hostnames: [a.b]}]",
    "tolerations: [{key: k, operator: Lt, value: '-5'}]",
    "{hostNetwork: true, containers: [{name: a, ports: [{containerPort: 1, hostPort: 1}, {containerPort: 2}]}]}",
    _AFFINITY.format("{matchExpressions: [{key: a, operator: In, values: [b c]}]}"),
    _AFFINITY.format("{}"),
    _NEARBY.format("{topologyKey: a}"),
    _SPREAD.format("ScheduleAnyway, labelSelector: {}"),
    "securityContext: {seccompProfile: {type: Localhost, localhostProfile: ''}}",
    "securityContext: {sysctls: [{name: net/ipv4/conf.x, value: '1'}]}",
    "volumes: [{name: v, secret: {secretName: s, items: [{key: k, path: p}, {key: l, path: p}]}}]",
    "volumes: [{name: v, projected: {}}]",
    _PROJECTED.format("{}"),
    _PROJECTED.format("{serviceAccountToken: {path: p}}, {serviceAccountToken: {path: p}}"),
]


@pytest.mark.parametrize("fields", TAKEN)
def test_values_that_the_api_server_accepts_are_valid(fields: str) -> None:
    assert in_pod(**yaml.load(fields, yaml.CSafeLoader)) == []


CONTAINERS_THAT_DO_NOT_HOLD_TOGETHER = rows_of("""
resources: {claims: [{name: gpu}]} => resources.claims[0].name: 'gpu' is not a claim of the pod
resources: {limits: {hugepages-2Mi: 4Mi}} => resources: has hugepages-2Mi, which needs
securityContext: {privileged: true, allowPrivilegeEscalation: false} =>
    securityContext.allowPrivilegeEscalation: must not be false if privileged is true
securityContext: {capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false} =>
    securityContext.allowPrivilegeEscalation: must not be false if the capability
volumeMounts: [{name: v, mountPath: /v, subPath: a, subPathExpr: b}] =>
    volumeMounts[0].subPathExpr: cannot be combined with subPath
lifecycle: {preStop: {}} => lifecycle.preStop: must have an action
lifecycle: {preStop: {sleep: {seconds: 1}, exec: {command: [x]}}} => lifecycle.preStop: must have one action, not exec and sleep
livenessProbe: {exec: {}} => livenessProbe.exec.command: required, and missing
livenessProbe: {httpGet: {port: 1, httpHeaders: [{name: A B, value: x}]}} =>
    livenessProbe.httpGet.httpHeaders[0].name: 'A B' is not a valid name of an HTTP header: letters
lifecycle: {preStop: {sleep: {seconds: -1}}} => lifecycle.preStop.sleep.seconds: -1 is too small; at least 0
env: [{name: A, valueFrom: {secretKeyRef: {name: A_B, key: k}}}] =>
    env[0].valueFrom.secretKeyRef.name: 'A_B' is not a valid object name
env: [{name: A, valueFrom: {configMapKeyRef: {name: c, key: a/b}}}] =>
    env[0].valueFrom.configMapKeyRef.key: 'a/b' is not a valid key of a Secret or ConfigMap: letters
env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: ..k}}}] =>
    env[0].valueFrom.secretKeyRef.key: '..k' is not a valid key of a Secret or ConfigMap
env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name, apiVersion: v2}}}] =>
    env[0].valueFrom.fieldRef.apiVersion: must be v1, not 'v2'
env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.labels}}}] =>
    env[0].valueFrom.fieldRef.fieldPath: selects all keys, but a variable has one value; write metadata.labels['KEY']
env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}] =>
    env[0].valueFrom.fieldRef.fieldPath: 'a b' is not a valid key
env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.name['a']"}}}] =>
    env[0].valueFrom.fieldRef.fieldPath: 'metadata.name' has no keys; only metadata.labels and
env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.nvidia.com/gpu}}}] =>
    env[0].valueFrom.resourceFieldRef.resource: 'limits.nvidia.com/gpu' is not allowed; limits. or requests. and one of
env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: '2'}}}] =>
    env[0].valueFrom.resourceFieldRef.divisor: must be 1 or 1m for cpu, not '2'
env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.memory, divisor: 1m}}}] =>
    env[0].valueFrom.resourceFieldRef.divisor: must be 1, or 1 with one of k, M, G, Ki, Mi, Gi, ... for memory, not '1m'
envFrom: [{prefix: A=, secretRef: {name: s}}] => envFrom[0].prefix: 'A=' is not a valid name of an environment variable
volumeMounts: [{name: v, mountPath: /v, mountPropagation: Bidirectional}] =>
    volumeMounts[0].mountPropagation: must not be Bidirectional without securityContext.privileged: true
{volumeDevices: [{name: v, devicePath: /d}], volumeMounts: [{name: v, mountPath: /v}]} =>
    volumeDevices[0].name: 'v' is also in volumeMounts
{volumeDevices: [{name: v, devicePath: /v}], volumeMounts: [{name: w, mountPath: /v}]} =>
    volumeDevices[0].devicePath: '/v' is already the mount path of a volume
volumeDevices: [{name: v, devicePath: /dev/../v}] => volumeDevices[0].devicePath: '/dev/../v' must not contain '..'
resources: {limits: {hugepages-3: 1e64, cpu: 1}} => resources.limits.hugepages-3: '1e64' is not a number of whole pages
resources: {limits: {requests.nvidia.com/gpu: 1}} =>
    resources.limits["requests.nvidia.com/gpu"]: no such resource; 'requests.' is for quotas
envFrom: [{secretRef: {name: A_B}}] => envFrom[0].secretRef.name: 'A_B' is not a valid object name
ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2, hostPort: 80}] =>
    ports[1].hostPort: 80 is already the number of another port
""")


@pytest.mark.parametrize(("fields", "problem"), CONTAINERS_THAT_DO_NOT_HOLD_TOGETHER.items())
def test_contradicting_containers(fields: str, problem: str) -> None:
    (observed,) = in_main(**yaml.load(fields, yaml.CSafeLoader))
    assert observed.startswith(problem)


def test_the_size_of_annotations_is_limited() -> None:
    (observed,) = errors({"metadata": {"annotations": {"a": "x" * 262144}}})
    assert observed == (
        "template.metadata.annotations: has 262145 bytes of keys and values, but at most 262144 are allowed"
    )


def test_rules_between_fields_apply_without_published_types() -> None:
    """Without a cluster, messages and places are the same."""
    bad = {
        "metadata": {"labels": {"a": "-"}},
        "spec": {
            "containers": [{"name": "main", "lifecycle": {"preStop": {}}, "volumeMounts": [{"subPath": "/a"}]}, "x"],
            "volumes": [{"name": "v", "configMap": {"items": [{"path": "../a"}]}}],
            "ephemeralContainers": [{}],
            "tolerations": {},
        },
    }
    offline = {(path_of(("template", *at)), message) for at, message in of_template(bad)}
    assert len(offline) == 5
    obj = {"apiVersion": "apps/v1", "kind": "Deployment", "template": bad}
    assert offline <= {(error.path, error.message) for error in CHECKER.errors(obj)}
