"""Rules between the fields of one object. Objects may have fields of any type; fields of wrong types are ignored."""

from collections.abc import Iterator
from decimal import ROUND_UP, Decimal
from functools import lru_cache
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.embedded.composites import ObjectRule
from dynamo_shared.api.embedded.rules import behaviour, names, network, paths, scheduling, sources
from dynamo_shared.api.embedded.rules.fields import CORE
from dynamo_shared.api.embedded.scalars import parsed
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.probes import HANDLERS, PROBES
from dynamo_shared.api.rules import Location, Violations
from dynamo_shared.api.untrusted.reading import entries, mapping, names_in, text

_STANDARD_RESOURCES = ("cpu", "memory", "ephemeral-storage")
_HUGE_PAGES = "hugepages-"
_OF_QUOTAS = "requests."
#: Decimal places of quantities in the API server.
_PLACES = 3
#: Size limit of all annotations, keys and values. Bytes.
_MAX_ANNOTATIONS_BYTES = 256 * 1024
_CLAIM_SOURCES = ("resourceClaimName", "resourceClaimTemplateName")
_BLOCK_SOURCES = ("persistentVolumeClaim", "ephemeral")
_SUB_PATHS = ("subPath", "subPathExpr")
#: The API server compares only this form, with the prefix CAP_.
_ADMINISTRATION = "CAP_SYS_ADMIN"
#: Fields that init containers may have only as sidecars.
_OF_RUNNING_CONTAINERS = ("lifecycle", *PROBES)


def environment_variable(value: dict[str, Any]) -> Violations:
    """A variable has either a value or a source."""
    if _given(value, "value") and _given(value, "valueFrom"):
        yield ("valueFrom",), "cannot be combined with value; keep one of them"


def value_source(value: dict[str, Any]) -> Violations:
    """`valueFrom` has exactly one source."""
    given = [name for name, item in value.items() if item is not None]
    if len(given) > 1:
        yield (), f"must have one source, not {' and '.join(given)}"
    elif not given:
        yield (), "must have a source, such as fieldRef or secretKeyRef"


def environment_source(value: dict[str, Any]) -> Violations:
    """`envFrom` has exactly one source."""
    given = [name for name in ("configMapRef", "secretRef") if value.get(name) is not None]
    if len(given) > 1:
        yield (), "must have one source, not a configMapRef and a secretRef"
    elif not given:
        yield (), "must have a source: configMapRef or secretRef"


def volume(value: dict[str, Any]) -> Violations:
    """A volume has at most one source; without one it is an emptyDir."""
    given = [name for name, item in value.items() if name != "name" and isinstance(item, dict)]
    if len(given) > 1:
        yield (), f"must have one source, not {' and '.join(given)}"


def probe(value: dict[str, Any]) -> Violations:
    """A probe has at most one handler; without one it changes the default probe."""
    given = [name for name in HANDLERS if isinstance(value.get(name), dict)]
    if len(given) > 1:
        yield (), f"must have one action, not {' and '.join(given)}"


def container(value: dict[str, Any]) -> Violations:
    """Port names are unique; liveness and startup probes have a successThreshold of 1, readiness probes no grace period."""
    known: set[str] = set()
    for index, port in entries(value.get("ports")):
        name = port.get("name")
        if isinstance(name, str) and name:
            if name in known:
                yield ("ports", index, "name"), f"another port of the container has the name {shown(name)}"
            known.add(name)
    for field in ("livenessProbe", "startupProbe"):
        threshold = mapping(value.get(field)).get("successThreshold")
        if isinstance(threshold, int) and threshold > 1:
            yield (field, "successThreshold"), f"must be 1 in a {field}, not {threshold}"
    if mapping(value.get("readinessProbe")).get("terminationGracePeriodSeconds") is not None:
        yield (
            ("readinessProbe", "terminationGracePeriodSeconds"),
            "not allowed in a readinessProbe, which never stops a container",
        )


