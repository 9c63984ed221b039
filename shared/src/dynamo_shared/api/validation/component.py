"""Requirements of a component, in a graph or on its own: exposure, volumes, resources, sidecars."""

import re
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.conversion import amounts
from dynamo_shared.api.conversion.pod import SIDECAR
from dynamo_shared.api.embedded.rules import objects, paths
from dynamo_shared.api.engines import BACKENDS
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, entries, items, mapping, names_in, text
from dynamo_shared.api.v1beta1.enums import ComponentType
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import ALPHA, BETA, COMPONENT, GRAPH, RuleSet, Violations, broken, listed
from dynamo_shared.api.validation.view import ComponentView, of_each_role, once

COMPONENTS = RuleSet("Components", (GRAPH, COMPONENT))


@COMPONENTS.rule("required, since the ingress is enabled: it is the first label of the host name", versions=(ALPHA,))
def ingress_has_a_host(component: ComponentView, _facts: Facts) -> Violations:
    """An enabled ingress has a host."""
    ingress = mapping(component.spec.get("ingress"))
    if ingress.get("enabled") is True and ingress.get("host") in (None, ""):
        yield broken(component.field("ingress", "host"))


_NO_MOUNT_POINT = (
    "required: the path in the container, or useAsCompilationCache: true for the default path of the engine's cache"
)
_NO_CACHE_PLACE = "required: {engine} has no default path for its compilation cache; write the directory of the cache"


@COMPONENTS.rule(_NO_MOUNT_POINT, _NO_CACHE_PLACE, versions=(ALPHA,))
def volumes_are_mounted_somewhere(component: ComponentView, _facts: Facts) -> Violations:
    """A mount has a path; only the compilation cache of vLLM has a default path."""
    for index, mount in entries(component.spec.get("volumeMounts")):
        if mount.get("mountPoint") not in (None, ""):
            continue
        at = component.field("volumeMounts", index, "mountPoint")
        if mount.get("useAsCompilationCache") is not True:
            yield at, _NO_MOUNT_POINT
        elif (engine := _without_cache_place(component)) is not None:
            yield at, _NO_CACHE_PLACE.format(engine=engine)


@COMPONENTS.rule(_NO_CACHE_PLACE, versions=(BETA,), added=True, of="compilationCache")
def compilation_cache_has_a_place(component: ComponentView, _facts: Facts) -> Violations:
    """Only vLLM has a default path for its compilation cache; other engines need one."""
    cache = component.spec.get("compilationCache")
    if isinstance(cache, dict) and cache.get("mountPath") in (None, ""):
        engine = _without_cache_place(component)
        if engine is not None:
            yield component.field("compilationCache", "mountPath"), _NO_CACHE_PLACE.format(engine=engine)


@COMPONENTS.rule(
    "{path} must be a relative path: it begins at the root of the volume",
    "{path} must not contain '..'",
    versions=(BETA,),
    added=True,
    of="compilationCache",
)
def compilation_cache_is_below_its_volume(component: ComponentView, _facts: Facts) -> Violations:
    """The directory of a compilation cache is a relative path within its volume."""
    if problem := paths.not_below(mapping(component.spec.get("compilationCache")).get("subPath")):
        yield component.field("compilationCache", "subPath"), problem


def _without_cache_place(component: ComponentView) -> str | None:
    """What is known to have no default path for its cache, for a message; None if there may be one."""
    if not component.is_worker:
        words = component.words
        return f"{words.type} {component.type}" if component.type else f"a {words.component} without {words.type}"
    engine = BACKENDS.get(component.engine)
    if engine is None:
        # A command may be added later.
        return "an engine that is not known" if component.has_command else None
    return None if engine.pods.compilation_cache_path else component.engine


@COMPONENTS.rule("must not be below 0; 0 disables shared memory", versions=(BETA,), added=True, of="sharedMemorySize")
def shared_memory_is_not_negative(component: ComponentView, _facts: Facts) -> Violations:
    """Shared memory has a size, or is off. In v1alpha1 the schema requires this."""
    size = quantity.amount_of(component.spec.get("sharedMemorySize"))
    if size is not None and size < 0:
        yield broken(component.field("sharedMemorySize"))


@COMPONENTS.rule(
    "'sidecar-frontend' is the name of the container that frontendSidecar creates: rename or remove this container",
    versions=(ALPHA,),
    of="frontendSidecar",
)
def frontend_sidecar_has_its_name_alone(component: ComponentView, _facts: Facts) -> Violations:
    """No other container has the name of the container that frontendSidecar becomes."""
    if not isinstance(component.spec.get("frontendSidecar"), dict):
        return
    for index, container in entries(below(component.spec, ("extraPodSpec", "containers"))):
        if container.get("name") == SIDECAR:
            yield broken(component.field("extraPodSpec", "containers", index, "name"))


_NO_SIDECAR = (
    "{name} is not a container of podTemplate.spec.containers other than main{hint}: add it there, or leave this out"
)
_ROLE_LACKS_SIDECAR = (
    "lacks {name}, a container that frontendSidecar requires in the pods of all roles: add it, or leave "
    "frontendSidecar out"
)


