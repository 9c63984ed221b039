"""DYN_DEPLOYMENT_CONFIG: the variable by which older graphs configure a component, still supported. JSON or YAML.

It has two formats. The older one maps component names to settings: the platform sets `port` of a frontend,
`ServiceArgs.workers` are replicas if the component names none, and `ServiceArgs.resources` (cpu, memory, gpu, custom)
become requests and limits. The other one identifies a component: the platform sets `namespace`, `component` and a
frontend's `endpoints`, and `routing.mode` becomes the router mode of frontends that name none. The written value is
JSON, which is also YAML.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from dynamo_shared.api.containers import main_container, with_main
from dynamo_shared.api.contracts.deployment_config import RoutingMode
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.replica_limits import MAX_REPLICAS
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod.env import var

_PATH = f"podTemplate.spec.containers[{MAIN}].env[{env.DYN_DEPLOYMENT_CONFIG}]"
_NAMESPACE, _COMPONENT, _ENDPOINTS, _ROUTING = "namespace", "component", "endpoints", "routing"
#: Keys of the second format; all other keys are names of components.
_SHAPE = frozenset({_NAMESPACE, _COMPONENT, _ENDPOINTS, _ROUTING})


class ConfiguredComponent(NamedTuple):
    """What identifies a component in its configuration."""

    namespace: str
    """Dynamo namespace."""
    address: str
    """URL of its Service."""


def apply_legacy_config(spec: KubeObject, place: ConfiguredComponent) -> KubeObject:
    """A DCD spec with the settings of its DYN_DEPLOYMENT_CONFIG; the same object if it has none."""
    template = spec.get("podTemplate") or {}
    main = main_container(template)
    text = _value(main) if main is not None else ""
    if main is None or not text:
        return spec
    config = _parse(spec["name"], text)
    changed, container = dict(spec), dict(main)
    written = _with_place(spec, config, place)
    if spec.get("type") == ComponentType.FRONTEND:
        written = _with_port(spec, written)
    if written is not config or spec.get("type") == ComponentType.FRONTEND:
        container["env"] = [
            {**variable, "value": json.dumps(written, sort_keys=True, separators=(",", ":"))}
            if variable["name"] == env.DYN_DEPLOYMENT_CONFIG
            else variable
            for variable in main["env"]
        ]
    own = _object(spec["name"], config.get(_entry(spec, config)) or {})
    arguments = _object(spec["name"], _value_ignoring_case(own, "ServiceArgs") or {})
    workers = _value_ignoring_case(arguments, "workers")
    if changed.get("replicas") is None and isinstance(workers, int):
        if isinstance(workers, bool) or not 0 <= workers <= MAX_REPLICAS:
            message = f"ServiceArgs.workers is {shown(workers)}, not a number from 0 to {MAX_REPLICAS}"
            raise RenderError(spec["name"], _PATH, message, "correct it, or set replicas")
        changed["replicas"] = workers
    amounts = _amounts(spec["name"], _value_ignoring_case(arguments, "resources") or {})
    if amounts:
        resources = main.get("resources") or {}
        container["resources"] = {
            **resources,
            **{side: {**(resources.get(side) or {}), **amounts} for side in ("requests", "limits")},
        }
    return {**changed, "podTemplate": with_main(template, lambda _: container)}


def with_routing(specs: list[KubeObject]) -> list[KubeObject]:
    """DCD specs of a graph in which frontends route as a configuration says, unless they have their own mode."""
    mode = next(filter(None, map(_mode, specs)), "")
    if not mode:
        return specs
    return [_routed(spec, mode) if spec.get("type") == ComponentType.FRONTEND else spec for spec in specs]


def _routed(spec: KubeObject, mode: str) -> KubeObject:
    main = main_container(spec.get("podTemplate") or {})
    if main is None or any(each["name"] == env.DYN_ROUTER_MODE for each in main.get("env") or ()):
        return spec
    container = {**main, "env": [*(main.get("env") or ()), var(env.DYN_ROUTER_MODE, mode)]}
    return {**spec, "podTemplate": with_main(spec["podTemplate"], lambda _: container)}


def _mode(spec: KubeObject) -> str:
    main = main_container(spec.get("podTemplate") or {})
    text = _value(main) if main is not None else ""
    if not text:
        return ""
    routing = _parse(spec["name"], text).get(_ROUTING)
    if routing is None:
        return ""
    mode = _object(spec["name"], routing).get("mode", RoutingMode.ROUND_ROBIN.value)
    if mode not in list(RoutingMode):
        allowed = ", ".join(RoutingMode)
        raise RenderError(spec["name"], _PATH, f"routing.mode is {mode!r}, not one of {allowed}", "set one of them")
    return str(mode)


def _with_place(spec: KubeObject, config: KubeObject, place: ConfiguredComponent) -> KubeObject:
    """A configuration of the second format with its component's identity; the same object if it has the older format."""
    if not _SHAPE & config.keys():
        return config
    made = {**config, _NAMESPACE: place.namespace, _COMPONENT: spec["name"]}
    if spec.get("type") == ComponentType.FRONTEND and not config.get(_ENDPOINTS):
        made[_ENDPOINTS] = [{"name": ports.HTTP.name, "address": place.address}]
    return made


def _value(container: KubeObject) -> str:
    variables: Iterable[KubeObject] = container.get("env") or ()
    return next((each.get("value") or "" for each in variables if each["name"] == env.DYN_DEPLOYMENT_CONFIG), "")


def _parse(component: str, text: str) -> KubeObject:
    if text.lstrip().startswith(("{", "[")):
        try:
            return _object(component, json_text.decode(text, SETTINGS))
        except json_text.InvalidJson:
            pass  # YAML may begin like this, too.
    try:
        parsed = documents(text, SETTINGS)
    except InvalidManifest as error:
        raise RenderError(component, _PATH, f"is not valid JSON or YAML: {error}", "correct it or remove it") from error
    return _object(component, parsed[0] if len(parsed) == 1 else None)


def _object(component: str, value: Any) -> KubeObject:
    if isinstance(value, dict):
        return value
    raise RenderError(
        component,
        _PATH,
        "must be an object: component names and their settings, or namespace, component, endpoints and routing",
        "correct it or remove it",
    )


def _entry(spec: KubeObject, config: KubeObject) -> str:
    """Name of a component's entry: its own, or `frontend` for a frontend of any name."""
    name: str = spec["name"]
    if name in config or spec.get("type") != ComponentType.FRONTEND:
        return name
    return next((each for each in config if each.lower() == ComponentType.FRONTEND), name)


def _value_ignoring_case(settings: KubeObject, name: str) -> Any:
    """A value by its name; like the operator, in any case."""
    if name in settings:
        return settings[name]
    return next((value for each, value in settings.items() if each.lower() == name.lower()), None)


def _with_port(spec: KubeObject, config: KubeObject) -> KubeObject:
    """The configuration with the port that probes and Services expect, in the frontend's entry."""
    entry = _entry(spec, config)
    if entry not in config:
        return config
    return {**config, entry: {**_object(spec["name"], config[entry]), "port": ports.HTTP.number}}


def _amounts(component: str, resources: Any) -> dict[str, str]:
    resources = _object(component, resources)
    places = {"cpu": "cpu", "memory": "memory", NVIDIA_GPU: "gpu"}
    named = {name: _value_ignoring_case(resources, place) for name, place in places.items()}
    amounts = {**named, **_object(component, _value_ignoring_case(resources, "custom") or {})}
    return {
        name: str(amount) for name, amount in amounts.items() if amount != "" and isinstance(amount, str | int | float)
    }
