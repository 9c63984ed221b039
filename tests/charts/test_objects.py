"""A real API server accepts every rendered object in a dry run, in namespaces that enforce restricted Pod Security."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from dynamo_devcluster import ControlPlane, ControlPlaneOptions, Programs
from dynamo_shared.api.resources import NAMESPACES, PODS, Resource
from dynamo_shared.kube import KubeClient

from tests.charts import helm

#: Kinds of other projects, whose definitions are not available here. The golden files cover them.
OF_OTHERS = {"monitoring.coreos.com", "cert-manager.io", "gateway.networking.k8s.io"}
ENFORCED = {"pod-security.kubernetes.io/enforce": "restricted"}
SERVED = (helm.NAMESPACE, "team-a", "team-b", "images")


@pytest.fixture(scope="module")
async def kube() -> AsyncIterator[KubeClient]:
    """An API server without controllers, with the namespaces of the renderings."""
    options = ControlPlaneOptions(kwok_nodes=0, controller_manager=False, scheduler=False)
    async with (
        ControlPlane(options, Programs()) as plane,
        await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as client,
    ):
        for name in SERVED:
            metadata = {"name": name, "labels": ENFORCED}
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield client


@pytest.fixture(scope="module")
def accepted() -> list[Any]:
    """Objects that the API server accepted: most objects are the same with most values."""
    return []


@pytest.mark.parametrize("values", helm.VALUES, ids=lambda path: path.stem)
async def test_the_api_server_accepts_every_object(kube: KubeClient, values: Path, accepted: list[Any]) -> None:
    objects = helm.rendered(values)
    for each in objects:
        if each["apiVersion"].partition("/")[0] in OF_OTHERS or each in accepted:
            continue
        placed = {**each, "metadata": {"namespace": helm.NAMESPACE, **each["metadata"]}}
        if each["kind"] in ("ClusterRole", "ClusterRoleBinding", "Namespace"):
            placed = each
        # Server-side apply rejects unknown fields; create does not.
        stored = await kube.apply(await resource_of(kube, each), placed, dry_run=True)
        # The pod of `helm test` gets tolerations.
        if each["kind"] != "Pod":
            assert differences(placed, stored) == [], f"{each['kind']} {each['metadata']['name']}"
        accepted.append(each)
    for name, pod in helm.pods(objects):
        if pod in accepted:
            continue
        metadata = {"name": "a-pod", "namespace": helm.NAMESPACE}
        # Its ServiceAccount does not exist here.
        spec = {key: value for key, value in pod.items() if key not in ("serviceAccountName", "priorityClassName")}
        mounts = {mount["name"] for container in spec["containers"] for mount in container.get("volumeMounts", ())}
        claimed = [{"name": each, "emptyDir": {}} for each in mounts - {v["name"] for v in spec.get("volumes", ())}]
        spec["volumes"] = [*spec.get("volumes", ()), *claimed]
        try:
            await kube.create(
                PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, dry_run=True
            )
        except Exception as error:
            raise AssertionError(f"{name}: {error}") from error
        accepted.append(pod)


async def test_the_api_server_accepts_the_definitions(kube: KubeClient) -> None:
    for each in helm.objects(chart=helm.CRDS, release="dynamo-crds"):
        await kube.apply(await resource_of(kube, each), each, dry_run=True)


def differences(rendered: Any, stored: Any, path: str = "") -> list[str]:
    """Where the stored object differs from the rendered one, defaults aside: GitOps tools would reapply it without
    end."""
    if isinstance(rendered, dict) and isinstance(stored, dict):
        return [each for key in rendered for each in differences(rendered[key], stored.get(key), f"{path}.{key}")]
    if isinstance(rendered, list) and isinstance(stored, list) and len(rendered) == len(stored):
        pairs = enumerate(zip(rendered, stored, strict=True))
        return [each for index, (one, other) in pairs for each in differences(one, other, f"{path}[{index}]")]
    return [] if rendered == stored else [path]


_KNOWN: dict[str, list[dict[str, Any]]] = {}


async def resource_of(kube: KubeClient, obj: dict[str, Any]) -> Resource:
    """The resource of an object, as the API server lists it."""
    version = obj["apiVersion"]
    if version not in _KNOWN:
        path = f"/apis/{version}" if "/" in version else f"/api/{version}"
        _KNOWN[version] = msgspec.json.decode(await kube.raw_get(path))["resources"]
    (result,) = [each for each in _KNOWN[version] if each["kind"] == obj["kind"] and "/" not in each["name"]]
    group, _, name = version.rpartition("/")
    return Resource(group, name, result["name"], obj["kind"], namespaced=result["namespaced"])