@COMPONENTS.rule(_NO_SIDECAR, _ROLE_LACKS_SIDECAR, versions=(BETA,), added=True, of="frontendSidecar")
@of_each_role
def frontend_sidecar_is_a_container(component: ComponentView, _facts: Facts) -> Violations:
    """The frontend sidecar is a container other than main, in the pod template and in the templates of roles."""
    sidecar = component.spec.get("frontendSidecar")
    if not isinstance(sidecar, str) or not sidecar:
        return
    others = _names_of_others(component)
    if sidecar in others:
        return
    hint = f" ({listed(others)})" if others else ""
    if component.has_own_template:
        yield (*component.pod.at, "containers"), _ROLE_LACKS_SIDECAR.format(name=shown(sidecar))
    else:
        yield component.field("frontendSidecar"), _NO_SIDECAR.format(name=shown(sidecar), hint=hint)


@COMPONENTS.rule(
    "lacks 'sidecar-frontend', a container that frontendSidecar requires in the pods of all roles: add it, or "
    "leave frontendSidecar out",
    versions=(ALPHA,),
    added=True,
    of="frontendSidecar",
)
@of_each_role
def templates_of_roles_have_the_frontend_sidecar(component: ComponentView, _facts: Facts) -> Violations:
    """A frontendSidecar adds a container to the service's own pods; a role's template must contain it already."""
    # If all roles have a template, another rule refuses the sidecar.
    if len(component.role_templates) != 1 or not component.has_own_template:
        return
    if isinstance(component.spec.get("frontendSidecar"), dict) and SIDECAR not in _names_of_others(component):
        yield broken((*component.pod.at, "containers"))


def _names_of_others(component: ComponentView) -> list[str]:
    """Names of the containers of a pod other than the engine's."""
    return [name for name in names_in(component.pod.value.get("containers")) if name != MAIN]


_AMOUNTS = ("cpu", "memory", "gpu")


@COMPONENTS.rule("{value} is not a quantity; examples: 8Gi, 500m, 2", versions=(ALPHA,), added=True)
def amounts_are_quantities(component: ComponentView, _facts: Facts) -> Violations:
    """Amounts of resources that are strings are Kubernetes quantities."""
    for kind in quantity.SIDES:
        given = mapping(below(component.spec, ("resources", kind)))
        for name, value in given.items():
            if name in _AMOUNTS and _is_not_quantity(value):
                yield broken(component.field("resources", kind, name), value=shown(value))
        for name, value in mapping(given.get("custom")).items():
            if isinstance(name, str) and _is_not_quantity(value):
                yield broken(component.field("resources", kind, "custom", name), value=shown(value))


def _is_not_quantity(value: object) -> bool:
    """Whether a text is not a valid quantity; an empty one counts as absent."""
    return isinstance(value, str) and bool(value) and quantity.amount_of(value) is None


@COMPONENTS.rule("{problem}", versions=(ALPHA,), added=True)  # the messages for containers
def amounts_are_those_of_a_container(component: ComponentView, _facts: Facts) -> Violations:
    """Resources have known names, amounts that are not negative, and requests within their limits.

    Resources of mainContainer are included. In v1beta1 the check of pod templates requires this.
    """
    given = mapping(component.spec.get("resources"))
    own = mapping(below(component.spec, ("extraPodSpec", "mainContainer", "resources")))
    merged = resources_of_main(component) if component.has_fields else amounts.to_resources(given, own)
    if problem := objects.pages_alone(merged):
        yield component.field(*(() if given else ("extraPodSpec", "mainContainer")), "resources"), problem
    if not given:
        return
    problems = list(objects.resources(merged))
    # Errors that are only in mainContainer are reported there.
    reported = {at for at, _ in objects.resources(own)} if problems else ()
    for at, problem in problems:
        if at not in reported:
            yield component.field(*place_of_amount(str(at[0]), str(at[1]), given, own)), problem


@once
def resources_of_main(component: ComponentView) -> dict[str, Any]:
    """Resources of the engine's container."""
    own = mapping(component.main.value.get("resources"))
    return amounts.to_resources(component.spec.get("resources"), own) if component.has_fields else own


def place_of_amount(kind: str, name: str, given: dict[str, Any], own: dict[str, Any]) -> Location:
    """Location of the amount of a resource in a service."""
    if name in mapping(own.get(kind)):
        return "extraPodSpec", "mainContainer", "resources", kind, name
    written = mapping(given.get(kind))
    if name in mapping(written.get("custom")):
        return "resources", kind, "custom", name
    return "resources", kind, name if name in ("cpu", "memory") else "gpu"


COMPONENT_WARNINGS = RuleSet("Components", (GRAPH, COMPONENT))

_TYPES = tuple(map(str, ComponentType))
#: Probes of an endpoint picker use port numbers.
_WITH_PORTS = frozenset(_TYPES) - {"epp"}


