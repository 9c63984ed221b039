"""Probes of a container: their fields and handlers."""

from collections.abc import Mapping
from typing import Any

#: Fields with a probe, of a container and of a v1alpha1 service.
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
#: Fields of a probe with a handler; a probe has exactly one.
HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")


def asks(probe: Mapping[str, Any]) -> bool:
    """Whether a probe has a handler; otherwise its fields change the default probe."""
    return any(handler in probe for handler in HANDLERS)
