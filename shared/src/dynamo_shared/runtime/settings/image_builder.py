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
    """Where the archives are that tags name."""

    endpoint: str = Field(
        "http://dynamo-store",
        pattern=r"^(https?|oci|oci\+http)://[^/@\s?#]+(/[^@\s?#]*)?$",
        description="A store's address; or `oci://host/path` (`oci+http://` without TLS): the archive is then the only layer of "
        "the artifact `host/path/name:version`.",
    )
    username: str = Field("", description="User name; empty: none is sent.")
    password_file: Path | None = Field(None, description="File that holds the password, for the service itself.")
    secret: str = Field(
        "",
        pattern=_OBJECT,
        description="Secret of the builds' namespace with the key `password`, for the builds' pods.",
    )

    @model_validator(mode="after")
    def _has_both_passwords(self) -> Self:
        given = (bool(self.username), self.password_file is not None, bool(self.secret))
        if any(given) and not all(given):
            raise ValueError(
                "username, passwordFile and secret go together: the service and the pods both read archives"
            )
        return self


class ImageRegistry(Section):
    """Where images are pushed."""

    server: str = Field(
        "",
        pattern=_SERVER,
        description="Registry that images are named by, with or without a path; empty: no image is built.",
    )
    in_cluster_server: str = Field(
        "", pattern=_SERVER, description="The same registry as builds reach it, where that is another address."
    )
    repository: str = Field(
        "yatai-bentos", pattern=rf"^{_PATH}(/{_PATH})*$", description="Repository of all images; their tags differ."
    )
    secure: bool = Field(True, description="Whether it is reached with TLS.")
    username: str = Field(
        "", description="User name; the Secret has the key `password` then. Empty: it is a pull secret."
    )
    secret: str = Field(
        "",
        pattern=_OBJECT,
        description="Secret of the builds' namespace, of type kubernetes.io/dockerconfigjson or with the key `password`; "
        "empty: no credentials.",
    )


class Buildkit(Section):
    """What builds."""

    image: str = Field(
        "docker.io/moby/buildkit:v0.25.0-rootless",
        min_length=1,
        pattern=r"^\S+$",
        description="Image with buildctl; without `url` also with rootless buildkitd and buildctl-daemonless.sh.",
    )
    url: str = Field(
        "",
        pattern=r"^((tcp|unix)://\S+)?$",
        description="A buildkitd that exists, `tcp://host:1234`; empty: each build has its own, rootless, in its pod.",
    )
    tls_secret: str = Field(
        "",
        pattern=_OBJECT,
        description="Secret of the builds' namespace with ca.crt, tls.crt and tls.key for it; empty: no TLS.",
    )


class BuildResources(Section):
    """Resources of the container that builds; that of an existing buildkitd only sends files to it."""

    requests: dict[str, Quantity] = Field(
        {"cpu": "500m", "memory": "1Gi", "ephemeral-storage": "4Gi"}, description="Requests."
    )
    limits: dict[str, Quantity] = Field({"memory": "4Gi", "ephemeral-storage": "20Gi"}, description="Limits.")


class FetchResources(BuildResources):
    """Resources of the container that downloads and unpacks the archive: it reads it piece by piece."""

    requests: dict[str, Quantity] = Field({"cpu": "100m", "memory": "64Mi"}, description="Requests.")
    limits: dict[str, Quantity] = Field({"memory": "256Mi"}, description="Limits.")


class BuildProxy(Section):
    """The proxy by which builds reach the internet: for archives, base images, pushing, and steps of Dockerfiles.

    Without a password, as every address: steps of a Dockerfile have these variables and may print them.
    """

    http_proxy: Address = Field("", pattern=r"^(https?://\S+)?$", description="HTTP_PROXY of builds.")
    https_proxy: Address = Field("", pattern=r"^(https?://\S+)?$", description="HTTPS_PROXY of builds.")
    no_proxy: str = Field(
        "",
        pattern=r"^\S*$",
        description="NO_PROXY of builds: store, registry and buildkitd, where they are in the cluster, as in `.svc,10.0.0.0/8`.",
    )