def pod(value: dict[str, Any]) -> Violations:
    """Rules of a pod spec: names of containers, resource claims, block devices, namespaces, DNS.

    Containers with huge pages need other resources, except mainContainer, whose service may have them.
    """
    first = {*names_in(value.get("containers"))}
    for index, each in entries(value.get("initContainers")):
        name = each.get("name")
        if isinstance(name, str) and name in first:
            yield ("initContainers", index, "name"), f"another container already has the name {shown(name)}"
        yield from _of_init_container(each, ("initContainers", index))
    for field in ("containers", "initContainers"):
        for index, each in entries(value.get(field)):
            if problem := pages_alone(mapping(each.get("resources"))):
                yield (field, index, "resources"), problem
    yield from names.wrong_labels(value, "nodeSelector")
    if value.get("ephemeralContainers"):
        yield (
            ("ephemeralContainers",),
            "not allowed in a template: ephemeral containers are added to running pods; use containers",
        )
    if value.get("shareProcessNamespace") is True and value.get("hostPID") is True:
        yield ("shareProcessNamespace",), "cannot be combined with hostPID: keep one of them"
    for at, problem in resources({"limits": value.get("overhead")}) if value.get("overhead") else ():
        yield ("overhead", *at[1:]), problem
    yield from _block_devices(value)
    if value.get("dnsPolicy") == "None" and not mapping(value.get("dnsConfig")).get("nameservers"):
        yield ("dnsConfig", "nameservers"), "required, because dnsPolicy is None: name at least one server"
    yield from _claims_of_devices(value)


def resource_claim(value: dict[str, Any]) -> Violations:
    """A resource claim of a pod has exactly one source."""
    given = [name for name in _CLAIM_SOURCES if value.get(name) is not None]
    if len(given) != 1:
        yield (), f"must have one source: {' or '.join(_CLAIM_SOURCES)}"


def mount(value: dict[str, Any]) -> Violations:
    """A sub-path is relative, below the volume's root, and given only once."""
    for field in _SUB_PATHS:
        if problem := paths.not_below(value.get(field)):
            yield (field,), problem
    if all(_given(value, field) for field in _SUB_PATHS):
        yield ("subPathExpr",), "cannot be combined with subPath; keep one of them"


def mounts(value: dict[str, Any]) -> Violations:
    """Only privileged containers may propagate mounts to the node; a volume is not both mounted and a block device."""
    named: set[str] = set()
    mounted: set[str] = set()
    privileged = mapping(value.get("securityContext")).get("privileged") is True
    for index, each in entries(value.get("volumeMounts")):
        named.add(text(each.get("name")))
        mounted.add(text(each.get("mountPath")))
        if each.get("mountPropagation") == "Bidirectional" and not privileged:
            yield (
                ("volumeMounts", index, "mountPropagation"),
                "must not be Bidirectional without securityContext.privileged: true",
            )
    for index, each in entries(value.get("volumeDevices")):
        name, path = text(each.get("name")), text(each.get("devicePath"))
        if name and name in named:
            yield ("volumeDevices", index, "name"), f"{shown(name)} is also in volumeMounts; keep one of them"
        if path and path in mounted:
            yield ("volumeDevices", index, "devicePath"), f"{shown(path)} is already the mount path of a volume"
        if paths.goes_up(path):
            yield ("volumeDevices", index, "devicePath"), f"{shown(path)} must not contain '..'"


def item(value: dict[str, Any]) -> Violations:
    """A key of a ConfigMap or Secret becomes a file below the volume's root."""
    path = value.get("path")
    if problem := paths.not_below(path):
        yield ("path",), problem
    elif isinstance(path, str) and path.startswith(".."):
        yield ("path",), f"{shown(path)} must not begin with '..'"


def host_path(value: dict[str, Any]) -> Violations:
    """A path on the node does not contain `..`."""
    if paths.goes_up(value.get("path")):
        yield ("path",), f"{shown(value['path'])} must not contain '..'"


def security_context(value: dict[str, Any]) -> Violations:
    """A container that is privileged, or has CAP_SYS_ADMIN, cannot disallow privilege escalation."""
    if value.get("allowPrivilegeEscalation") is not False:
        return
    added = mapping(value.get("capabilities")).get("add")
    if value.get("privileged") is True:
        yield ("allowPrivilegeEscalation",), "must not be false if privileged is true"
    elif isinstance(added, list) and _ADMINISTRATION in added:
        yield ("allowPrivilegeEscalation",), f"must not be false if the capability {_ADMINISTRATION} is added"


def pod_security_context(value: dict[str, Any]) -> Violations:
    """A sysctl is set once."""
    known: set[str] = set()
    for index, each in entries(value.get("sysctls")):
        if (name := text(each.get("name"))) in known:
            yield ("sysctls", index, "name"), f"{shown(name)} is set twice; keep one of them"
        elif name:
            known.add(name)


