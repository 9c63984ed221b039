"""Probes of a container: their fields, and what one may ask."""

from collections.abc import Mapping
from typing import Any

#: Fields of a container, and of a service of v1alpha1, that hold a probe.
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
#: What a probe may ask; one of these.
HANDLERS = ("exec", "grpc", "httpGet", "tcpSocket")


def asks(probe: Mapping[str, Any]) -> bool:
    """Whether a probe says what to ask; else it changes when a default one asks."""
    return any(handler in probe for handler in HANDLERS)
