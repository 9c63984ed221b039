"""An endpoint picker's configuration, in the form of the gateway's types, and the InferencePool that calls the picker."""

from typing import Any

import yaml
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels, ports
from dynamo_shared.api.resources import CONFIG_MAPS, INFERENCE_POOLS
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.metadata import object_metadata
from dynamo_pod_builder.render.pod.containers.epp import CONFIG_FILE

API_VERSION = "inference.networking.x-k8s.io/v1alpha1"
KIND = "EndpointPickerConfig"


def complete(config: KubeObject) -> KubeObject:
    """`eppConfig` with the type of its inline configuration, and a `name` in every plugin, which may be empty."""
    inline = config.get("config")
    if inline is None:
        return config
    plugins = [{**plugin, "name": plugin.get("name", "")} for plugin in inline.get("plugins") or ()]
    return {
        **config,
        "config": {"apiVersion": API_VERSION, "kind": KIND, **inline, **({"plugins": plugins} if plugins else {})},
    }


def config_map(graph: str, namespace: str, component: KubeObject, owner: KubeObject) -> KubeObject | None:
    """ConfigMap of a picker whose configuration is in the graph; None if the graph names a ConfigMap."""
    inline = (component.get("eppConfig") or {}).get("config")
    if inline is None:
        return None
    plugins = [{"parameters": None, **plugin} for plugin in inline.get("plugins") or ()]
    text = yaml.dump({**inline, "plugins": plugins}, Dumper=_GoDumper, default_flow_style=False, width=1 << 16)
    return {
        **CONFIG_MAPS.type_meta,
        "metadata": object_metadata(
            names.epp_config_map(graph), namespace, _labels(graph, component["name"]), {}, owner
        ),
        "data": {CONFIG_FILE: text},
    }


def inference_pool(
    graph: str, namespace: str, component: KubeObject, dynamo_namespace: str, owner: KubeObject
) -> KubeObject:
    """The pool of all workers of a graph; for each request, gateways ask the graph's picker for a worker."""
    picker = names.service(names.component_deployment(graph, component["name"]))
    selector = {
        labels.COMPONENT_CLASS: ComponentType.WORKER.value,
        labels.DYNAMO_NAMESPACE: dynamo_namespace,
    }
    return {
        **INFERENCE_POOLS.type_meta,
        "metadata": object_metadata(
            names.inference_pool(graph), namespace, _labels(graph, component["name"]), {}, owner
        ),
        "spec": {
            "targetPorts": [{"number": ports.HTTP.number}],
            "selector": {"matchLabels": selector},
            "endpointPickerRef": {
                "group": "",
                "kind": "Service",
                "name": picker,
                "port": {"number": ports.EPP_GRPC.number},
                "failureMode": "FailClose",
            },
        },
    }


def _labels(graph: str, component: str) -> dict[str, str]:
    return {
        labels.GRAPH_DEPLOYMENT_NAME: graph,
        labels.COMPONENT: component,
        labels.COMPONENT_TYPE: ComponentType.EPP.value,
    }


class _GoDumper(yaml.SafeDumper):
    """Quotes like Go's YAML, so that a picker that the reference created does not restart needlessly."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML's interface
        return True

    def choose_scalar_style(self) -> str:
        style = super().choose_scalar_style()
        return '"' if style == "'" else style
