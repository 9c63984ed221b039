"""Converts the pod of a component: v1alpha1 has separate fields for the main container, v1beta1 has a pod template."""

from typing import Any

from dynamo_shared.api.conversion import amounts
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.probes import HANDLERS
from dynamo_shared.api.untrusted.reading import mapping, text

SIDECAR = "sidecar-frontend"
#: Key that identifies the frontend sidecar's container of a v1beta1 component during a conversion.
MARK = "x-frontend-sidecar"
PROBES = ("livenessProbe", "readinessProbe")
_HANDLERS = frozenset(HANDLERS)
_SIDECAR_FIELDS = frozenset({"name", "image", "args", "env", "envFrom", MARK})


def filled(value: Any, kind: type) -> Any:
    """The value if it is of a type and not empty; otherwise None."""
    return value if isinstance(value, kind) and value else None


def texts(value: Any) -> Any:
    """The value if it is a non-empty map of strings; otherwise None."""
    return value if filled(value, dict) and all(isinstance(each, str) for each in value.values()) else None


def objects(value: Any) -> Any:
    """The value if it is a non-empty list of objects; otherwise None."""
    return value if filled(value, list) and all(isinstance(each, dict) for each in value) else None


def pod_metadata(given: Any) -> dict[str, Any]:
    """The valid, non-empty labels and annotations of a pod."""
    given = mapping(given)
    return {name: given[name] for name in ("labels", "annotations") if texts(given.get(name))}


def to_template(service: dict[str, Any]) -> dict[str, Any]:
    """The pod template of a v1alpha1 service; empty without fields of pods."""
    template: dict[str, Any] = {}
    metadata = pod_metadata(service.get("extraPodMetadata"))
    if metadata:
        template["metadata"] = metadata
    extra = mapping(service.get("extraPodSpec"))
    spec = {name: value for name, value in extra.items() if name not in ("mainContainer", "containers")}
    main = _main(service, extra.get("mainContainer"))
    sidecar = _sidecar(service.get("frontendSidecar"))
    others = extra.get("containers")
    taken = (MAIN, SIDECAR) if sidecar else (MAIN,)
    containers = [main] if main else []
    if isinstance(others, list):
        containers += [each for each in others if not (isinstance(each, dict) and each.get("name") in taken)]
    if sidecar:
        containers.append(sidecar)
    if containers or others == []:
        spec["containers"] = containers
    if spec:
        template["spec"] = spec
    return template


def from_template(template: Any, service: dict[str, Any]) -> None:
    """Add the fields of a pod template to a v1alpha1 service."""
    if not isinstance(template, dict):
        return
    metadata = pod_metadata(template.get("metadata"))
    if metadata:
        service["extraPodMetadata"] = metadata
    spec = template.get("spec")
    if not isinstance(spec, dict):
        return
    extra = {name: value for name, value in spec.items() if name not in ("mainContainer", "containers")}
    containers = spec.get("containers")
    if isinstance(containers, list):
        main, others = _split(containers, service)
        if others or not containers:
            extra["containers"] = others
        rest = _from_main(main, service) if main else None
        if rest:
            extra["mainContainer"] = rest
    if extra:
        service["extraPodSpec"] = extra


def _main(service: dict[str, Any], given: Any) -> dict[str, Any]:
    """The main container: the fields of the service, overridden by mainContainer.

    A list of mainContainer replaces the list of the service, except for variables, which are merged by name, and
    mounts, which are merged by path.
    """
    own = dict(mapping(given))
    own.pop("name", None)
    env = _merged_env(filled(service.get("envs"), list), filled(own.pop("env", None), list))
    secret = filled(service.get("envFromSecret"), str)
    env_from = filled(own.pop("envFrom", None), list) or ([{"secretRef": {"name": secret}}] if secret else None)
    resources = amounts.to_resources(service.get("resources"), own.pop("resources", None))
    mounts = _merged_mounts(plain_mounts(service), filled(own.pop("volumeMounts", None), list))
    probes = {name: _probe(service.get(name), own.pop(name, None)) for name in PROBES}
    present = {"env": env, "envFrom": env_from, "resources": resources, "volumeMounts": mounts, **probes}
    own.update((name, value) for name, value in present.items() if value)
    return {"name": MAIN, **own} if own else own


def _from_main(main: dict[str, Any], service: dict[str, Any]) -> dict[str, Any]:
    """Add the fields of the main container that a service has to the service; returns the other fields."""
    rest = {name: value for name, value in main.items() if name not in ("name", MARK)}
    env = filled(rest.pop("env", None), list)
    if objects(env):
        service["envs"] = env
    elif env:
        rest["env"] = env
    env_from = filled(rest.pop("envFrom", None), list)
    if env_from:
        secret = _only_secret(env_from)
        if secret:
            service["envFromSecret"] = secret
        else:
            rest["envFrom"] = env_from
    resources = amounts.from_resources(rest.pop("resources", None))
    if resources:
        service["resources"] = resources
    for name in PROBES:
        probe = filled(rest.pop(name, None), dict)
        if probe:
            service[name] = probe
    mounts = filled(rest.pop("volumeMounts", None), list)
    if mounts and all(map(_is_plain, mounts)):
        service["volumeMounts"] = [
            *service.get("volumeMounts", ()),
            *(
                {"name": each["name"], "mountPoint": each["mountPath"], "useAsCompilationCache": False}
                for each in mounts
            ),
        ]
    elif mounts:
        rest["volumeMounts"] = mounts
    return rest


