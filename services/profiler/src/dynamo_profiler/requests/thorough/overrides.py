"""Applies `spec.overrides.profilingJob` to the Job (operator behaviour, section 7.5). Pure, except that it changes the
Job in place.
"""

from collections.abc import Iterable

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.request_parts import profiling_containers

from dynamo_profiler.requests.thorough import names

_OF_JOB = ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism", "suspend")
_OF_POD = (
    "tolerations",
    "nodeSelector",
    "affinity",
    "priorityClassName",
    "serviceAccountName",
    "runtimeClassName",
    "dnsPolicy",
    "dnsConfig",
    "topologySpreadConstraints",
    "terminationGracePeriodSeconds",
    "automountServiceAccountToken",
)
_PROTECTED = frozenset({labels.PROFILER_APP, labels.PROFILER_REQUEST, labels.MANAGED_BY})
_PROTECTED_PREFIX = labels.REQUEST_NAME.partition("/")[0] + "/"


def merge_job(job: KubeObject, override: KubeObject) -> None:
    """Apply a JobSpec: fields of Job and pod replace the platform's; lists with names are merged by name."""
    spec = job["spec"]
    spec.update({name: override[name] for name in _OF_JOB if override.get(name) is not None})
    template = override.get("template") or {}
    metadata, pod = template.get("metadata") or {}, template.get("spec") or {}
    own = spec["template"]
    for name, value in (metadata.get("labels") or {}).items():
        if name not in _PROTECTED and not name.startswith(_PROTECTED_PREFIX):
            own["metadata"]["labels"][name] = value
    if metadata.get("annotations"):
        own["metadata"].setdefault("annotations", {}).update(metadata["annotations"])
    _merge_pod(own["spec"], pod)


def _merge_pod(pod: KubeObject, override: KubeObject) -> None:
    pod.update({name: override[name] for name in _OF_POD if override.get(name) is not None})
    pod["imagePullSecrets"] = _by_name(pod["imagePullSecrets"], override.get("imagePullSecrets") or ())
    pod["securityContext"] = {**pod["securityContext"], **(override.get("securityContext") or {})}
    pod["volumes"] = _by_name(pod["volumes"], override.get("volumes") or ())
    relay, *_ = pod["initContainers"]
    others = [each for each in override.get("initContainers") or () if each.get("name") != names.RELAY]
    # The user's init containers run before the relay starts.
    pod["initContainers"] = [*others, relay]
    of_profiler, of_relay = profiling_containers(override)
    _merge_container(pod["containers"][0], of_profiler)
    # The relay always uses the profiler's image, which has Python. Dynamo's own relay uses an image with kubectl.
    _merge_container(relay, {**of_relay, "image": of_profiler.get("image")})
    if pod.get("automountServiceAccountToken") is False:
        _mount_token(pod, relay)


def _merge_container(container: KubeObject, override: KubeObject) -> None:
    for name in ("image", "resources", "securityContext", "imagePullPolicy"):
        if override.get(name):
            container[name] = override[name]
    for name in ("env", "volumeMounts"):
        if override.get(name):
            container[name] = _by_name(container.get(name, ()), override[name])
    if override.get("envFrom"):
        container["envFrom"] = [*container.get("envFrom", ()), *override["envFrom"]]


def _mount_token(pod: KubeObject, relay: KubeObject) -> None:
    """Mount the token only into the relay if the pod should have no token."""
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
    ]
    pod["volumes"] = _by_name(pod["volumes"], [{"name": names.TOKEN_VOLUME, "projected": {"sources": sources}}])
    mount = {
        "name": names.TOKEN_VOLUME,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
        "readOnly": True,
    }
    relay["volumeMounts"] = [*relay["volumeMounts"], mount]


def _by_name(own: Iterable[KubeObject], theirs: Iterable[KubeObject]) -> list[KubeObject]:
    """Both lists; an entry of the second replaces the entry of the same name in the first."""
    merged = {each.get("name", ""): each for each in own}
    merged.update({each.get("name", ""): each for each in theirs})
    return list(merged.values())
