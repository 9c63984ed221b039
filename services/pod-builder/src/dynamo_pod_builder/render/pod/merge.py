"""How a user's pod template is laid over the defaults.

The rules are those of a Go struct merge with override, which users know from the reference (behaviour, section 3.2):
what the user gives wins, maps and nested objects are merged field by field, a list replaces a list whole, and an empty
value (`""`, `0`, `false`, `[]`, `{}`) is as good as not given where there is a default.
"""

from collections.abc import Collection, Mapping
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import HANDLERS, PROBES, asks


def merge(base: KubeObject, override: Mapping[str, Any]) -> KubeObject:
    """`override` over `base`. Neither is changed; the result shares their parts, so it is for reading."""
    merged = dict(base)
    for key, value in override.items():
        default = merged.get(key)
        if default is None:
            merged[key] = value
        elif isinstance(default, dict) and isinstance(value, dict):
            merged[key] = merge(default, value)
        elif value:
            merged[key] = value
    return merged


def merge_container(base: KubeObject, override: Mapping[str, Any]) -> KubeObject:
    """As `merge`, with probes by their own rule (`merge_probe`). `env` is the caller's to merge."""
    merged = merge({key: value for key, value in base.items() if key not in PROBES}, override)
    for probe in PROBES:
        if probe in override and override[probe] is None:
            # Written as null: not even the default.
            del merged[probe]
            continue
        result = merge_probe(base.get(probe), override.get(probe))
        if result:
            merged[probe] = result
    merged["name"] = base["name"]
    return merged


def with_probes_over(base: KubeObject, container: KubeObject, kept: Collection[str] = ()) -> KubeObject:
    """A container whose probes have what they do not say from those of `base`, where both ask in the same way.

    The reference completes a frontend next to the engine so, also where the result asks in two ways. `kept` are
    probes that stay as they are.
    """
    completed = {
        probe: merge(default, given)
        for probe in PROBES
        if (default := base.get(probe)) and (given := container.get(probe)) and probe not in kept
        if any(handler in default and handler in given for handler in HANDLERS)
    }
    return {**container, **completed}


def merge_probe(default: KubeObject | None, given: KubeObject | None) -> KubeObject | None:
    """A probe that asks its own question replaces the default whole; one that asks none changes when it is asked."""
    if not default or not given:
        return given or default
    return given if asks(given) else {**default, **given}
