"""Image pull secrets by registry: who gives an image without a secret's name gets the namespace's secrets of its host.

Kubernetes' own rules are kept where it decides which credentials it tries (`pkg/credentialprovider/keyring.go`): a key
of a docker configuration may have a scheme, a path, and `*` for parts of the host's name; a port counts. Paths are left
to the kubelet: a secret too many is not tried, one too few is an image that cannot be pulled.
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
#: Other names of Docker Hub: what `docker login` writes into its file, and where the images really are.
_DOCKER_HUB_ALIASES = frozenset({"index.docker.io", "registry-1.docker.io"})
#: Where each type of Secret has its configuration; the older one is what the newer one has under `auths`.
TYPES: Mapping[str, str] = {
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
    "kubernetes.io/dockercfg": ".dockercfg",
}
_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://")
#: A docker configuration has some hundred bytes for each registry; a Secret may have 1 MiB.
_CONFIGURATION = ReadLimits(1 << 20, 20_000, 16)
#: Registries of a namespace that count, and those of them that are patterns, to each of which each image is held.
#: A host's name with a port has 259 characters at most.
MOST_HOSTS, MOST_PATTERNS, LONGEST_HOST = 1000, 50, 259
#: Containers of a pod that have images.
_CONTAINERS = ("containers", "initContainers")


@dataclass(frozen=True, slots=True)
class PullSecrets:
    """Names of a namespace's secrets by the registry that they open; no credentials."""

    by_host: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of_hosts(self, hosts: Set[str]) -> set[str]:
        """Names of the secrets for some registries."""
        patterns = [(pattern, names) for pattern, names in self.by_host.items() if "*" in pattern]
        secret_names = {name for host in hosts for name in self.by_host.get(host, ())}
        for host in hosts:
            for pattern, names in patterns if len(host) <= LONGEST_HOST else ():
                if _matches(pattern, host):
                    secret_names.update(names)
        return secret_names


NO_PULL_SECRETS = PullSecrets()


class _Unreadable(Exception):
    """A secret holds no credentials; in words for its owner, which quote nothing of it."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """A secret of which something could not be read; what could be read of it counts all the same."""

    name: str
    message: str


def index(secrets: Iterable[KubeObject]) -> tuple[PullSecrets, tuple[Malformed, ...]]:
    """Secrets of one namespace by host, and what is wrong with those that cannot be read; one never hides another."""
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
            # Keys are not repeated: one may hold a user's name and password before the host.
            counted = f"{wrong} of its {len(entries)} entries"
            malformed.append(
                Malformed(name, f"{counted} do not map a registry to an object with credentials, or are too many")
            )
    by_host = {host: tuple(sorted(names)) for host, names in sorted(hosts.items())}
    return PullSecrets(by_host), tuple(sorted(malformed, key=lambda each: (each.name, each.message)))


def host_of(image: str) -> str:
    """Registry of an image, in lower case with its port: `docker.io` for short names such as `busybox:1` or `org/img`."""
    first, slash, _ = image.partition("/")
    # What has neither dot nor port is a user or an organisation on Docker Hub.
    if not slash or not ("." in first or ":" in first or first.lower() == "localhost"):
        return DOCKER_HUB
    return _canonical(first)


def host_of_key(key: str) -> str:
    """Registry of a key of a docker configuration: `https://index.docker.io/v1/` is Docker Hub."""
    return _canonical(_SCHEME.sub("", key.strip().lower()).partition("/")[0].rpartition("@")[2])


def add(pod: KubeObject, secrets: PullSecrets, annotations: Mapping[str, str]) -> None:
    """Put the secrets of the pod's images behind those that the user names, unless an annotation wants none of it."""
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
        # An image that is mounted instead of run.
        if reference := (volume.get("image") or {}).get("reference"):
            yield reference


def _canonical(host: str) -> str:
    host = host.lower()
    return DOCKER_HUB if host in _DOCKER_HUB_ALIASES else host


def _matches(pattern: str, host: str) -> bool:
    """Part by part, so that `*.example.com` is not `a.b.example.com`; the last part may have a port.

    Where there are as many dots in both, each of the pattern takes one of the host's, and `*` can take none.
    """
    return pattern.count(".") == host.count(".") and fnmatchcase(host, pattern)


def _entries(secret: KubeObject) -> dict[str, Any]:
    """Registry -> credentials."""
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
        raise _Unreadable(f"{key} is not a docker configuration: it should map registries to credentials")
    return content
