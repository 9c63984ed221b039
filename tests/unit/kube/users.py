"""Users for kubeconfigs."""

from typing import Any


def by_plugin(command: str, *arguments: str) -> dict[str, Any]:
    """A user who logs in by an exec plugin."""
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": command, "args": list(arguments)}}