def resources(value: dict[str, Any]) -> Violations:
    """Resources have valid names, quantities that are not negative, and requests within their limits."""
    amounts = {side: _amounts(value, side) for side in quantity.SIDES}
    for field, each in amounts.items():
        for name, amount in each.items():
            if problem := _wrong_resource(name):
                yield (field, name), problem
            elif amount < 0:
                yield (field, name), "must not be negative"
            elif _whole(name) and amount != amount.to_integral_value():
                yield (field, name), f"must be a whole number, not {shown(value[field][name])}"
            elif name.startswith(_HUGE_PAGES) and not _is_whole_pages(name, amount):
                yield (
                    (field, name),
                    f"{shown(value[field][name])} is not a number of whole pages of {name[len(_HUGE_PAGES) :]}",
                )
    for name, request in amounts["requests"].items():
        limit = amounts["limits"].get(name)
        if limit is None or request == limit or _wrong_resource(name):
            continue
        if request > limit:
            yield ("requests", name), f"{value['requests'][name]} is more than the limit, {value['limits'][name]}"
        elif cannot_be_shared(name):
            yield ("requests", name), f"must equal the limit, {value['limits'][name]}; {name} cannot be overcommitted"


def pages_alone(resources: dict[str, Any]) -> str:
    """Why a container cannot have huge pages (it requests neither cpu nor memory); empty if it can."""
    if not any(str(name).startswith(_HUGE_PAGES) for side in quantity.SIDES for name in mapping(resources.get(side))):
        return ""
    named = {name for side in quantity.SIDES for name in _amounts(resources, side)}
    pages = min((name for name in named if name.startswith(_HUGE_PAGES)), default="")
    alone = pages and not {"cpu", "memory"} & named
    return f"has {pages}, which needs an amount of cpu or memory: add one" if alone else ""


def metadata(value: dict[str, Any]) -> Violations:
    """Labels and annotations have valid keys, and labels valid values."""
    yield from names.wrong_labels(value, "labels")
    given = value.get("annotations")
    for key in given if isinstance(given, dict) else ():
        # The prefix of an annotation's key may have upper-case letters.
        if problem := names.wrong_key(str(key).lower()):
            yield ("annotations", key), problem
    if isinstance(given, dict):
        size = sum(
            len(each.encode(errors="replace")) for pair in given.items() for each in pair if isinstance(each, str)
        )
        if size > _MAX_ANNOTATIONS_BYTES:
            yield (
                ("annotations",),
                f"has {size} bytes of keys and values, but at most {_MAX_ANNOTATIONS_BYTES} are allowed",
            )


OBJECT_RULES: dict[str, tuple[ObjectRule, ...]] = {
    f"{CORE}AppArmorProfile": (behaviour.app_armor_profile,),
    f"{CORE}Container": (container, mounts),
    f"{CORE}DownwardAPIVolumeFile": (item, sources.file),
    f"{CORE}EphemeralVolumeSource": (sources.ephemeral,),
    f"{CORE}HostPathVolumeSource": (host_path,),
    f"{CORE}KeyToPath": (item,),
    f"{CORE}LifecycleHandler": (behaviour.lifecycle_handler,),
    f"{CORE}NodeSelectorRequirement": (scheduling.node_requirement,),
    f"{CORE}NodeSelectorTerm": (scheduling.node_term,),
    f"{CORE}ObjectFieldSelector": (sources.field,),
    f"{CORE}PodAffinityTerm": (scheduling.affinity_term,),
    f"{CORE}PodDNSConfig": (network.dns,),
    f"{CORE}PodResourceClaim": (resource_claim,),
    f"{CORE}PodSecurityContext": (pod_security_context,),
    f"{CORE}ProjectedVolumeSource": (sources.projected,),
    f"{CORE}ResourceFieldSelector": (sources.resource,),
    f"{CORE}SeccompProfile": (behaviour.seccomp_profile,),
    f"{CORE}SecurityContext": (security_context,),
    f"{CORE}VolumeMount": (mount,),
    f"{CORE}EnvVar": (environment_variable,),
    f"{CORE}EnvFromSource": (environment_source,),
    f"{CORE}EnvVarSource": (value_source, sources.variable),
    f"{CORE}PodSpec": (pod, network.host_ports),
    f"{CORE}Probe": (probe,),
    f"{CORE}ResourceRequirements": (resources,),
    f"{CORE}Toleration": (scheduling.toleration,),
    f"{CORE}TopologySpreadConstraint": (scheduling.spread,),
    f"{CORE}Volume": (volume,),
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": (metadata,),
}


