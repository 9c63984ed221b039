"""Pods that the API server would refuse: their templates, and what the platform adds."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from dynamo_shared.api import gpus, quantity
from dynamo_shared.api.conversion import amounts
from dynamo_shared.api.embedded.rules import names, objects, templates
from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.objects import MAIN, RUNTIME
from dynamo_shared.api.pods import DRAIN_SECONDS, DRAIN_VARIABLE, GRACE_PERIOD, GRACE_PERIOD_OF_PICKER
from dynamo_shared.api.probes import PROBES, asks
from dynamo_shared.api.role_templates import WORKER
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, entries, integer, items, mapping, names_in, text
from dynamo_shared.api.validation.component import place_of_amount, resources_of_main
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, BETA, COMPONENT, GRAPH, RuleSet, Violations, broken, path
from dynamo_shared.api.validation.unused import SHARED_MEMORY, SHARED_MEMORY_PATH, has_no_shared_memory
from dynamo_shared.api.validation.view import ComponentView, FieldValue, of_each_role, once

PODS = RuleSet("Pods", (GRAPH, COMPONENT))
POD_WARNINGS = RuleSet("Pods", (GRAPH, COMPONENT))

_PERIOD = "terminationGracePeriodSeconds"
#: Refused mounts that are reported for one component, each with a suggested volume. A tenant may write thousands.
_REPORTED = 10


@PODS.rule("{problem}", added=True)  # the messages for all pods
def templates_hold_together(component: ComponentView, _facts: Facts) -> Violations:
    """Fields of a pod template agree as the API server requires: sources, probes, resources, claims, labels, paths.

    A template has no ephemeral containers, and only init containers that keep running have probes.
    """
    own: list[tuple[Location, Violations]] = [
        (at, templates.of_template(template)) for template, at in component.role_templates.values()
    ]
    if component.is_alpha:
        pod = mapping(component.spec.get("extraPodSpec"))
        own.insert(0, (component.field("extraPodSpec"), templates.of_pod(pod)))
    else:
        template = mapping(component.spec.get("podTemplate"))
        own.insert(0, (component.field("podTemplate"), templates.of_template(template)))
    for at, problems in own:
        for location, problem in problems:
            yield (*at, *location), problem


_ALWAYS_RESTARTED = (
    "must be Always, not {policy}: without Grove, pods belong to a {workload}, which restarts them; leave it out"
)
_NO_END = "not allowed without Grove: pods belong to a {workload}, which runs them without end; leave it out"


@PODS.rule(_ALWAYS_RESTARTED, _NO_END, added=True)
@of_each_role
def pods_without_grove_run_without_end(component: ComponentView, facts: Facts) -> Violations:
    """Pods of a Deployment or LeaderWorkerSet are always restarted, and have no deadline."""
    if component.of_grove(facts.grove) is not False:
        return
    pod, at = component.pod
    workload = "LeaderWorkerSet" if component.nodes > 1 else "Deployment"
    policy = pod.get("restartPolicy")
    if policy in ("Never", "OnFailure"):
        yield (*at, "restartPolicy"), _ALWAYS_RESTARTED.format(policy=policy, workload=workload)
    if pod.get("activeDeadlineSeconds") is not None:
        yield (*at, "activeDeadlineSeconds"), _NO_END.format(workload=workload)


@PODS.rule("required: only the image of the engine's container may be added later", added=True)
@of_each_role
def other_containers_have_images(component: ComponentView, _facts: Facts) -> Violations:
    """Containers other than the engine's, and init containers, have images."""
    for container, at in _others(component):
        if container.get("image") in (None, ""):
            yield broken((*at, "image"))


@PODS.rule("needs a limit of the same amount: {name} cannot be overcommitted", added=True)
@of_each_role
def devices_have_limits(component: ComponentView, _facts: Facts) -> Violations:
    """For devices such as GPUs, a container's request must equal its limit."""
    main, at = component.main
    written = mapping(component.spec.get("resources")) if component.has_fields else {}
    resources = main_resources(component)
    for name in resources["requests"]:
        # GPUs that engines share are claimed differently.
        shared = component.gms is not None and gpus.is_gpu(name)
        if not shared and objects.cannot_be_shared(name) and name not in resources["limits"]:
            own = mapping(main.get("resources"))
            place = (
                component.field(*place_of_amount("requests", name, written, own))
                if component.has_fields
                else (*at, "resources", "requests", name)
            )
            yield broken(place, name=name)
    for container, place in _others(component):
        given = mapping(container.get("resources"))
        for name in mapping(given.get("requests")):
            if objects.cannot_be_shared(str(name)) and name not in mapping(given.get("limits")):
                yield broken((*place, "resources", "requests", str(name)), name=name)


