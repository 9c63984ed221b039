"""Power that the GPUs of a worker may draw, as its pod templates say it. Pure.

The annotation is that of Dynamo 1.5 (power-aware planning): NVIDIA's Power Agent limits the GPUs of a pod to it.
"""

from dynamo_shared.api import objects
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import GPU_POWER_LIMIT
from dynamo_shared.api.role_templates import templates

#: No GPU draws a megawatt.
_DIGITS = 6


class UnknownPowerError(Exception):
    """A pod template does not say what its GPUs may draw; the message says what to do."""


def gpu_watts(component: KubeObject) -> int:
    """Watts that each GPU of a component (v1beta1) may draw: the highest of its pod templates. UnknownPowerError."""
    return max(_of(component["name"], template) for template, _ in templates(component))


def _of(component: str, template: KubeObject) -> int:
    value = objects.annotations(template).get(GPU_POWER_LIMIT)
    text = "" if value is None else str(value).strip()
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text):
        return int(text)
    problem = "is missing" if value is None else f"is {shown(value)}"
    raise UnknownPowerError(
        f"annotation {GPU_POWER_LIMIT} in the podTemplate of {component} {problem}; it must be the watts that each GPU may draw, "
        "such as '500'"
    )
