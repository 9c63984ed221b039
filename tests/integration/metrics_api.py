"""metrics.k8s.io for autoscalers, served by the test, with the pod load that the test sets."""

import datetime
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.resources import NAMESPACES, PODS, SERVICES, ObjectKey, Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime.endpoints import serving

from tests.building.objects import object_of

API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)
NAME, PLACE = "metrics-server", "metrics"
#: Metrics have this age relative to the pod's readiness. Seconds.
WINDOW = 1


@dataclass
class Load:
    """CPU that each container of each pod uses, in thousandths of a core; None for no metrics."""

    millicores: int | None = 0


@asynccontextmanager
async def metrics_api(plane: ControlPlane, kube: KubeClient) -> AsyncIterator[Load]:
    """Register the API during the block."""
    load = Load()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = plane.certificates.server("metrics")
    context.load_cert_chain(pair.certificate, pair.key)
    async with serving(_app(kube, load), "127.0.0.1", 0, context) as port:
        await _register(kube, port)
        try:
            yield load
        finally:
            await kube.delete(API_SERVICES, ObjectKey("", "v1beta1.metrics.k8s.io"))


async def _register(kube: KubeClient, port: int) -> None:
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": PLACE}})
    # The API server connects to this name itself, and so reaches the test.
    service = object_of(SERVICES, NAME, PLACE, spec={"type": "ExternalName", "externalName": "localhost"})
    await kube.create(SERVICES, service)
    api = {
        **API_SERVICES.type_meta,
        "metadata": {"name": "v1beta1.metrics.k8s.io"},
        "spec": {
            "group": "metrics.k8s.io",
            "version": "v1beta1",
            "service": {"name": NAME, "namespace": PLACE, "port": port},
            "insecureSkipTLSVerify": True,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }
    await kube.create(API_SERVICES, api)


def _app(kube: KubeClient, load: Load) -> web.Application:
    async def resources(_request: web.Request) -> web.Response:
        pods = {"name": "pods", "singularName": "", "namespaced": True, "kind": "PodMetrics", "verbs": ["get", "list"]}
        results = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "metrics.k8s.io/v1beta1"}
        return web.json_response({**results, "resources": [pods]})

    async def metrics(request: web.Request) -> web.Response:
        selector = request.query.get("labelSelector", "")
        listed = await kube.list(PODS, request.match_info["namespace"], label_selector=selector)
        pods = listed if load.millicores is not None else []
        now = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=WINDOW)
        items = [_of_pod(pod, load, now.strftime("%Y-%m-%dT%H:%M:%SZ")) for pod in pods]
        return web.json_response(
            {"kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items}
        )

    app = web.Application()
    app.add_routes(
        [
            web.get("/apis/metrics.k8s.io/v1beta1", resources),
            web.get("/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods", metrics),
        ]
    )
    return app


def _of_pod(pod: dict[str, Any], load: Load, time: str) -> dict[str, Any]:
    usage = {"cpu": f"{load.millicores}m", "memory": "1Gi"}
    metadata = {name: pod["metadata"][name] for name in ("name", "namespace", "labels")}
    containers = [{"name": each["name"], "usage": usage} for each in pod["spec"]["containers"]]
    return {"metadata": metadata, "timestamp": time, "window": f"{WINDOW}s", "containers": containers}
