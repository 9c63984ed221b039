"""External routes: an Ingress, and a VirtualService of Istio, for a frontend."""

from collections.abc import Mapping

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import ports
from dynamo_shared.api.resources import INGRESSES, VIRTUAL_SERVICES, Resource
from dynamo_shared.api.v1beta1 import ComponentType

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.config import IngressDefaults
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.metadata import new_object, object_labels

DEFAULT_SUFFIX = "local"
#: For Istio this is not the name of a Gateway, but means all of its proxies.
_WHOLE_MESH = "mesh"


def external_routes(context: PodContext, own_labels: Mapping[str, str], owner: KubeObject) -> list[KubeObject]:
    """Ingress and VirtualService of a component: by v1alpha1, or, for a graph's frontend, by the installation.

    With a VirtualService, an Ingress needs its own class; otherwise, an Ingress without a class gets the default
    IngressClass. Raises RenderError for a v1alpha1 VirtualService for the whole mesh.
    """
    defaults = context.config.ingress
    own = context.legacy.ingress
    settings = _of_installation(context, defaults) if own is None else own
    if not settings.get("enabled") or not settings.get("host"):
        return []
    label_set = {**object_labels(context, own_labels), **(settings.get("labels") or {})}
    name = names.service(context.name)

    def route(resource: Resource, spec: KubeObject) -> KubeObject:
        annotations = settings.get("annotations")
        return new_object(resource, name, context.namespace, label_set, annotations=annotations, owner=owner, spec=spec)

    host = _host(settings, defaults)
    gateway = settings.get("virtualServiceGateway") or defaults.virtual_service_gateway
    routes: list[KubeObject] = []
    if by_mesh := bool(gateway and settings.get("useVirtualService")):
        if own is not None and own.get("virtualServiceGateway") == _WHOLE_MESH:
            raise RenderError(
                context.component,
                "ingress.virtualServiceGateway",
                "a VirtualService of the whole mesh would take over requests that other namespaces send to its host",
                "name a Gateway",
            )
        if context.config.virtual_services:
            routes.append(route(VIRTUAL_SERVICES, _virtual_service(host, gateway, name)))
    class_name = settings.get("ingressControllerClassName") or ("" if by_mesh else defaults.class_name)
    if class_name or not by_mesh:
        tls = settings.get("tls")
        secret = (tls or {}).get("secretName") or defaults.tls_secret
        routes.append(route(INGRESSES, _ingress(host, class_name, name, secret, encrypted=tls is not None)))
    return routes


def _of_installation(context: PodContext, defaults: IngressDefaults) -> KubeObject:
    by_mesh = bool(defaults.virtual_service_gateway)
    is_configured = by_mesh or bool(defaults.class_name)
    if not (is_configured and context.of_graph and context.spec.type is ComponentType.FRONTEND):
        return {}
    of_class = {"ingressControllerClassName": defaults.class_name}
    return {"enabled": True, "host": context.graph, "useVirtualService": by_mesh, **of_class}


def _host(settings: KubeObject, defaults: IngressDefaults) -> str:
    suffix = settings.get("hostSuffix") or defaults.host_suffix or DEFAULT_SUFFIX
    return f"{settings.get('hostPrefix') or ''}{settings['host']}.{suffix}"


def _ingress(host: str, class_name: str, service: str, secret: str, *, encrypted: bool) -> KubeObject:
    """An Ingress, with TLS if there is a secret. If it is only `encrypted`, the controller has the certificate."""
    backend = {"service": {"name": service, "port": {"number": ports.HTTP.number}}}
    spec: KubeObject = {
        "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}],
    }
    if class_name:
        spec["ingressClassName"] = class_name
    if secret or encrypted:
        spec["tls"] = [{"hosts": [host], **({"secretName": secret} if secret else {})}]
    return spec


def _virtual_service(host: str, gateway: str, service: str) -> KubeObject:
    destination = {"host": service, "port": {"number": ports.HTTP.number}}
    http = [{"match": [{"uri": {"prefix": "/"}}], "route": [{"destination": destination}]}]
    return {"hosts": [host], "gateways": [gateway], "http": http}