def main_resources(component: ComponentView) -> dict[str, dict[str, object]]:
    """Limits and requests of the engine's container."""
    given = resources_of_main(component)
    return {side: {str(name): each for name, each in mapping(given.get(side)).items()} for side in quantity.SIDES}


def main_claims(component: ComponentView) -> bool:
    """Whether the engine's container names claims for devices."""
    return bool(amounts.claims_of(resources_of_main(component)))


@PODS.rule("{problem}", versions=(ALPHA,), added=True)  # the messages for all pods
def secrets_of_variables_have_names(component: ComponentView, _facts: Facts) -> Violations:
    """A Secret that provides variables must have a valid object name. In v1beta1 the check of pod templates requires this."""
    for at in (("envFromSecret",), ("frontendSidecar", "envFromSecret")):
        if problem := names.wrong_object_name(text(below(component.spec, at))):
            yield component.field(*at), problem


@PODS.rule("{name} is not a claim of the pod: add it to {claims}", versions=(ALPHA,), added=True)
def claims_of_services_are_of_their_pods(component: ComponentView, _facts: Facts) -> Violations:
    """A service names only device claims of its pods. In v1beta1 the check of pod templates requires this."""
    claims = entries(below(component.spec, ("resources", "claims")))
    # The claims of mainContainer replace them.
    if not claims or not component.has_fields or amounts.claims_of(mapping(component.main.value.get("resources"))):
        return
    pod, at = component.pod
    known = {*names_in(pod.get("resourceClaims"))}
    for index, claim in claims:
        name = text(claim.get("name"))
        if name and name not in known:
            place = component.field("resources", "claims", index, "name")
            yield broken(place, name=shown(name), claims=path((*at, "resourceClaims")))


@PODS.rule("{problem}", versions=(ALPHA,), added=True)  # the messages for all pods
def probes_of_services_hold_together(component: ComponentView, _facts: Facts) -> Violations:
    """The probes of a service are valid for its container. In v1beta1 the check of pod templates requires this."""
    if not component.has_fields:
        return
    main = component.main.value
    probes = {
        name: {**given, **mapping(main.get(name))} for name in PROBES if (given := mapping(component.spec.get(name)))
    }
    problems = list(objects.container(probes))
    # Errors that are only in mainContainer are reported there.
    reported = {at for at, _ in objects.container(main)} if problems else ()
    for at, problem in problems:
        if at not in reported:
            yield component.field(*at), problem


@PODS.rule("has no action, and the platform has no default for it: add httpGet, exec, tcpSocket or grpc", added=True)
@of_each_role
def probes_ask_something(component: ComponentView, _facts: Facts) -> Violations:
    """A probe has an action; only if the platform has a default probe may it have only timing fields."""
    for container, at in _others(component):
        if at[len(component.pod.at)] == "containers" and not _is_sidecar(component, container):
            for probe in PROBES:
                if isinstance(container.get(probe), dict) and not asks(container[probe]):
                    yield broken((*at, probe))
    main, at = component.main
    fields = component.spec if component.has_fields else {}
    for probe in PROBES:
        own, of_service = mapping(main.get(probe)), mapping(fields.get(probe))
        if (own or of_service) and not (asks(own) or asks(of_service) or _has_default(component, probe)):
            yield broken((*at, probe) if own else component.field(probe))


@PODS.rule(
    "must be at most {period}, the pod's termination grace period in seconds: write less, or set {field} to at least {seconds}",
    added=True,
)
@of_each_role
def hooks_end_before_their_pod(component: ComponentView, _facts: Facts) -> Violations:
    """A preStop or postStart sleep is not longer than the pod's termination grace period."""
    pod, pod_at = component.pod
    # A zero counts as absent.
    period = pod.get(_PERIOD) or (GRACE_PERIOD_OF_PICKER if component.type == "epp" else GRACE_PERIOD)
    for container, at in (component.main, *_others(component)):
        for hook in ("postStart", "preStop") if container.get("lifecycle") else ():
            steps = ("lifecycle", hook, "sleep", "seconds")
            seconds = integer(below(container, steps))
            if isinstance(period, int) and seconds is not None and seconds > period > 0:
                yield broken((*at, *steps), period=period, field=path((*pod_at, _PERIOD)), seconds=seconds)


def _has_default(component: ComponentView, probe: str) -> bool:
    """Whether the platform has this default probe for main: workers of a replica whose roles have templates have none."""
    if component.type == "frontend":
        return probe != "startupProbe"
    if component.role == WORKER or component.runtime_is_sidecar:
        return False
    return component.is_worker or component.type in ("planner", "epp")


class _Mount(NamedTuple):
    """A mount of the engine's container: its volume, its path, and the locations of both."""

    name: str
    path: str
    at: Location
    path_at: Location
    cache: bool = False


