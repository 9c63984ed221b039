"""Ports of NIXL's telemetry, if an engine runs several ranks in one container and each opens a port (dynamo#14284).

Rank 0 opens the port that the container names, rank i the i-th port after it. PodMonitors scrape the ports by name.
"""

import re
from collections.abc import Mapping
from typing import Any

from dynamo_shared.api import gpus
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.runtime_version import features_of

from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError

#: The number of ranks of a container that have a port; the runtime starts no more with telemetry.
MOST_RANKS = 8
_LAST_PORT = 65535
_PORT = re.compile(r"[0-9]{1,5}")
_CONTAINER = f"podTemplate.spec.containers[{MAIN}]"
_OFF = f"or set {env.NIXL_TELEMETRY_ENABLE} to n"


def declare_ports(container: KubeObject, context: PodContext) -> None:
    """Declare the port of each rank, in place, if telemetry is on. Raises RenderError if ranks would have no port."""
    declared = container.get("ports") or []
    if not features_of(context.spec.runtime_version_override).rank_telemetry:
        return
    if all(each.get("name") != ports.NIXL.name for each in declared):
        return
    variables = {each["name"]: each for each in container["env"]}
    stated = [variables[name] for name in (env.NIXL_TELEMETRY_ENABLE, env.NIXL_TELEMETRY_EXPORTER) if name in variables]
    if env.NIXL_TELEMETRY_ENABLE not in variables or not all(map(_may_open, stated)):
        return
    ranks = _ranks(container, context, sure=not any("valueFrom" in each for each in stated))
    port = variables.get(env.NIXL_TELEMETRY_PROMETHEUS_PORT)
    if ranks == 1 and "valueFrom" in (port or {}):
        # It opens the port that the variable has, and no other ports depend on it.
        return
    first = _first_port(port, ranks, context)
    made = {_name(rank): first + rank for rank in range(ranks)}
    if made.items() <= {each.get("name"): each["containerPort"] for each in declared}.items():
        # The same ports in another order would replace pods.
        return
    others = [each for each in declared if each.get("name") not in made]
    if taken := [each for each in others if each["containerPort"] in made.values()]:
        number = taken[0]["containerPort"]
        raise _refused(
            context, f"gives {ranks} ranks the ports from {first} on, but {number} is another port of the container"
        )
    container["ports"] = [*others, *({"name": name, "containerPort": made[name], "protocol": "TCP"} for name in made)]


def _may_open(variable: Mapping[str, Any]) -> bool:
    """Whether a variable allows ports to be opened. If its value is unknown here: yes, an unused port does no harm."""
    word = "y" if variable["name"] == env.NIXL_TELEMETRY_ENABLE else "prometheus"
    return "valueFrom" in variable or _text(variable).lower() == word


def _ranks(container: KubeObject, context: PodContext, *, sure: bool) -> int:
    """Ranks of a container, at least one: one per GPU."""
    ranks = max(1, gpus.count(container) or context.claimed.own)
    if ranks <= MOST_RANKS or not sure:
        return min(ranks, MOST_RANKS)
    raise RenderError(
        context.component,
        f"{_CONTAINER}.resources",
        f"has {gpus.words(ranks)}, but only {MOST_RANKS} ranks of a container can have a port for NIXL's telemetry",
        f"spread the engine over more nodes, {_OFF}",
    )


def _first_port(variable: Mapping[str, Any] | None, ranks: int, context: PodContext) -> int:
    if variable is None:
        return ports.NIXL.number
    text, problem = _text(variable), ""
    if "valueFrom" in variable:
        problem = "has a value that only the container knows, so the platform cannot declare the ports of its ranks"
    elif not _PORT.fullmatch(text) or not 0 < int(text) <= _LAST_PORT:
        problem = f"{text[:80]!r} is not a valid port"
    elif int(text) + ranks - 1 > _LAST_PORT:
        problem = f"{text!r} leaves no ports for {ranks} ranks"
    if problem:
        raise _refused(context, problem)
    return int(text)


def _refused(context: PodContext, problem: str) -> RenderError:
    path = f"{_CONTAINER}.env[{env.NIXL_TELEMETRY_PROMETHEUS_PORT}]"
    return RenderError(context.component, path, problem, f"set its value to a free port up to {_LAST_PORT}, {_OFF}")


def _name(rank: int) -> str:
    return f"{ports.NIXL.name}-{rank}" if rank else ports.NIXL.name


def _text(variable: Mapping[str, Any]) -> str:
    return str(variable.get("value") or "").strip()
