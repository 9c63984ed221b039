"""External routes through a gateway: the HTTPRoute of a graph, and how a mesh talks to its endpoint picker."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels, ports
from dynamo_shared.api.resources import DESTINATION_RULES, HTTP_ROUTES, INFERENCE_POOLS
from dynamo_shared.api.v1beta1 import ComponentType, DynamoGraphDeployment

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.config import RenderConfig
from dynamo_pod_builder.render.context import namespace_of
from dynamo_pod_builder.render.metadata import new_object_of

#: TLS mode of Istio in which its proxies present a client certificate from files.
MUTUAL = "MUTUAL"


def gateway_children(graph: DynamoGraphDeployment, config: RenderConfig) -> list[KubeObject]:
    """HTTPRoute and DestinationRule of a graph, if the installation enables them and the cluster serves them."""
    picker = _named(graph, ComponentType.EPP)
    children: list[KubeObject] = []
    if config.gateway.name and config.gateway.routes and (backend := _backend(graph, picker)):
        children.append(_route(graph, config, backend))
    if picker and config.mesh.destination_rules:
        children.append(_destination_rule(graph, config, picker))
    return children


def _named(graph: DynamoGraphDeployment, component_type: ComponentType) -> str:
    return next((each.name for each in graph.spec.components if each.type is component_type), "")


def _backend(graph: DynamoGraphDeployment, picker: str) -> KubeObject | None:
    """The pool, if a picker chooses a worker for each request; otherwise the frontend."""
    if picker:
        pool = names.inference_pool(graph.metadata.name)
        return {"group": INFERENCE_POOLS.group, "kind": INFERENCE_POOLS.kind, "name": pool}
    frontend = _named(graph, ComponentType.FRONTEND)
    if not frontend:
        return None
    service = names.service(names.component_deployment(graph.metadata.name, frontend))
    return {"group": "", "kind": "Service", "name": service, "port": ports.HTTP.number}


def _route(graph: DynamoGraphDeployment, config: RenderConfig, backend: KubeObject) -> KubeObject:
    parent: KubeObject = {"name": config.gateway.name}
    if config.gateway.namespace:
        parent["namespace"] = config.gateway.namespace
    spec: KubeObject = {
        "parentRefs": [parent],
        "rules": [{"matches": [{"path": {"type": "PathPrefix", "value": "/"}}], "backendRefs": [backend]}],
    }
    if config.ingress.host_suffix:
        spec["hostnames"] = [f"{graph.metadata.name}.{config.ingress.host_suffix}"]
    return new_object_of(graph, HTTP_ROUTES, graph.metadata.name, _labels(graph), spec=spec)


def _destination_rule(graph: DynamoGraphDeployment, config: RenderConfig, picker: str) -> KubeObject:
    name = names.service(names.component_deployment(graph.metadata.name, picker))
    tls: KubeObject = {"mode": config.mesh.tls_mode, "insecureSkipVerify": config.mesh.insecure_skip_verify}
    if config.mesh.tls_mode == MUTUAL:
        files = {
            "clientCertificate": config.mesh.client_certificate,
            "privateKey": config.mesh.private_key,
            "caCertificates": config.mesh.ca_certificates,
        }
        tls |= {field: file for field, file in files.items() if file}
    spec = {"host": f"{name}.{namespace_of(graph)}.svc.cluster.local", "trafficPolicy": {"tls": tls}}
    return new_object_of(graph, DESTINATION_RULES, name, _labels(graph), spec=spec)


def _labels(graph: DynamoGraphDeployment) -> dict[str, str]:
    return {labels.GRAPH_DEPLOYMENT_NAME: graph.metadata.name}