@PODS.rule("is read as the name of a claim, because the pod has no volume of this name, and {problem}", added=True)
@of_each_role
def mounts_name_volumes_or_claims(component: ComponentView, _facts: Facts) -> Violations:
    """The engine's container mounts a volume of the pod, or else a claim by that name, which must be a valid object name."""
    known = _volumes(component)
    for mount in _mounts(component):
        if mount.name not in known and (problem := names.wrong_object_name(mount.name)):
            yield broken(mount.at, problem=problem)


@PODS.rule(
    "{name} is not a volume of the pod{hint}: add it to {volumes}; only main can mount claims by name", added=True
)
@of_each_role
def other_containers_mount_volumes(component: ComponentView, _facts: Facts) -> Violations:
    """Other containers mount only volumes of the pod: its own volumes, and those that the engine's container mounts."""
    if component.gms is not None or component.checkpoint is not None or component.type == "epp":
        # The platform adds more volumes to these pods.
        return
    if component.nodes > 1 and component.engine in ("", "trtllm"):
        # TensorRT-LLM mounts its SSH keys, whose name depends on the installation; an unknown engine may be named later.
        return
    known = {_TOPOLOGY, *_volumes(component), *(mount.name for mount in _mounts(component))}
    if component.nodes > 1:
        known.add(_SCRIPT_OF_WORKERS)
    if not has_no_shared_memory(component):
        known.add(SHARED_MEMORY)
    mounts = (
        ((*at, "volumeMounts", index, "name"), text(mount.get("name")))
        for container, at in _others(component)
        for index, mount in entries(container.get("volumeMounts"))
    )
    unknown = ((place, name) for place, name in mounts if name and name not in known)
    for place, name in islice(unknown, _REPORTED):
        volumes = path((*component.pod.at, "volumes"))
        yield broken(place, name=shown(name), hint=suggestion_for(name, known), volumes=volumes)


#: Volume of the workers of a replica that spans nodes, with the script that waits for the leader.
_SCRIPT_OF_WORKERS = "wait-leader-script"
#: Volume of the pods of a graph with a KV transfer policy: the topology labels of their node.
_TOPOLOGY = "topology-labels"


@PODS.rule("{path} is where {name} is mounted already ({first}): mount one of them elsewhere", added=True)
@of_each_role
def paths_have_one_mount(component: ComponentView, _facts: Facts) -> Violations:
    """Each path of the engine's container has one mount, and the compilation cache is one of these mounts."""
    first: dict[str, _Mount] = {}
    for mount in _mounts(component):
        # The platform's shared memory replaces all mounts at that path.
        if mount.path == SHARED_MEMORY_PATH and not has_no_shared_memory(component):
            continue
        other = first.setdefault(mount.path, mount)
        if other is mount or (mount.cache and other.name == mount.name):
            continue
        # If the API server publishes the list's type, the schema reports two mounts of the same list.
        if mount.cache or (component.has_fields and mount.at[: len(component.pod.at)] != component.pod.at):
            yield broken(mount.path_at, path=shown(mount.path), name=shown(other.name), first=path(other.at[:-1]))


@PODS.rule("the engine writes what it compiles into this volume: leave readOnly out", added=True)
@of_each_role
def compilation_cache_is_writable(component: ComponentView, _facts: Facts) -> Violations:
    """The compilation cache is not mounted read-only, and its claim is not a read-only volume."""
    cache = next((each for each in _mounts(component) if each.cache), None)
    if cache is None:
        return
    main, at = component.main
    for index, mount in entries(main.get("volumeMounts")):
        if (mount.get("name"), mount.get("mountPath"), mount.get("readOnly")) == (cache.name, cache.path, True):
            yield broken((*at, "volumeMounts", index, "readOnly"))
    pod, at = component.pod
    read_only = ("persistentVolumeClaim", "readOnly")
    for index, volume in entries(pod.get("volumes")):
        if volume.get("name") == cache.name and below(volume, read_only) is True:
            yield broken((*at, "volumes", index, *read_only))


_RELATIVE = "is relative to the root of the container: write {path}"
_COLON = "has a ':', which not all container runtimes accept in a mount path"


@POD_WARNINGS.rule(_RELATIVE, _COLON, added=True)
@of_each_role
def mount_paths_are_absolute(component: ComponentView, _facts: Facts) -> Violations:
    """A mount path is absolute and has no colon, which some container runtimes read as the end of the path."""
    for mount in _mounts(component):
        if not mount.path.startswith("/"):
            yield mount.path_at, _RELATIVE.format(path=shown(f"/{mount.path}"))
        if ":" in mount.path:
            yield mount.path_at, _COLON


