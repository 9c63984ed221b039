"""The `platform.imageBuilder` section: how images of DynamoNimRequests are built, and where they are pushed."""

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from dynamo_shared.api.model import Quantity
from dynamo_shared.runtime.settings.addresses import Address
from dynamo_shared.runtime.settings.base import Duration, Section

_HOST = r"[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?"
_PATH = r"[a-z0-9]+([._-]+[a-z0-9]+)*"
_SERVER = rf"^({_HOST}(/{_PATH})*/?)?$"
_OBJECT = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"


class ArchiveStore(Section):
    """The store of the archives that requests name."""

    endpoint: str = Field(
        "http://dynamo-store",
        pattern=r"^(https?|oci|oci\+http)://[^/@\s?#]+(/[^@\s?#]*)?$",
        description="URL of the archive store. With `oci://host/path` (`oci+http://` without TLS) the archive is the only layer "
        "of the artifact `host/path/name:version`.",
    )
    username: str = Field("", description="User name; empty: no authentication.")
    password_file: Path | None = Field(None, description="File with the password, for the image-builder itself.")
    secret: str = Field(
        "",
        pattern=_OBJECT,
        description="Secret with the key `password` in the namespace of builds, for the pods of builds.",
    )

    @model_validator(mode="after")
    def _has_both_passwords(self) -> Self:
        given = (bool(self.username), self.password_file is not None, bool(self.secret))
        if any(given) and not all(given):
            raise ValueError(
                "username, passwordFile and secret must be set together: the service and the pods both read archives"
            )
        return self


class ImageRegistry(Section):
    """The registry that built images are pushed to."""

    server: str = Field(
        "",
        pattern=_SERVER,
        description="Registry in the names of images, with an optional path; empty: no images are built.",
    )
    in_cluster_server: str = Field(
        "", pattern=_SERVER, description="Address of the registry for builds, if it differs from `server`."
    )
    repository: str = Field(
        "yatai-bentos",
        pattern=rf"^{_PATH}(/{_PATH})*$",
        description="Repository of all images; each image has its own tag.",
    )
    secure: bool = Field(True, description="Whether the registry uses TLS.")
    username: str = Field(
        "", description="User name; `secret` then has the key `password`. Empty: `secret` is an image pull secret."
    )
    secret: str = Field(
        "",
        pattern=_OBJECT,
        description="Secret in the namespace of builds, of type kubernetes.io/dockerconfigjson or with the key `password`; "
        "empty: no authentication.",
    )


class Buildkit(Section):
    """BuildKit, which builds the images."""

    image: str = Field(
        "docker.io/moby/buildkit:v0.25.0-rootless",
        min_length=1,
        pattern=r"^\S+$",
        description="Image with buildctl; if `url` is empty, also with rootless buildkitd and buildctl-daemonless.sh.",
    )
    url: str = Field(
        "",
        pattern=r"^((tcp|unix)://\S+)?$",
        description="Address of an existing buildkitd, `tcp://host:1234`; empty: each build runs a rootless one in its pod.",
    )
    tls_secret: str = Field(
        "",
        pattern=_OBJECT,
        description="Secret with ca.crt, tls.crt and tls.key for `url`, in the namespace of builds; empty: no TLS.",
    )


class BuildResources(Section):
    """Resources of the container that builds. With `buildkit.url` it only sends files to buildkitd."""

    requests: dict[str, Quantity] = Field(
        {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "4Gi"}, description="Resource requests."
    )
    limits: dict[str, Quantity] = Field({"memory": "4Gi", "ephemeral-storage": "20Gi"}, description="Resource limits.")


class FetchResources(BuildResources):
    """Resources of the container that downloads and unpacks the archive, in small parts."""

    requests: dict[str, Quantity] = Field({"cpu": "100m", "memory": "64Mi"}, description="Resource requests.")
    limits: dict[str, Quantity] = Field({"memory": "256Mi"}, description="Resource limits.")


class BuildProxy(Section):
    """HTTP proxy of builds, for archives, base images, pushes and steps of Dockerfiles.

    The URLs must not have a password: steps of a Dockerfile have these variables and may print them.
    """

    http_proxy: Address = Field("", pattern=r"^(https?://\S+)?$", description="HTTP_PROXY of builds.")
    https_proxy: Address = Field("", pattern=r"^(https?://\S+)?$", description="HTTPS_PROXY of builds.")
    no_proxy: str = Field(
        "",
        pattern=r"^\S*$",
        description="NO_PROXY of builds. If store, registry or buildkitd are in the cluster, include them: `.svc,10.0.0.0/8`.",
    )


