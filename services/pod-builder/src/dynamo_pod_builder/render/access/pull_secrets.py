"""Image pull secrets by registry: an image without a named secret gets the namespace's secrets for its registry.

The rules by which Kubernetes chooses credentials apply (`pkg/credentialprovider/keyring.go`): a key of a docker
configuration may have a scheme, a path, and `*` for parts of the host name; a port counts. Paths are left to the
kubelet: an unneeded secret does no harm, but a missing one means an image that cannot be pulled.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import DISABLE_IMAGE_PULL_SECRET_DISCOVERY
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits

DOCKER_HUB = "docker.io"
#: Other names of Docker Hub: the one that `docker login` writes, and the host of the images.
_DOCKER_HUB_ALIASES = frozenset({"index.docker.io", "registry-1.docker.io"})
#: The key of the configuration in each type of Secret. The older format is what the newer one has under `auths`.
TYPES: Mapping[str, str] = {
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    "kubernetes.io/dockercfg": ".dockercfg",
}
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")
#: A docker configuration has some hundred bytes per registry; a Secret may have 1 MiB.
_CONFIGURATION = ReadLimits(1 << 20, 20_000, 16)
#: Limits of a namespace: registries, and patterns among them, because each image is compared with each pattern. A host
#: name with a port has at most 259 characters.
MOST_HOSTS, MOST_PATTERNS, LONGEST_HOST = 1000, 50, 259
#: The containers of a pod that have images.
_CONTAINERS = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class PullSecrets:
    """Names of a namespace's secrets by the registry that they open; without credentials."""

    by_host: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of_hosts(self, hosts: Set[str]) -> set[str]:
        """Names of the secrets for these registries."""
        patterns = [(pattern, names) for pattern, names in self.by_host.items() if "*" in pattern]
        secret_names = {name for host in hosts for name in self.by_host.get(host, ())}
        for host in hosts:
            for pattern, names in patterns if len(host) <= LONGEST_HOST else ():
                if _matches(pattern, host):
                    secret_names.update(names)
        return secret_names


NO_PULL_SECRETS = PullSecrets()


class _Unreadable(Exception):
    """A secret has no readable credentials. The message is for its owner, and quotes nothing of the secret."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A secret with unreadable parts; its readable parts are still used."""

    name: str
    message: str


def index(secrets: Iterable[KubeObject]) -> tuple[PullSecrets, tuple[Malformed, ...]]:
    """The secrets of one namespace by host, and the errors of unreadable ones; one secret never hides another."""
    hosts: dict[str, set[str]] = {}
    patterns = 0
    malformed: list[Malformed] = []
    for secret in secrets:
        if secret.get("type") not in TYPES:
            continue
        name = secret["metadata"]["name"]
        try:
            entries = _entries(secret)
        except _Unreadable as error:
            malformed.append(Malformed(name, str(error)))
            continue
        wrong = 0
        for key, entry in entries.items():
            host = host_of_key(key)
            is_pattern = "*" in host
            has_room = host in hosts or (len(hosts) < MOST_HOSTS and not (is_pattern and patterns >= MOST_PATTERNS))
            if isinstance(entry, dict) and 0 < len(host) <= LONGEST_HOST and has_room:
                patterns += is_pattern and host not in hosts
                hosts.setdefault(host, set()).add(name)
            else:
                wrong += 1
        if wrong:
            # Keys are not repeated, because one may contain a user name and a password before the host.
            counted = f"{wrong} of its {len(entries)} entries"
            malformed.append(
                Malformed(
                    name,
                    f"{counted} do not map a registry to an object with credentials, or exceed the limit of registries",
                )
            )
    by_host = {host: tuple(sorted(names)) for host, names in sorted(hosts.items())}
    return PullSecrets(by_host), tuple(sorted(malformed, key=lambda each: (each.name, each.message)))


def host_of(image: str) -> str:
    """Registry of an image, in lower case with its port: `docker.io` for short names such as `busybox` or `org/img`."""
    first, slash, _ = image.partition("/")
    # A first part without dot and port is a user or an organisation on Docker Hub.
    if not slash or not ("." in first or ":" in first or first.lower() == "localhost"):
        return DOCKER_HUB
    return _canonical(first)


def host_of_key(key: str) -> str:
    """Registry of a key in a docker configuration: `https://index.docker.io/v1/` is Docker Hub."""
    return _canonical(_SCHEME.sub("", key.strip().lower()).partition("/")[0].rpartition("@")[2])


def add(pod: KubeObject, secrets: PullSecrets, annotations: Mapping[str, str]) -> None:
    """Add the secrets for the pod's images after those that the user names, unless an annotation disables this."""
    if annotations.get(DISABLE_IMAGE_PULL_SECRET_DISCOVERY) == "true":
        return
    own = pod.get("imagePullSecrets") or []
    named = {each.get("name") for each in own}
    secret_names = secrets.of_hosts(set(map(host_of, _images(pod)))) - named
    if secret_names:
        pod["imagePullSecrets"] = [*own, *({"name": name} for name in sorted(secret_names))]


def _images(pod: KubeObject) -> Iterator[str]:
    for part in _CONTAINERS:
        for container in pod.get(part) or ():
            if image := container.get("image"):
                yield image
    for volume in pod.get("volumes") or ():
        # An image that is mounted, not run.
        if reference := (volume.get("image") or {}).get("reference"):
            yield reference


def _canonical(host: str) -> str:
    host = host.lower()
    return DOCKER_HUB if host in _DOCKER_HUB_ALIASES else host


def _matches(pattern: str, host: str) -> bool:
    """Match part by part: `*.example.com` does not match `a.b.example.com`. The last part may have a port.

    If both have the same number of dots, each part of the pattern matches exactly one part of the host, so `*` matches
    no dot.
    """
    return pattern.count(".") == host.count(".") and fnmatchcase(host, pattern)


def _entries(secret: KubeObject) -> dict[str, Any]:
    """Credentials by registry."""
    key = TYPES[secret["type"]]
    try:
        content = json_text.decode(base64.b64decode((secret.get("data") or {})[key], validate=True), _CONFIGURATION)
    except KeyError:
        raise _Unreadable(f"it has no key {key}") from None
    except (binascii.Error, TypeError, ValueError):
        raise _Unreadable(f"{key} is not JSON") from None
    if isinstance(content, dict) and key == TYPES["kubernetes.io/dockerconfigjson"]:
        content = content.get("auths")
        if content is None:
            raise _Unreadable(f'{key} has no "auths"')
    if not isinstance(content, dict):
        raise _Unreadable(f"{key} is not a docker configuration: it must map registries to credentials")
    return content