def cache_mount(service: dict[str, Any]) -> dict[str, Any] | None:
    """The first mount of a service for the compilation cache."""
    for each in filled(service.get("volumeMounts"), list) or ():
        if isinstance(each, dict) and each.get("useAsCompilationCache") is True and filled(each.get("name"), str):
            present: dict[str, Any] = each
            return present
    return None


def plain_mounts(service: dict[str, Any]) -> list[dict[str, Any]]:
    """The mounts of a service, without the compilation cache, in the form of a container."""
    cache = cache_mount(service)
    return [
        {"name": each["name"], "mountPath": each["mountPoint"]}
        for each in filled(service.get("volumeMounts"), list) or ()
        if isinstance(each, dict)
        and each is not cache
        and isinstance(each.get("name"), str)
        and filled(each.get("mountPoint"), str)
    ]


def _merged_mounts(shared: list[dict[str, Any]], own: list[Any] | None) -> list[Any]:
    """Mounts of mainContainer, then those of the service elsewhere, as the reference has it from 1.3 on."""
    taken = {text(each.get("mountPath")) for each in own or () if isinstance(each, dict)}
    return [*(own or ()), *(each for each in shared if each["mountPath"] not in taken)]


def _is_plain(mount: Any) -> bool:
    return (
        isinstance(mount, dict)
        and mount.keys() == {"name", "mountPath"}
        and isinstance(mount["name"], str)
        and bool(filled(mount["mountPath"], str))
    )


def _only_secret(env_from: list[Any]) -> str | None:
    """Name of the Secret if a list of sources is exactly one Secret; otherwise None."""
    first = env_from[0]
    reference = first.get("secretRef") if isinstance(first, dict) and len(first) == 1 else None
    if len(env_from) != 1 or not isinstance(reference, dict) or len(reference) != 1:
        return None
    name: str | None = filled(reference.get("name"), str)
    return name


def _merged_env(shared: list[Any] | None, own: list[Any] | None) -> list[Any] | None:
    if not shared or not own:
        return own or shared
    names = {each["name"]: each for each in own if isinstance(each, dict) and isinstance(each.get("name"), str)}
    merged: list[Any] = []
    for each in shared:
        name = mapping(each).get("name")
        merged.append(names.pop(name) if isinstance(name, str) and name in names else each)
    remaining = {id(each) for each in names.values()}
    return merged + [each for each in own if not _is_named(each) or id(each) in remaining]


def _is_named(variable: Any) -> bool:
    return isinstance(variable, dict) and isinstance(variable.get("name"), str)


def _probe(shared: Any, own: Any) -> dict[str, Any] | None:
    """A probe of the service, overridden by that of mainContainer, which may set only some fields."""
    shared, own = filled(shared, dict), filled(own, dict)
    if not shared or not own:
        merged: dict[str, Any] | None = own or shared
        return merged
    handlers = _HANDLERS & own.keys()
    preserved = {
        name: value for name, value in shared.items() if not handlers or name not in _HANDLERS or name in handlers
    }
    for name in handlers & preserved.keys():
        if isinstance(preserved[name], dict) and isinstance(own[name], dict):
            own = {**own, name: {**preserved[name], **own[name]}}
    return {**preserved, **own}


def _split(containers: list[Any], service: dict[str, Any]) -> tuple[dict[str, Any] | None, list[Any]]:
    """The main container and the others. A frontend sidecar that a service can express is added to the service."""
    main: dict[str, Any] | None = None
    others: list[Any] = []
    for each in containers:
        if isinstance(each, dict) and each.get("name") == MAIN:
            main = main or each
        elif isinstance(each, dict) and MARK in each:
            sidecar = _from_sidecar(each)
            if sidecar:
                service["frontendSidecar"] = sidecar
            else:
                others.append({name: value for name, value in each.items() if name != MARK})
        else:
            others.append(each)
    return main, others


def _sidecar(given: Any) -> dict[str, Any] | None:
    """The container of a service's `frontendSidecar`."""
    if not isinstance(given, dict) or not isinstance(given.get("image"), str):
        return None
    secret = filled(given.get("envFromSecret"), str)
    present = {
        "args": filled(given.get("args"), list),
        "env": filled(given.get("envs"), list),
        "envFrom": [{"secretRef": {"name": secret}}] if secret else None,
    }
    return {
        "name": SIDECAR,
        "image": given["image"],
        **{name: value for name, value in present.items() if value},
        MARK: True,
    }


def _from_sidecar(container: dict[str, Any]) -> dict[str, Any] | None:
    """The `frontendSidecar` of a service for a container; None if the field cannot express all of it."""
    if (
        container.get("name") != SIDECAR
        or not container.keys() <= _SIDECAR_FIELDS
        or not isinstance(container.get("image"), str)
        or not all(objects(container[name]) for name in ("env", "envFrom") if name in container)
    ):
        return None
    sidecar = {"image": container["image"]}
    if "envFrom" in container:
        secret = _only_secret(container["envFrom"])
        if not secret:
            return None
        sidecar["envFromSecret"] = secret
    if "args" in container:
        args = filled(container["args"], list)
        if not args or not all(isinstance(each, str) for each in args):
            return None
        sidecar["args"] = container["args"]
    if "env" in container:
        sidecar["envs"] = container["env"]
    return sidecar
