"""The Job of a build: an init container fetches the archive, BuildKit builds and pushes the image. Pure."""

import math
from importlib import resources

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import OPERATOR, labels
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.resources import JOBS
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from dynamo_image_builder.builds import Build

FETCH, BUILDER = "fetch", "build"
#: The user of BuildKit's rootless image.
USER = 1000
_WORKSPACE = "/workspace"
_CREDENTIALS = f"{_WORKSPACE}/docker"
_STATE = "/home/user/.local/share/buildkit"
_CERTIFICATES, _AUTHORITIES = "/certificates", "/authorities"
#: Settings with the same names as fields of a pod's spec.
_PLACEMENT = {
    "node_selector",
    "tolerations",
    "affinity",
    "priority_class_name",
    "runtime_class_name",
    "image_pull_secrets",
}
_DISRUPTED: KubeObject = {"type": "DisruptionTarget", "status": "True"}
_RUNTIME_DEFAULT: KubeObject = {"type": "RuntimeDefault"}


def build_job(build: Build, namespace: str, settings: ImageBuilder) -> KubeObject:
    """The Job of a build, which a request of a namespace began. It names no request, because all requests for the build
    share it.
    """
    own_labels = {labels.IMAGE_BUILD: build.id, labels.IMAGE_NAMESPACE: namespace, labels.APP_MANAGED_BY: OPERATOR}
    return {
        **JOBS.type_meta,
        "metadata": {
            "name": build.job,
            "namespace": settings.namespace,
            "labels": own_labels,
            "annotations": {keys.BENTO_TAG: str(build.tag), keys.ARCHIVE_DIGEST: build.archive_digest},
        },
        "spec": {
            # A failed build would fail again. A pod that a node or the control plane ended did not fail: the Job starts
            # another one.
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [_DISRUPTED]}]},
            "activeDeadlineSeconds": math.ceil(settings.deadline),
            "ttlSecondsAfterFinished": math.ceil(settings.keep),
            "template": {
                "metadata": {
                    "labels": {**settings.pod.labels, **own_labels},
                    "annotations": dict(settings.pod.annotations),
                },
                "spec": _pod(build, settings),
            },
        },
    }


def is_rootless(settings: ImageBuilder) -> bool:
    """Whether each build has its own buildkitd, in its pod."""
    return settings.engine == "buildkit-rootless" or not settings.buildkit.url


def _pod(build: Build, settings: ImageBuilder) -> KubeObject:
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER,
            "runAsGroup": USER,
            "fsGroup": USER,
            "seccompProfile": _RUNTIME_DEFAULT,
        },
        "initContainers": [_fetch(build, settings)],
        "containers": [_builder(build, settings)],
        "volumes": _volumes(settings),
        # With the field names of Kubernetes, without unset fields.
        **settings.pod.model_dump(mode="json", by_alias=True, exclude_defaults=True, include=_PLACEMENT),
    }


def _fetch(build: Build, settings: ImageBuilder) -> KubeObject:
    store, registry = settings.store, settings.registry
    variables: list[KubeObject] = [
        {"name": "ARCHIVE_ENDPOINT", "value": store.endpoint},
        {"name": "ARCHIVE_NAME", "value": build.tag.name},
        {"name": "ARCHIVE_VERSION", "value": build.tag.version},
        {"name": "ARCHIVE_DIGEST", "value": build.archive_digest},
        {"name": "ARCHIVE_LIMIT", "value": str(settings.max_archive_size)},
        {"name": "ARCHIVE_TIMEOUT", "value": str(math.ceil(settings.archive_timeout))},
    ]
    if store.secret:
        variables += _login("ARCHIVE", store.username, store.secret)
    if registry.secret and registry.username:
        variables += [
            {"name": "REGISTRY_SERVER", "value": registry.in_cluster_server or registry.server},
            *_login("REGISTRY", registry.username, registry.secret),
        ]
    mounts = [{"name": "workspace", "mountPath": _WORKSPACE}, *_authorities_mount(settings)]
    return {
        "name": FETCH,
        "image": settings.fetch_image,
        "command": ["python3", "-c", source("fetch.py")],
        "env": [*variables, *_environment(settings)],
        "volumeMounts": mounts,
        "resources": settings.fetch_resources.model_dump(),
        "securityContext": _restricted_security(),
    }


def _login(whose: str, username: str, secret: str) -> list[KubeObject]:
    password = {"secretKeyRef": {"name": secret, "key": "password"}}
    return [{"name": f"{whose}_USERNAME", "value": username}, {"name": f"{whose}_PASSWORD", "valueFrom": password}]


