"""Resources of a container: v1alpha1 has fields for CPU, memory and GPUs, and a map for everything else."""

import re
from typing import Any

from dynamo_shared.api import quantity
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.untrusted.reading import mapping, text

_QUANTITY = re.compile(quantity.PATTERN)


def to_resources(given: Any, own: Any) -> dict[str, Any]:
    """The resources of the main container: those of the service, overridden by those of mainContainer."""
    given, own = mapping(given), mapping(own)
    resources: dict[str, Any] = {}
    for side in quantity.SIDES:
        amounts = {**_from_fields(given.get(side)), **as_text(own.get(side))}
        if amounts:
            resources[side] = amounts
    claims = claims_of(own) or claims_of(given)
    if claims:
        resources["claims"] = claims
    return resources


def from_resources(given: Any) -> dict[str, Any]:
    """The resources of a service from those of its main container."""
    resources: dict[str, Any] = {}
    given = mapping(given)
    for side in quantity.SIDES:
        amounts = as_text(given.get(side))
        fields: dict[str, Any] = {}
        for name, field in (("cpu", "cpu"), ("memory", "memory"), (NVIDIA_GPU, "gpu")):
            if name in amounts:
                fields[field] = amounts.pop(name)
        if amounts:
            fields["custom"] = amounts
        if fields:
            resources[side] = fields
    claims = claims_of(given)
    if claims:
        resources["claims"] = claims
    return resources


def claims_of(resources: dict[str, Any]) -> list[Any] | None:
    """The resource claims, if all of them have a name; otherwise None."""
    claims = resources.get("claims")
    if not isinstance(claims, list) or not claims:
        return None
    return claims if all(isinstance(each, dict) and isinstance(each.get("name"), str) for each in claims) else None


def as_text(amounts: Any) -> dict[str, str]:
    """Quantities as strings, as Kubernetes writes them, without invalid quantities."""
    return {name: written for name, value in mapping(amounts).items() if (written := _text(value)) is not None}


def _from_fields(fields: Any) -> dict[str, str]:
    """Amounts by resource; those in `custom` come first, and have priority."""
    fields = mapping(fields)
    custom = as_text(fields.get("custom"))
    named = {text(fields.get("gpuType")) or NVIDIA_GPU: fields.get("gpu")}
    return custom | as_text({**named, "cpu": fields.get("cpu"), "memory": fields.get("memory")}) | custom


def _text(value: Any) -> str | None:
    if isinstance(value, bool) or not isinstance(value, quantity.WRITTEN):
        return None
    written = str(value)
    return written if _QUANTITY.fullmatch(written) else None
