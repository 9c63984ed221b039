"""`files/rights.yaml` of the chart: the RBAC rules of each service, by scope and by the part that enables them."""

from collections.abc import Iterable
from importlib import import_module
from typing import Any

import yaml
from dynamo_ctl.services import SERVICES
from dynamo_shared.api.rights import Right, RightScope

_HEAD = "# Made by `make generate` from the rights.py of each service; change it there.\n"
#: The part with rights that a service always needs.
ALWAYS = "always"


def of_service(service: str) -> tuple[Right, ...]:
    """The rights of a service."""
    package = SERVICES[service].partition(".")[0]
    rights: tuple[Right, ...] = import_module(f"{package}.rights").RIGHTS
    return rights


def tree() -> dict[str, dict[str, dict[str, list[dict[str, Any]]]]]:
    """Rules by service, scope and part."""
    return {service: {scope.value: _parts(service, scope) for scope in RightScope} for service in SERVICES}


def page() -> str:
    """The file."""
    return _HEAD + yaml.safe_dump(tree(), sort_keys=False, width=120)


def _parts(service: str, scope: RightScope) -> dict[str, list[dict[str, Any]]]:
    held = [right for right in of_service(service) if right.scope is scope]
    parts = sorted({right.part for right in held})
    return {part or ALWAYS: rules(right for right in held if right.part == part) for part in parts}


def rules(rights: Iterable[Right]) -> list[dict[str, Any]]:
    """RBAC rules for the rights of one scope and part: one for each API group, set of verbs and set of names."""
    verbs: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for right in rights:
        held = verbs.setdefault((right.resource.group, right.plural, right.names), [])
        held += [verb for verb in right.verbs if verb not in held]
    plurals: dict[tuple[str, tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for (group, plural, names), held in verbs.items():
        plurals.setdefault((group, tuple(sorted(held)), names), []).append(plural)
    return [
        {
            "apiGroups": [group],
            "resources": sorted(plural_names),
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(held),
        }
        for (group, held, names), plural_names in sorted(plurals.items())
    ]