@COMPONENT_WARNINGS.rule(
    "{type} is not a type that the platform knows, so pods run exactly as written; one of {types}{hint}",
    versions=(ALPHA,),
    added=True,
)
def other_types_run_as_written(component: ComponentView, _facts: Facts) -> Violations:
    """v1alpha1 accepts any componentType; pods of an unknown type get no ports, probes or variables."""
    if component.type and component.type not in _TYPES:
        hint = suggestion_for(component.type, _TYPES)
        yield broken(component.type_at, type=shown(component.type), types=listed(map(shown, _TYPES)), hint=hint)


_NO_IMAGE = "the container main has no image yet, and the platform cannot create pods without one"
_NO_MAIN = (
    "no container is called main, which must run the component; there is {names}: rename the container that runs "
    "the component, or the platform cannot create pods"
)


@COMPONENT_WARNINGS.rule(_NO_IMAGE, _NO_MAIN, added=True)
@of_each_role
def engine_has_an_image(component: ComponentView, _facts: Facts) -> Violations:
    """The container main needs an image before a component can run; there is no default image."""
    if component.image.value not in (None, "") or component.has_own_template or _lacks_template(component):
        return
    containers = [mapping(each).get("name") for each in items(component.pod.value.get("containers"))]
    if component.is_alpha or not containers or MAIN in containers:
        yield component.image.at, _NO_IMAGE
    else:
        yield component.image.at, _NO_MAIN.format(names=listed(shown(each) for each in containers))


def _lacks_template(component: ComponentView) -> bool:
    """Whether the component is refused because a role has no template; templates of roles without an image are refused, too."""
    field = component.pod.at[len(component.at)]
    return bool(component.role_templates) and not isinstance(component.spec.get(str(field)), dict)


@COMPONENT_WARNINGS.rule(
    "has no port {name}, which probes and the Service use: add containerPort {number} with this name", added=True
)
def ports_have_the_one_that_is_asked(component: ComponentView, _facts: Facts) -> Violations:
    """Ports of a container replace the platform's, so they must include the named port that probes and the Service use."""
    port, _ = _asked(component)
    container, at = component.runtime
    own = items(container.get("ports"))
    if own and port is not None and all(mapping(each).get("name") != port.name for each in own):
        yield broken((*at, "ports"), name=port.name, number=port.number)


#: Flag of a frontend; it takes precedence over the variable.
_PORT_FLAG = "--http-port"
_PORT_GIVEN = re.compile(rf"{_PORT_FLAG}(?: +|=)[\"']?([0-9]{{1,5}})(?![0-9])")


@COMPONENT_WARNINGS.rule(
    "the container listens on this port, but probes and the Service use port {name}, which is {number}: leave {variable} out",
    added=True,
)
def engines_listen_where_they_are_asked(component: ComponentView, _facts: Facts) -> Violations:
    """A port in env or in a flag must be the port that probes and the Service use, or pods never become ready."""
    port, variable = _asked(component)
    if port is None:
        return
    container, at = component.runtime
    named = (mapping(each) for each in items(container.get("ports")))
    number = next((each.get("containerPort") for each in named if each.get("name") == port.name), port.number)
    if component.type == "frontend":
        for field in ("command", "args"):
            given = _PORT_GIVEN.search(" ".join(filter(None, map(text, items(container.get(field))))))
            if given is not None:
                if given[1] != str(number):
                    yield broken((*at, field), name=port.name, number=number, variable=_PORT_FLAG)
                return
    places = [(container.get("env"), (*at, "env"))]
    if component.is_alpha and not component.runtime_is_sidecar:
        places.append((component.spec.get("envs"), component.field("envs")))
    for variables, place in places:
        for index, each in entries(variables):
            if each.get("name") == variable and (value := text(each.get("value"))) and value != str(number):
                yield broken((*place, index, "value"), name=port.name, number=number, variable=variable)


def _asked(component: ComponentView) -> tuple[ports.Port | None, str]:
    """The port of the engine's container that probes and the Service use by name, if any, and the variable that sets it."""
    within_pod = component.failover is not None and not component.failover.inter_pod
    if component.type not in _WITH_PORTS or within_pod:
        return None, ""
    if component.type == "frontend":
        return ports.HTTP, env.DYN_HTTP_PORT
    return ports.SYSTEM, env.DYN_SYSTEM_PORT


@COMPONENT_WARNINGS.rule(
    "all {pods} pods share the devices of ResourceClaim {name}, and more pods get no more devices; with "
    "resourceClaimTemplateName each pod gets its own",
    added=True,
)
def pods_share_a_claim(component: ComponentView, _facts: Facts) -> Violations:
    """All pods that name one ResourceClaim share its devices, however many pods there are."""
    replicas = 1 if component.replicas is None else component.replicas
    places: dict[str, list[tuple[Location, int]]] = {}
    for each in component.of_each_role:
        for index, claim in entries(each.pod.value.get("resourceClaims")):
            if name := text(claim.get("resourceClaimName")):
                at = (*each.pod.at, "resourceClaims", index, "resourceClaimName")
                places.setdefault(name, []).append((at, replicas * each.pods_of_role))
    for name, named in places.items():
        pods = sum(number for _, number in named)
        for at, _ in named if pods > 1 else ():
            yield broken(at, pods=pods, name=shown(name))
