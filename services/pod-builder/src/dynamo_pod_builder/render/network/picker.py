"""An endpoint picker's configuration, in the form of the gateway's types, and the InferencePool that calls the picker."""

from typing import Any

import yaml
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels, ports
from dynamo_shared.api.resources import CONFIG_MAPS, INFERENCE_POOLS
from dynamo_shared.api.v1beta1 import ComponentType, DynamoGraphDeployment

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.metadata import new_object_of
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


def picker_children(graph: DynamoGraphDeployment, component: KubeObject, dynamo_namespace: str) -> list[KubeObject]:
    """The ConfigMap of a graph's picker, if its configuration is in the graph, and the pool that calls the picker."""
    inline = (component.get("eppConfig") or {}).get("config")
    pool = _inference_pool(graph, component["name"], dynamo_namespace)
    return [pool] if inline is None else [_config_map(graph, component["name"], inline), pool]


def _config_map(graph: DynamoGraphDeployment, component: str, inline: KubeObject) -> KubeObject:
    # The gateway's types write these fields also if they are absent.
    plugins = [{"parameters": None, **plugin} for plugin in inline.get("plugins") or ()]
    profiles = [
        {**profile, "plugins": [{"weight": None, **plugin} for plugin in profile.get("plugins") or ()]}
        for profile in inline.get("schedulingProfiles") or ()
    ]
    written = {**inline, "plugins": plugins, "schedulingProfiles": profiles}
    text = yaml.dump(written, Dumper=_GoDumper, default_flow_style=False, width=1 << 16)
    name = graph.metadata.name
    return new_object_of(
        graph, CONFIG_MAPS, names.epp_config_map(name), _labels(name, component), data={CONFIG_FILE: text}
    )


def _inference_pool(graph: DynamoGraphDeployment, component: str, dynamo_namespace: str) -> KubeObject:
    """The pool of all workers of a graph; for each request, gateways ask the graph's picker for a worker."""
    name = graph.metadata.name
    selector = {
        labels.COMPONENT_CLASS: ComponentType.WORKER.value,
        labels.DYNAMO_NAMESPACE: dynamo_namespace,
    }
    spec = {
        "targetPorts": [{"number": ports.HTTP.number}],
        "selector": {"matchLabels": selector},
        "endpointPickerRef": {
            "group": "",
            "kind": "Service",
            "name": names.service(names.component_deployment(name, component)),
            "port": {"number": ports.EPP_GRPC.number},
            "failureMode": "FailClose",
        },
    }
    return new_object_of(graph, INFERENCE_POOLS, names.inference_pool(name), _labels(name, component), spec=spec)


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
