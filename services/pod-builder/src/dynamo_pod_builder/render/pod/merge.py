"""How a user's pod template overrides the defaults.

The rules are those of a Go struct merge with override, which users know from the reference (behaviour, section 3.2):
the user's values have priority, maps and nested objects are merged field by field, a list replaces a whole list, and an
empty value (`""`, `0`, `false`, `[]`, `{}`) does not override a default.
"""

from collections.abc import Collection, Mapping
from typing import Any

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.probes import HANDLERS, PROBES, asks


def merge(base: KubeObject, override: Mapping[str, Any]) -> KubeObject:
    """`override` over `base`. Neither is changed; the result shares their parts, so it is read only."""
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
    """Like `merge`, with separate rules for probes (`merge_probe`). The caller merges `env`."""
    merged = merge({key: value for key, value in base.items() if key not in PROBES}, override)
    for probe in PROBES:
        if probe in override and override[probe] is None:
            # An explicit null removes even the default.
            del merged[probe]
            continue
        result = merge_probe(base.get(probe), override.get(probe))
        if result:
            merged[probe] = result
    merged["name"] = base["name"]
    return merged


def with_probes_over(base: KubeObject, container: KubeObject, kept: Collection[str] = ()) -> KubeObject:
    """A container whose probes get missing fields from those of `base`, if both use the same handler.

    The reference completes a frontend sidecar like this, even if the result has two handlers. `kept`: probes that stay
    unchanged.
    """
    completed = {
        probe: merge(default, given)
        for probe in PROBES
        if (default := base.get(probe)) and (given := container.get(probe)) and probe not in kept
        if any(handler in default and handler in given for handler in HANDLERS)
    }
    return {**container, **completed}


def merge_probe(default: KubeObject | None, given: KubeObject | None) -> KubeObject | None:
    """A probe with its own handler replaces the whole default; one without a handler changes only its timing."""
    if not default or not given:
        return given or default
    return given if asks(given) else {**default, **given}