class BuildAuthorities(Section):
    """A private CA that builds trust, in addition to those in the images of builds."""

    config_map: str = Field(
        "",
        pattern=_OBJECT,
        description="ConfigMap in the namespace of builds with CA certificates (PEM) of store, registry and proxy; empty: only "
        "those in the images.",
    )
    key: str = Field("ca.crt", pattern=r"^[-._A-Za-z0-9]+$", description="Key in the ConfigMap.")


class Toleration(Section):
    """A toleration, as in a Kubernetes pod."""

    key: str = Field("", description="Key of the taint; empty: all taints.")
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = Field("Equal", description="How `value` is compared.")
    value: str = Field("", description="Value of the taint.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field(
        "", description="Effect of the taint; empty: all."
    )
    toleration_seconds: int | None = Field(None, description="How long the pod stays, with NoExecute.")


class PullSecret(Section):
    """An image pull secret."""

    name: str = Field(min_length=1, pattern=_OBJECT, description="Name of the Secret, in the namespace of builds.")


class BuildPod(Section):
    """Scheduling and metadata of the pods of builds, as in a Kubernetes pod."""

    node_selector: dict[str, str] = Field({}, description="Labels of the nodes that builds run on.")
    tolerations: tuple[Toleration, ...] = Field((), description="Tolerations.")
    affinity: dict[Literal["nodeAffinity", "podAffinity", "podAntiAffinity"], dict[str, Any]] = Field(
        {}, description="Affinity."
    )
    priority_class_name: str = Field("", pattern=_OBJECT, description="PriorityClass; empty: the cluster's default.")
    runtime_class_name: str = Field(
        "", pattern=_OBJECT, description="RuntimeClass, such as one with virtual machines; empty: the nodes' default."
    )
    image_pull_secrets: tuple[PullSecret, ...] = Field(
        (), description="Pull secrets for the images that builds run, in the namespace of builds."
    )
    labels: dict[str, str] = Field({}, description="Additional labels.")
    annotations: dict[str, str] = Field(
        {},
        description="Annotations. Disable the sidecar of a service mesh here: with it the pod of a build never completes.",
    )


class ImageBuilder(Section):
    """How images of DynamoNimRequests are built."""

    engine: Literal["buildkit", "buildkit-rootless"] = Field(
        "buildkit",
        description="`buildkit`: the buildkitd of `buildkit.url` if set, otherwise rootless; `buildkit-rootless`: rootless.",
    )
    namespace: str = Field(
        "dynamo-builds",
        pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        max_length=63,
        description="Namespace of the build Jobs and their Secrets. Rootless builds need Pod Security `privileged` there.",
    )
    store: ArchiveStore = ArchiveStore()
    registry: ImageRegistry = ImageRegistry()
    buildkit: Buildkit = Buildkit()
    add_namespace_prefix: bool = Field(
        False,
        description="Whether image tags begin with the namespace of the request, so that namespaces share no images.",
    )
    estargz: bool = Field(
        False, description="Whether layers are eStargz, for lazy pulling; image tags then end with `.esgz`."
    )
    fetch_image: str = Field(
        "docker.io/library/python:3.13-slim-trixie",
        min_length=1,
        pattern=r"^\S+$",
        description="Image with Python 3.12 or later; it downloads and unpacks the archive of a build.",
    )
    max_archive_size: int = Field(
        1 << 30, ge=1, description="Maximum size of an archive, bytes. Unpacked, it may be four times as large."
    )
    archive_timeout: Duration = Field(300.0, gt=0, description="Time limit of reading an archive.")
    deadline: Duration = Field(3600.0, ge=1, description="Time limit of a build.")
    builds_per_namespace: int = Field(
        4,
        ge=1,
        description="How many builds the requests of one namespace may run at once; the oldest waiting request is next.",
    )
    keep: Duration = Field(
        7 * 86400.0,
        # A Job that is deleted before its digest is read would be created again and again.
        ge=60,
        description="How long the Job of a completed build is kept. Until then its log exists and the image is not built again.",
    )
    resources: BuildResources = BuildResources()
    fetch_resources: FetchResources = FetchResources()
    pod: BuildPod = BuildPod()
    proxy: BuildProxy = BuildProxy()
    authorities: BuildAuthorities = BuildAuthorities()
