"""`dynamoctl scale --server`: scales over the REST API."""

import json
from collections.abc import Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.wording import many

from dynamo_ctl.commands.scale import ScaleOptions
from dynamo_ctl.errors import CtlError
from dynamo_ctl.output import Print, echo_error
from dynamo_ctl.remote import COLLECTIONS, Remote


async def scale(
    remote: Remote, options: ScaleOptions, replicas: Sequence[tuple[str, int]], out: Print, *, as_json: bool
) -> None:
    """Scale one component after the other: unlike the scaler's command, the API cannot change several at once."""
    described = await remote.request("GET", remote.path(COLLECTIONS["dgd"], options.graph))
    named = [(_component(described, target), count) for target, count in replicas]
    dry_run = "true" if options.dry_run else ""
    path = remote.path(COLLECTIONS["dgd"], options.graph, "scale", dryRun=dry_run)
    for component, count in named:
        answer = await remote.request("POST", path, {"component": component, "replicas": count})
        if as_json:
            out(json.dumps(answer))
            continue
        would = "would have" if options.dry_run else "has"
        out(f"{component} {would} {many(answer['replicas'], 'replica')} (written to the {answer['via']})")
        for warning in answer["warnings"]:
            echo_error(f"warning: {warning}")


def _component(graph: KubeObject, target: str) -> str:
    """The component with a name, or the only component of a type. Raises CtlError."""
    components = graph["spec"].get("components") or []
    if any(each["name"] == target for each in components):
        return target
    of_type = [each["name"] for each in components if each.get("type") == target]
    if len(of_type) != 1:
        names = ", ".join(each["name"] for each in components)
        raise CtlError(f"{target}: {len(of_type)} components have this type; name one of {names}")
    return str(of_type[0])
