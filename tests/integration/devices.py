"""GPUs for dynamic resource allocation, published as a driver would, on nodes without a driver."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import NODES, RESOURCE_SLICES, ObjectKey, Resource
from dynamo_shared.kube import KubeClient

DRIVER = "gpu.nvidia.com"
GPUS_A_NODE = 4
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)


@asynccontextmanager
async def devices_of(kube: KubeClient) -> AsyncIterator[None]:
    """Publish what a GPU driver reports: a DeviceClass, and the devices of each node."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    made: list[tuple[Resource, KubeObject]] = [
        (DEVICE_CLASSES, {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}})
    ]
    for node in await kube.list(NODES):
        name = node["metadata"]["name"]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        devices = [{"name": f"gpu-{index}"} for index in range(GPUS_A_NODE)]
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        made.append((RESOURCE_SLICES, {"metadata": {"name": name}, "spec": spec}))
    for resource, obj in made:
        await kube.create(resource, {**resource.type_meta, **obj})
    yield
    for resource, obj in made:
        await kube.delete(resource, ObjectKey("", obj["metadata"]["name"]))