@POD_WARNINGS.rule(
    "Grove places pods itself and rejects new graphs whose pods set this field: leave it out, or disable Grove for this graph",
    added=True,
)
@of_each_role
def grove_places_pods(component: ComponentView, facts: Facts) -> Violations:
    """Grove refuses pods that name their node or set topology spread constraints, because Grove places the pods."""
    pod, at = component.pod
    for field in ("nodeName", "topologySpreadConstraints") if component.of_grove(facts.grove) else ():
        if pod.get(field):
            yield broken((*at, field))


_SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{0,9})?")
_ABORTED = (
    "a worker that stops aborts its requests after {seconds} seconds: to give them more time, set {name} in the "
    "env of {container} to less than this number"
)
_KILLED = (
    "Kubernetes kills a worker {period} seconds after it begins to stop: set terminationGracePeriodSeconds to "
    "more than {seconds}, the value of {name}"
)


@POD_WARNINGS.rule(_ABORTED, _KILLED, versions=(BETA,), added=True)
def workers_that_leave_finish_their_requests(component: ComponentView, _facts: Facts) -> Violations:
    """A worker limits how long it finishes requests when it stops; the pod's termination grace period must be longer."""
    main, at = component.runtime
    pod, pod_at = component.pod
    period = pod.get(_PERIOD)
    if not component.is_worker or main.get("envFrom") or not isinstance(period, int | None):
        return
    own = _value(main.get("env"), DRAIN_VARIABLE)
    value = own or _value(component.env_of_graph, DRAIN_VARIABLE)
    if value is None:
        if period is not None and period > GRACE_PERIOD:
            container = RUNTIME if component.runtime_is_sidecar else MAIN
            yield (
                (*pod_at, _PERIOD),
                _ABORTED.format(seconds=DRAIN_SECONDS, name=DRAIN_VARIABLE, container=container),
            )
        return
    seconds = text(value.value)
    if _SECONDS.fullmatch(seconds) and float(seconds) >= (period or GRACE_PERIOD):
        place = (*at, *value.at) if own else (*pod_at, _PERIOD)
        yield place, _KILLED.format(period=period or GRACE_PERIOD, seconds=seconds, name=DRAIN_VARIABLE)


def _value(env: Any, name: str) -> FieldValue | None:
    """The value of the first variable of a name, with its location in the container or the graph; None without one."""
    variables = enumerate(map(mapping, items(env)))
    return next(
        (FieldValue(each.get("value"), ("env", at, "value")) for at, each in variables if each.get("name") == name),
        None,
    )


@once
def _others(component: ComponentView) -> list[FieldValue]:
    """Containers of the template other than the engine's, and init containers."""
    pod, at = component.pod
    return [
        FieldValue(container, (*at, field, index))
        for field in ("containers", "initContainers")
        for index, container in entries(pod.get(field))
        if field != "containers" or container.get("name") != MAIN
    ]


def _is_sidecar(component: ComponentView, container: dict[str, Any]) -> bool:
    return not component.is_alpha and container.get("name") == component.spec.get("frontendSidecar")


@once
def _volumes(component: ComponentView) -> set[str]:
    return {*names_in(component.pod.value.get("volumes"))}


@once
def _mounts(component: ComponentView) -> list[_Mount]:
    """Readable mounts of the engine's container, with the compilation cache last."""
    main, main_at = component.main
    mounts = list(_listed(main.get("volumeMounts"), (*main_at, "volumeMounts"), "mountPath"))
    if component.is_alpha:
        own = list(_listed(component.spec.get("volumeMounts"), component.field("volumeMounts"), "mountPoint"))
        cache = next((each for each in own if each.cache), None)
        # A mount of mainContainer replaces the service's mount at the same path.
        taken = {"", *(each.path for each in mounts)}
        plain = (each for each in own if component.has_fields and each is not cache and each.path not in taken)
        mounts += [each._replace(cache=False) if each.cache else each for each in plain]
    else:
        at = component.field("compilationCache")
        given = mapping(component.spec.get("compilationCache"))
        name = text(given.get("pvcName"))
        place = text(given.get("mountPath"))
        cache = _Mount(name, place, (*at, "pvcName"), (*at, "mountPath"), cache=True) if name else None
    if cache is not None:
        known = BACKENDS.get(component.engine)
        place = cache.path or (known.pods.compilation_cache_path if known is not None else "")
        if place:
            mounts.append(cache._replace(path=place))
    return mounts


def _listed(mounts: Any, at: Location, path_field: str) -> Iterator[_Mount]:
    for index, each in entries(mounts):
        name, place, cache = text(each.get("name")), text(each.get(path_field)), each.get("useAsCompilationCache")
        if name and (place or cache is True):
            yield _Mount(name, place, (*at, index, "name"), (*at, index, path_field), cache is True)
