"""DYN_DEPLOYMENT_CONFIG: the JSON variable by which older graphs configure a component, still honoured.

It maps component names to settings: `port` of a frontend is ours to set, `ServiceArgs.workers` are replicas where the
component names none, and `ServiceArgs.resources` (cpu, memory, gpu, custom) become requests and limits.
"""

from __future__ import annotations

import json
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import SETTINGS
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render.context import MAIN
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.template import main_container

_GPU = "nvidia.com/gpu"
_PATH = f"podTemplate.spec.containers[{MAIN}].env[{env.DYN_DEPLOYMENT_CONFIG}]"


def apply_legacy_config(spec: KubeObject) -> KubeObject:
    """A DCD spec with what its DYN_DEPLOYMENT_CONFIG says; the very spec where it has none."""
    template = spec.get("podTemplate") or {}
    main = main_container(template)
    text = _value(main) if main is not None else ""
    if main is None or not text:
        return spec
    config = _parse(spec["name"], text)
    changed, container = dict(spec), dict(main)
    if spec.get("type") == ComponentType.FRONTEND:
        container["env"] = [
            {**variable, "value": _with_port(spec["name"], config)}
            if variable["name"] == env.DYN_DEPLOYMENT_CONFIG
            else variable
            for variable in main["env"]
        ]
    own = _object(spec["name"], config.get(spec["name"]) or {})
    arguments = _object(spec["name"], own.get("ServiceArgs") or {})
    if changed.get("replicas") is None and isinstance(arguments.get("workers"), int):
        changed["replicas"] = arguments["workers"]
    amounts = _amounts(spec["name"], arguments.get("resources") or {})
    if amounts:
        resources = main.get("resources") or {}
        container["resources"] = {
            **resources,
            **{side: {**(resources.get(side) or {}), **amounts} for side in ("requests", "limits")},
        }
    containers = [container if each is main else each for each in template["spec"]["containers"]]
    changed["podTemplate"] = {**template, "spec": {**template["spec"], "containers": containers}}
    return changed


def _value(container: KubeObject) -> str:
    variables = container.get("env") or ()
    return next((each.get("value") or "" for each in variables if each["name"] == env.DYN_DEPLOYMENT_CONFIG), "")


def _parse(component: str, text: str) -> KubeObject:
    try:
        return _object(component, json_text.decode(text, SETTINGS))
    except json_text.InvalidJson as error:
        raise RenderError(component, _PATH, f"is no JSON: {error}", "mend it or leave it out") from error


def _object(component: str, value: Any) -> KubeObject:
    if isinstance(value, dict):
        return value
    raise RenderError(
        component, _PATH, "is no JSON object of component names and their settings", "mend it or leave it out"
    )


def _with_port(component: str, config: KubeObject) -> str:
    """The configuration with the port that probes and Services count on, in the frontend's entry."""
    wanted = (component, *(name for name in config if name.lower() == ComponentType.FRONTEND))
    entry = next((name for name in wanted if name in config), None)
    if entry is None:
        return json.dumps(config, sort_keys=True, separators=(",", ":"))
    changed = {**config, entry: {**_object(component, config[entry]), "port": ports.HTTP.number}}
    return json.dumps(changed, sort_keys=True, separators=(",", ":"))


def _amounts(component: str, resources: Any) -> dict[str, str]:
    resources = _object(component, resources)
    named = {"cpu": resources.get("cpu"), "memory": resources.get("memory"), _GPU: resources.get("gpu")}
    amounts = {**named, **_object(component, resources.get("custom") or {})}
    return {
        name: str(amount) for name, amount in amounts.items() if amount != "" and isinstance(amount, str | int | float)
    }