class BuildAuthorities(Section):
    """A company's own authorities of certificates, next to those that the images of builds have."""

    config_map: str = Field(
        "",
        pattern=_OBJECT,
        description="ConfigMap of the builds' namespace with authorities, PEM, that store, registry and proxy may have; "
        "empty: those of the images alone.",
    )
    key: str = Field("ca.crt", pattern=r"^[-._A-Za-z0-9]+$", description="Its key.")


class Toleration(Section):
    """A taint that pods tolerate, as Kubernetes writes it."""

    key: str = Field("", description="Key of the taint; empty: of all.")
    operator: Literal["Exists", "Equal", "Lt", "Gt"] = Field("Equal", description="How `value` is compared.")
    value: str = Field("", description="Value of the taint.")
    effect: Literal["", "NoSchedule", "PreferNoSchedule", "NoExecute"] = Field("", description="Effect; empty: all.")
    toleration_seconds: int | None = Field(None, description="For how long, with NoExecute.")


class PullSecret(Section):
    """A Secret by which nodes pull images."""

    name: str = Field(min_length=1, pattern=_OBJECT, description="Its name, in the builds' namespace.")


class BuildPod(Section):
    """Where pods of builds run, and what they carry; as in a pod of Kubernetes."""

    node_selector: dict[str, str] = Field({}, description="Labels of nodes that they may run on.")
    tolerations: tuple[Toleration, ...] = Field((), description="Taints that they tolerate.")
    affinity: dict[Literal["nodeAffinity", "podAffinity", "podAntiAffinity"], dict[str, Any]] = Field(
        {}, description="Affinity."
    )
    priority_class_name: str = Field("", pattern=_OBJECT, description="Priority; empty: the cluster's default.")
    runtime_class_name: str = Field(
        "", pattern=_OBJECT, description="RuntimeClass, such as one of virtual machines; empty: the nodes' default."
    )
    image_pull_secrets: tuple[PullSecret, ...] = Field(
        (), description="Secrets of the builds' namespace by which nodes pull the images of builds."
    )
    labels: dict[str, str] = Field({}, description="More labels.")
    annotations: dict[str, str] = Field(
        {}, description="Annotations, such as one that keeps the proxy of a mesh out: a build would not end with it."
    )


class ImageBuilder(Section):
    """How images of DynamoNimRequests are built."""

    engine: Literal["buildkit", "buildkit-rootless"] = Field(
        "buildkit",
        description="`buildkit`: by `buildkit.url` where it is set, else rootless; `buildkit-rootless`: rootless.",
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
        False, description="Whether tags of images begin with the request's namespace, so that namespaces share none."
    )
    estargz: bool = Field(
        False, description="Whether layers are eStargz, which nodes can pull lazily; tags end with `.esgz`."
    )
    fetch_image: str = Field(
        "docker.io/library/python:3.13-slim-trixie",
        min_length=1,
        pattern=r"^\S+$",
        description="Image with Python 3.12 or later, in which a build's pod downloads and unpacks the archive.",
    )
    max_archive_size: int = Field(
        1 << 30, ge=1, description="Largest archive, bytes; it may unpack to four times as much."
    )
    archive_timeout: Duration = Field(300.0, gt=0, description="How long reading an archive may take.")
    deadline: Duration = Field(3600.0, ge=1, description="How long a build may take.")
    builds_per_namespace: int = Field(
        4,
        ge=1,
        description="How many builds the requests of one namespace may run at once; the oldest waiting request is next.",
    )
    keep: Duration = Field(
        7 * 86400.0,
        # A Job that goes before its digest is read is made again, and again.
        ge=60,
        description="How long a build's Job stays after its end: its log, and that it need not be built again.",
    )
    resources: BuildResources = BuildResources()
    fetch_resources: FetchResources = FetchResources()
    pod: BuildPod = BuildPod()
    proxy: BuildProxy = BuildProxy()
    authorities: BuildAuthorities = BuildAuthorities()