def _of_init_container(value: dict[str, Any], at: Location) -> Violations:
    """An init container that is not a sidecar has no probes and no lifecycle handlers."""
    if value.get("restartPolicy") == "Always":
        return
    for field in _OF_RUNNING_CONTAINERS:
        if value.get(field) is not None:
            yield (
                (*at, field),
                "only allowed in an init container with restartPolicy Always, which keeps running: leave it out",
            )


def _containers(value: dict[str, Any]) -> Iterator[tuple[Location, dict[str, Any]]]:
    """All containers of a pod, also `mainContainer` of v1alpha1."""
    yield ("mainContainer",), mapping(value.get("mainContainer"))
    for field in ("containers", "initContainers"):
        for index, each in entries(value.get(field)):
            yield (field, index), each


def _block_devices(value: dict[str, Any]) -> Violations:
    """Only volumes with a PersistentVolumeClaim can be block devices."""
    others = {
        text(each.get("name"))
        for _, each in entries(value.get("volumes"))
        if not any(each.get(source) is not None for source in _BLOCK_SOURCES)
    }
    for at, each in _containers(value) if others else ():
        for index, device in entries(each.get("volumeDevices")):
            name = text(device.get("name"))
            if name and name in others:
                yield (
                    (*at, "volumeDevices", index, "name"),
                    f"{shown(name)} must be a persistentVolumeClaim or an ephemeral volume: other volumes are not block devices",
                )


def _claims_of_devices(value: dict[str, Any]) -> Violations:
    """Containers refer to resource claims of their pod."""
    known = {text(each.get("name")) for _, each in entries(value.get("resourceClaims"))}
    for at, each in _containers(value):
        for index, claim in entries(mapping(each.get("resources")).get("claims")):
            name = claim.get("name")
            if isinstance(name, str) and name and name not in known:
                message = f"{shown(name)} is not a claim of the pod: add it to its resourceClaims"
                yield (*at, "resources", "claims", index, "name"), message


def _given(value: dict[str, Any], field: str) -> bool:
    return value.get(field) not in (None, "")


def _amounts(value: dict[str, Any], side: str) -> dict[str, Decimal]:
    known: dict[str, Decimal] = {}
    for name, amount in mapping(value.get(side)).items():
        if isinstance(name, str) and amount is not None:
            try:
                known[name] = _as_stored(parsed(amount))
            except quantity.InvalidQuantity:
                continue
    return known


@lru_cache(maxsize=1024)
def _as_stored(amount: Decimal) -> Decimal:
    """The quantity in thousandths, rounded up, as the API server compares it."""
    exponent = amount.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -_PLACES:
        return amount
    return (amount * 1000).to_integral_value(ROUND_UP) / 1000


def _is_whole_pages(name: str, amount: Decimal) -> bool:
    try:
        page = parsed(name.removeprefix(_HUGE_PAGES))
    except quantity.InvalidQuantity:
        return False
    # With integers, because the remainder of Decimals fails if the quotient has more than 28 digits.
    return page > 0 and page == page.to_integral_value() and int(amount.to_integral_value(ROUND_UP)) % int(page) == 0


def _wrong_resource(name: str) -> str:
    if "/" in name:
        if name.startswith(_OF_QUOTAS) and not name.partition("/")[0].endswith("kubernetes.io"):
            return f"no such resource; {_OF_QUOTAS!r} is for quotas: leave it out"
        return names.wrong_key(name)
    if name in _STANDARD_RESOURCES or name.startswith(_HUGE_PAGES):
        return ""
    if name == "gpu":
        return "no such resource; the name of a GPU is nvidia.com/gpu"
    suggestion = suggestion_for(name, _STANDARD_RESOURCES) or (
        "; other resources have a domain in their name, such as nvidia.com/gpu"
    )
    return f"no such resource{suggestion}"


def _whole(name: str) -> bool:
    """Whether a resource is counted in whole units, such as GPUs."""
    return "/" in name and not name.partition("/")[0].endswith("kubernetes.io")


def cannot_be_shared(name: str) -> bool:
    """Whether a request must equal its limit, because the resource cannot be overcommitted."""
    return _whole(name) or name.startswith(_HUGE_PAGES)
