"""The printed DynamoDeployment, from its artifact to running pods: request, build, image, graph.

The test acts as the build's pod.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import yaml
from dynamo_image_builder.app import ImageBuilderService
from dynamo_pod_builder.app import PodBuilderService
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    ObjectKey,
)
from dynamo_watcher.app import WatcherService

from .archive_store import Store, archive_store
from .platform import eventually, platform, until_event, until_status
from .test_image_builder import DIGEST, TAG, builder_settings, create_request, jobs, pod_ends

EXAMPLES = Path(__file__).with_name("seed_examples")
IMAGE = f"registry.example.com/team/yatai-bentos:yatai.frontend.jh2o6dqzpsgfued4@{DIGEST}"
REQUEST = "frontend--jh2o6dqzpsgfued4"


@pytest.fixture
def store() -> Iterator[Store]:
    with archive_store() as running:
        running.archives[TAG] = b"an archive"
        yield running


@pytest.fixture
async def running_platform(control_plane, nats_server, etcd_server, namespace, store) -> AsyncIterator[None]:
    configured = builder_settings(control_plane, nats_server, namespace, store, etcd_server.url)
    async with platform(configured, [WatcherService(), PodBuilderService(), ImageBuilderService()]):
        yield


def example(namespace: str, name: str = "") -> KubeObject:
    (written,) = yaml.safe_load_all((EXAMPLES / "dynamo-deployment.yaml").read_text())
    written["metadata"] = {"name": name or written["metadata"]["name"], "namespace": namespace}
    return dict(written)


async def until_ready_reason(kube, resource, namespace: str, name: str, reason: str) -> KubeObject:
    """The status, once its condition has this reason."""

    def says(status: KubeObject) -> bool:
        return [each["reason"] for each in status.get("conditions", ())] == [reason]

    return await until_status(kube, resource, ObjectKey(namespace, name), reason, says)


async def until_successful(kube, namespace: str, name: str) -> None:
    key = ObjectKey(namespace, name)
    await until_status(kube, DYNAMO_DEPLOYMENTS, key, "runs", lambda status: status.get("state") == "successful")


@pytest.mark.usefixtures("running_platform")
async def test_the_image_of_an_artifact_is_requested_built_and_run(kube, namespace):
    await kube.create(DYNAMO_DEPLOYMENTS, example(namespace))
    status = await until_ready_reason(kube, DYNAMO_DEPLOYMENTS, namespace, "disagg", "ImageBuilding")
    assert status["state"] == "pending"
    assert status["conditions"][0]["message"].startswith(f"waiting for the image of {TAG}, which is being built: ")
    deployment = await kube.get(DYNAMO_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
    request = await kube.get(DYNAMO_NIM_REQUESTS, ObjectKey(namespace, REQUEST))
    assert request["spec"] == {"bentoTag": TAG}
    assert objects.controls(deployment, request)
    assert await kube.list(DEPLOYMENTS, namespace) == []

    await pod_ends(kube, namespace, f"digest={DIGEST}\n")
    await until_successful(kube, namespace, "disagg")
    deployments = await kube.list(DEPLOYMENTS, namespace)
    images = {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in deployments}
    assert (len(deployments), images) == (5, {IMAGE})

    await until_event(kube, namespace, "ImageBuilding", "disagg")

    # A second one of the same artifact gets the image at once, and keeps it when the request is deleted with its owner.
    await kube.create(DYNAMO_DEPLOYMENTS, example(namespace, "second"))
    await until_successful(kube, namespace, "second")
    assert len(await jobs(kube, namespace)) == 1
    await kube.delete(DYNAMO_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
    owner = await kube.get(DYNAMO_DEPLOYMENTS, ObjectKey(namespace, "second"))

    async def asked_again() -> bool:
        listed = await kube.list(DYNAMO_NIM_REQUESTS, namespace)
        own = [each for each in listed if objects.controls(owner, each)]
        return bool(own and own[0].get("status", {}).get("imageRef") == IMAGE)

    await eventually(asked_again, "the second one creates its own request")
    await until_successful(kube, namespace, "second")
    assert len(await jobs(kube, namespace)) == 1


@pytest.mark.usefixtures("running_platform")
async def test_a_service_uses_an_existing_request(kube, namespace):
    await create_request(kube, namespace, REQUEST)
    (written,) = yaml.safe_load_all((EXAMPLES / "dynamo-nim-deployment.yaml").read_text())
    written["metadata"]["namespace"] = namespace
    # The printed example has a placeholder there.
    del written["spec"]["envs"]
    await kube.create(DYNAMO_NIM_DEPLOYMENTS, written)
    name = written["metadata"]["name"]
    await until_ready_reason(kube, DYNAMO_NIM_DEPLOYMENTS, namespace, name, "ImageBuilding")
    await pod_ends(kube, namespace, f"digest={DIGEST}\n")
    (deployment,) = await eventually(lambda: kube.list(DEPLOYMENTS, namespace), "its Deployment is created")
    (main,) = deployment["spec"]["template"]["spec"]["containers"]
    assert main["image"] == IMAGE
    stored = await kube.get(DYNAMO_NIM_REQUESTS, ObjectKey(namespace, REQUEST))
    assert objects.controller_of(stored) is None