def _proxies(settings: ImageBuilder) -> dict[str, str]:
    """Variables of the proxy that are set."""
    proxy = settings.proxy
    variables = {"HTTP_PROXY": proxy.http_proxy, "HTTPS_PROXY": proxy.https_proxy, "NO_PROXY": proxy.no_proxy}
    return {name: value for name, value in variables.items() if value}


def _environment(settings: ImageBuilder) -> list[KubeObject]:
    """Proxy and CA variables of a container: Python and Go read SSL_CERT_FILE, and the system's folder."""
    variables = _proxies(settings)
    if settings.authorities.config_map:
        variables["SSL_CERT_FILE"] = f"{_AUTHORITIES}/{settings.authorities.key}"
    return [{"name": name, "value": value} for name, value in variables.items()]


def _authorities_mount(settings: ImageBuilder) -> list[KubeObject]:
    mount = {"name": "authorities", "mountPath": _AUTHORITIES, "readOnly": True}
    return [mount] if settings.authorities.config_map else []


def _builder(build: Build, settings: ImageBuilder) -> KubeObject:
    rootless = is_rootless(settings)
    mounts: list[KubeObject] = [{"name": "workspace", "mountPath": _WORKSPACE}, *_authorities_mount(settings)]
    variables: list[KubeObject] = [{"name": "DOCKER_CONFIG", "value": _CREDENTIALS}, *_environment(settings)]
    if settings.registry.secret and not settings.registry.username:
        mounts.append({"name": "credentials", "mountPath": _CREDENTIALS, "readOnly": True})
    if rootless:
        mounts.append({"name": "state", "mountPath": _STATE})
        variables.append({"name": "BUILDKITD_FLAGS", "value": "--oci-worker-no-process-sandbox"})
    elif settings.buildkit.tls_secret:
        mounts.append({"name": "certificates", "mountPath": _CERTIFICATES, "readOnly": True})
    return {
        "name": BUILDER,
        "image": settings.buildkit.image,
        "command": ["sh", "-c", source("build.sh"), "build.sh", *arguments(build, settings)],
        "env": variables,
        "volumeMounts": mounts,
        "resources": settings.resources.model_dump(),
        "securityContext": _rootless_security() if rootless else _restricted_security(),
    }


def arguments(build: Build, settings: ImageBuilder) -> list[str]:
    """The command that builds and pushes."""
    output = f"type=image,name={build.target.push},push=true"
    if not settings.registry.secure:
        output += ",registry.insecure=true"
    if build.estargz:
        output += ",oci-mediatypes=true,compression=estargz,force-compression=true"
    return [
        *(["buildctl-daemonless.sh"] if is_rootless(settings) else _client(settings)),
        "build",
        "--progress=plain",
        "--frontend=dockerfile.v0",
        f"--local=context={_WORKSPACE}/context",
        f"--local=dockerfile={_WORKSPACE}/dockerfile",
        # BuildKit passes these to steps, and does not keep them in the image.
        *(f"--opt=build-arg:{name}={value}" for name, value in _proxies(settings).items()),
        f"--output={output}",
    ]


def _client(settings: ImageBuilder) -> list[str]:
    files = (("tlscacert", "ca.crt"), ("tlscert", "tls.crt"), ("tlskey", "tls.key"))
    tls = [f"--{flag}={_CERTIFICATES}/{file}" for flag, file in files] if settings.buildkit.tls_secret else []
    return ["buildctl", f"--addr={settings.buildkit.url}", *tls]


def _rootless_security() -> KubeObject:
    """The security context of rootless buildkitd: it needs user namespaces, and newuidmap, which is setuid. It
    satisfies neither `restricted` nor `baseline`.
    """
    return {
        "runAsUser": USER,
        "runAsGroup": USER,
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
    }


def _restricted_security() -> KubeObject:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def _volumes(settings: ImageBuilder) -> list[KubeObject]:
    volumes: list[KubeObject] = [{"name": "workspace", "emptyDir": {}}]
    registry, authorities = settings.registry, settings.authorities
    if authorities.config_map:
        volumes.append({"name": "authorities", "configMap": {"name": authorities.config_map}})
    if registry.secret and not registry.username:
        items = [{"key": ".dockerconfigjson", "path": "config.json"}]
        volumes.append({"name": "credentials", "secret": {"secretName": registry.secret, "items": items}})
    if is_rootless(settings):
        volumes.append({"name": "state", "emptyDir": {}})
    elif settings.buildkit.tls_secret:
        volumes.append({"name": "certificates", "secret": {"secretName": settings.buildkit.tls_secret}})
    return volumes


def source(name: str) -> str:
    """The source of a file of this package, for the build's pod."""
    return resources.files("dynamo_image_builder").joinpath(name).read_text()
