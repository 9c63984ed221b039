"""Requests for images on a real API server: one build for all, its answer, and its events.

The tests act as the builds.
"""

from collections.abc import AsyncIterator, Iterator

import pytest
from dynamo_image_builder.app import ImageBuilderService
from dynamo_image_builder.job import BUILDER
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as keys
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, PODS, ObjectKey
from dynamo_shared.runtime import Settings
from dynamo_watcher.app import WatcherService

from .archive_store import Store, archive_store
from .platform import eventually, platform, settings, until_event, until_status

DIGEST = f"sha256:{'c4' * 32}"
TAG = "frontend:jh2o6dqzpsgfued4"
#: No node has this label: a build's pod waits, and the test reports its end.
NOWHERE = '{"example.com/no-such": "1"}'


@pytest.fixture
def store() -> Iterator[Store]:
    with archive_store() as running:
        running.archives[TAG] = b"an archive"
        yield running


def builder_settings(control_plane, nats_server, namespace: str, store: Store, etcd_url: str = "") -> Settings:
    """Settings of a platform that builds the archives of this store. No node can run a build."""
    return settings(
        control_plane.kubeconfig,
        nats_server.url,
        etcd_url,
        # Requests of earlier tests must not be built in this test's namespace.
        NAMESPACE__RESTRICTED=namespace,
        PLATFORM__IMAGE_BUILDER__NAMESPACE=namespace,
        PLATFORM__IMAGE_BUILDER__STORE__ENDPOINT=store.url,
        PLATFORM__IMAGE_BUILDER__REGISTRY__SERVER="registry.example.com/team",
        PLATFORM__IMAGE_BUILDER__BUILDS_PER_NAMESPACE="1",
        PLATFORM__IMAGE_BUILDER__RESOURCES__REQUESTS=NOWHERE,
        PLATFORM__IMAGE_BUILDER__RESOURCES__LIMITS=NOWHERE,
    )


@pytest.fixture
async def running_builder(control_plane, nats_server, namespace, store) -> AsyncIterator[None]:
    configured = builder_settings(control_plane, nats_server, namespace, store)
    async with platform(configured, [WatcherService(), ImageBuilderService()]):
        yield


async def create_request(kube, namespace: str, name: str, tag: str = TAG) -> None:
    metadata = {"name": name, "namespace": namespace}
    obj = {**DYNAMO_NIM_REQUESTS.type_meta, "metadata": metadata, "spec": {"bentoTag": tag}}
    await kube.create(DYNAMO_NIM_REQUESTS, obj)


async def until(kube, namespace: str, name: str, phase: str, reason: str = "") -> KubeObject:
    def right(status: KubeObject) -> bool:
        reasons = [each["reason"] for each in status.get("conditions", ())]
        return status.get("phase") == phase and reason in ("", *reasons)

    key = ObjectKey(namespace, name)
    return await until_status(kube, DYNAMO_NIM_REQUESTS, key, f"{phase} {reason}", right)


async def jobs(kube, namespace: str) -> list[KubeObject]:
    items: list[KubeObject] = await kube.list(JOBS, namespace, label_selector=labels.IMAGE_BUILD)
    return items


async def pod_ends(kube, namespace: str, message: str, code: int = 0) -> None:
    """Report the end of a build's pod, as its node would."""

    async def pods() -> list[KubeObject]:
        listed = await kube.list(PODS, namespace, label_selector=labels.IMAGE_BUILD)
        return [each for each in listed if each["status"]["phase"] == "Pending"]

    (pod,) = await eventually(pods, "the build's pod")
    end = {"exitCode": code, "message": message, "reason": "Error" if code else "Completed"}
    state = {"terminated": end}
    container = {"name": BUILDER, "image": "i", "imageID": "i", "ready": False, "restartCount": 0, "state": state}
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]}
    await kube.merge_patch(
        PODS, ObjectKey(namespace, pod["metadata"]["name"]), {"status": status}, subresource="status"
    )


@pytest.mark.usefixtures("running_builder")
async def test_a_request_gets_its_image_and_the_next_one_gets_it_at_once(kube, namespace):
    await create_request(kube, namespace, "one")
    status = await until(kube, namespace, "one", "Building")
    (job,) = await jobs(kube, namespace)
    assert status["job"] == f"{namespace}/{job['metadata']['name']}"
    assert job["metadata"]["annotations"][keys.BENTO_TAG] == TAG
    await pod_ends(kube, namespace, f"digest={DIGEST}\n#9 pushing layers\n#9 DONE 1.2s")

    status = await until(kube, namespace, "one", "Ready")
    image = "registry.example.com/team/yatai-bentos:yatai.frontend.jh2o6dqzpsgfued4"
    assert (status["image"], status["imageRef"], status["digest"]) == (image, f"{image}@{DIGEST}", DIGEST)
    assert status["cached"] is False
    assert status["durationSeconds"] >= 0
    assert status["log"] == "#9 pushing layers\n#9 DONE 1.2s"
    (job,) = await jobs(kube, namespace)
    assert job["metadata"]["annotations"][keys.IMAGE_DIGEST] == DIGEST

    await create_request(kube, namespace, "two")
    second = await until(kube, namespace, "two", "Ready")
    assert (second["imageRef"], second["cached"]) == (status["imageRef"], True)
    assert len(await jobs(kube, namespace)) == 1

    await until_event(kube, namespace, "ImageReady", "two")


@pytest.mark.usefixtures("running_builder")
async def test_a_request_waits_for_the_builds_of_its_namespace(kube, namespace, store):
    tags = {name: f"{name}:v1" for name in ("first", "second", "third")}
    for name, tag in tags.items():
        store.archives[tag] = name.encode()
        await create_request(kube, namespace, name, tag)
        await until(kube, namespace, name, *(("Building",) if name == "first" else ("Pending", "Waiting")))
    await until_event(kube, namespace, "ImageWaiting", "third")
    await pod_ends(kube, namespace, "digest=\nERROR: no", 1)
    await until(kube, namespace, "first", "Failed", "BuildFailed")
    await until(kube, namespace, "second", "Building")
    assert [each["metadata"]["labels"][labels.IMAGE_NAMESPACE] for each in await jobs(kube, namespace)] == [
        namespace,
        namespace,
    ]
    await until(kube, namespace, "third", "Pending", "Waiting")
