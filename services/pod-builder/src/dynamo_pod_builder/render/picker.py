"""The endpoint picker's configuration, as the gateway's own types write it."""

from __future__ import annotations

from typing import Any

KubeObject = dict[str, Any]

API_VERSION = "inference.networking.x-k8s.io/v1alpha1"
KIND = "EndpointPickerConfig"


def complete(config: KubeObject) -> KubeObject:
    """`eppConfig` with the type of its inline configuration, and a name in every plugin, which may be empty."""
    inline = config.get("config")
    if inline is None:
        return config
    plugins = [{**plugin, "name": plugin.get("name", "")} for plugin in inline.get("plugins") or ()]
    return {
        **config,
        "config": {"apiVersion": API_VERSION, "kind": KIND, **inline, **({"plugins": plugins} if plugins else {})},
    }
