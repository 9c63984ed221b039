"""The checks, in the order in which a user would do the steps."""

import asyncio
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import yaml
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    EVENTS,
    JOBS,
    PODS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import KubeClient

from tests.builds.parts import Registry
from tests.e2e.heard import Heard
from tests.e2e.node import Node
from tests.e2e.serving import is_ready
from tests.held import Held
from tests.integration.archive_store import Store
from tests.integration.platform import eventually

from .artifact import ENTRY, TAG, packed

NAMESPACE = "legacy"
EXAMPLES = Path(__file__).parents[1] / "integration" / "seed_examples"
DEPLOYMENT, REQUEST, SERVICE = "disagg", "frontend--jh2o6dqzpsgfued4", "test-41fa991-vllmworker"
REPOSITORY = "team/yatai-bentos"
#: Seconds. A store that lacks the archive is retried after half a minute.
BUILT_WITHIN, READY_WITHIN = 180.0, 120.0


@dataclass(frozen=True)
class World:
    """Everything that runs."""

    node: Node
    kube: KubeClient
    store: Store
    registry: Registry
    heard: Heard
    busybox: bytes
    builds: str

    async def apply(self, example: str) -> str:
        """kubectl's output when it applies a printed example unchanged."""
        return await self.node.kubectl(
            "apply", "--namespace", NAMESPACE, "--filename", str(EXAMPLES / f"{example}.yaml")
        )

    async def get(self, resource: Resource, name: str) -> KubeObject:
        """An object of the namespace."""
        return await self.kube.get(resource, ObjectKey(NAMESPACE, name))

    async def items(self, resource: Resource, namespace: str = NAMESPACE, selector: str = "") -> list[KubeObject]:
        """Objects of a namespace."""
        return list(await self.kube.list(resource, namespace, label_selector=selector))

    async def ready(self, resource: Resource, name: str) -> KubeObject:
        """The condition of an object; empty before it has one."""
        conditions = (await self.get(resource, name)).get("status", {}).get("conditions") or [{}]
        return dict(conditions[0])

    async def of(self, deployment: str) -> list[KubeObject]:
        """Pods of a graph."""
        return await self.items(PODS, selector=f"{labels.GRAPH_DEPLOYMENT_NAME}={deployment}")

    async def page(self, deployment: str, path: str) -> str:
        """The answer of a deployment's frontend through its Service."""
        service = await self.get(SERVICES, f"{deployment}-frontend")
        url = f"http://{service['spec']['clusterIP']}:8000/{path}"
        return await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=5).read().decode())


def service(name: str, *without: str) -> KubeObject:
    """The printed DynamoNimDeployment under another name, without these fields."""
    (written,) = yaml.safe_load_all((EXAMPLES / "dynamo-nim-deployment.yaml").read_text())
    spec = {field: value for field, value in written["spec"].items() if field not in without}
    return {**written, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


async def run(held: Held, world: World) -> None:
    """Run all checks. Those after a failed build add little."""
    await _without_its_archive(held, world)
    await _built(held, world)
    if held.failed:
        return
    await _runs(held, world)
    await _others(held, world)
    await _deleted(held, world)


async def _without_its_archive(held: Held, world: World) -> None:
    with held.check("the printed DynamoDeployment is stored unchanged, with a warning that names its successor"):
        assert "write a DynamoGraphDeployment" in await world.apply("dynamo-deployment")
    with held.check("a missing archive is reported in its status, an Event and a NATS event") as details:

        async def says() -> str:
            entry = await world.ready(DYNAMO_DEPLOYMENTS, DEPLOYMENT)
            return str(entry["message"]) if entry.get("reason") == "ImageFailed" else ""

        message = await eventually(says, "the condition says that there is no archive", READY_WITHIN)
        assert "ArchiveNotFound" in message
        assert (await world.get(DYNAMO_DEPLOYMENTS, DEPLOYMENT))["status"]["state"] == "failed"

        async def reported() -> bool:
            events = [each["reason"] for each in await world.items(EVENTS) if each["regarding"]["name"] == DEPLOYMENT]
            return "ImageFailed" in events and bool(world.heard.of("dynamodeployment.failed", artifact=TAG))

        await eventually(reported, "an Event and a NATS event say so", READY_WITHIN)
        details.append(message)


async def _built(held: Held, world: World) -> None:
    with held.check(
        "with the archive in its store the image is built by a pod under Pod Security restricted, and pushed"
    ) as details:
        world.store.archives[TAG] = packed(world.busybox)

        async def answered() -> KubeObject | None:
            status: KubeObject = (await world.get(DYNAMO_NIM_REQUESTS, REQUEST)).get("status", {})
            failure = status.get("conditions", [{}])[0].get("reason")
            if status.get("phase") == "Failed" and failure != "ArchiveNotFound":
                raise AssertionError(status)
            return status if status.get("phase") == "Ready" else None

        status = await eventually(answered, "the request has its image", BUILT_WITHIN)
        _, digest = await asyncio.to_thread(world.registry.manifest, REPOSITORY, status["digest"])
        assert digest == status["digest"]
        (pod,) = await world.items(PODS, world.builds)
        assert pod["status"]["phase"] == "Succeeded"
        assert pod["status"]["hostIP"]
        details.append(f"{status['imageRef']}, {status['durationSeconds']} s")


async def _runs(held: Held, world: World) -> None:
    with held.check("all services run that image on the node, with the replicas of the example") as details:

        async def successful() -> bool:
            return bool((await world.get(DYNAMO_DEPLOYMENTS, DEPLOYMENT))["status"]["state"] == "successful")

        await eventually(successful, "the deployment is successful", READY_WITHIN)
        pods = await world.of(DEPLOYMENT)
        assert all(map(is_ready, pods)), pods
        services = sorted(pod["metadata"]["labels"][labels.COMPONENT] for pod in pods)
        assert services == ["Frontend", "PrefillWorker", "Processor", "VllmWorker"]
        digest = (await world.get(DYNAMO_NIM_REQUESTS, REQUEST))["status"]["digest"]
        running = {pod["status"]["containerStatuses"][0]["imageID"].rpartition("@")[2] for pod in pods}
        assert running == {digest}
        assert sum(pod["status"]["containerStatuses"][0]["restartCount"] for pod in pods) == 0
        details.append(", ".join(services))
    with held.check(
        "the frontend's Service answers: its pod was started with the entry that bento.yaml names"
    ) as details:

        async def answers() -> str:
            try:
                return await world.page(DEPLOYMENT, "started")
            except OSError:
                return ""

        started = (await eventually(answers, "the frontend answers", READY_WITHIN)).strip()
        assert started == f"/bento/src: uv run dynamo serve --service-name Frontend {ENTRY}"
        details.append(started)
    with held.check("the pods have the variables of the deployment and of its services"):
        variables = (await world.page(DEPLOYMENT, "env")).splitlines()
        assert {"GLOBAL_ENV_VAR=some_global_value", "SPECIFIC_ENV_VAR=some_specific_value"} <= set(variables)


async def _others(held: Held, world: World) -> None:
    with held.check("the printed DynamoNimRequest already exists, and another one is answered without a build"):
        await world.apply("dynamo-nim-request")
        assert (await world.get(DYNAMO_NIM_REQUESTS, REQUEST))["status"]["phase"] == "Ready"
        (written,) = yaml.safe_load_all((EXAMPLES / "dynamo-nim-request.yaml").read_text())
        await world.kube.create(DYNAMO_NIM_REQUESTS, {**written, "metadata": {"name": "again", "namespace": NAMESPACE}})

        async def cached() -> bool:
            return bool((await world.get(DYNAMO_NIM_REQUESTS, "again")).get("status", {}).get("cached"))

        await eventually(cached, "the second request is answered", READY_WITHIN)
        assert len(await world.items(JOBS, world.builds)) == 1
    with held.check("the printed DynamoNimDeployment has the image, and says what its placeholder must be") as details:
        assert "write a DynamoGraphDeployment" in await world.apply("dynamo-nim-deployment")

        async def says() -> str:
            message = (await world.ready(DYNAMO_NIM_DEPLOYMENTS, SERVICE)).get("message", "")
            return str(message) if "DYN_DEPLOYMENT_CONFIG" in message else ""

        details.append(await eventually(says, "its condition names the variable", READY_WITHIN))
        graph = await world.get(DYNAMO_GRAPH_DEPLOYMENTS, SERVICE)
        image = (await world.get(DYNAMO_NIM_REQUESTS, REQUEST))["status"]["imageRef"]
        assert graph["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]["image"] == image
    with held.check("without the placeholder its pod waits for its GPU, which this node lacks"):
        await world.kube.create(DYNAMO_NIM_DEPLOYMENTS, service("gpu", "envs"))

        async def unscheduled() -> bool:
            pods = await world.of("gpu")
            return bool(pods and "Insufficient nvidia.com/gpu" in str(pods[0]["status"].get("conditions")))

        await eventually(unscheduled, "its pod waits for a GPU", READY_WITHIN)
    with held.check("without the GPU it runs and answers, by the command of that release"):
        await world.kube.create(DYNAMO_NIM_DEPLOYMENTS, service("chat", "envs", "resources"))

        async def ready() -> bool:
            return (await world.ready(DYNAMO_NIM_DEPLOYMENTS, "chat")).get("status") == "True"

        await eventually(ready, "it is ready", READY_WITHIN)
        assert (await world.page("chat", "started")).strip().endswith(f"--service-name Frontend {ENTRY}")


async def _deleted(held: Held, world: World) -> None:
    with held.check("a deletion also deletes the graph, the pods and the request"):
        for resource, name in (
            (DYNAMO_DEPLOYMENTS, DEPLOYMENT),
            (DYNAMO_NIM_DEPLOYMENTS, SERVICE),
            (DYNAMO_NIM_DEPLOYMENTS, "gpu"),
            (DYNAMO_NIM_DEPLOYMENTS, "chat"),
        ):
            await world.kube.delete(resource, ObjectKey(NAMESPACE, name))

        async def gone() -> bool:
            kinds = (DYNAMO_GRAPH_DEPLOYMENTS, DEPLOYMENTS, PODS, DYNAMO_NIM_REQUESTS)
            left = [each["metadata"]["name"] for kind in kinds for each in await world.items(kind)]
            return left == ["again"]

        await eventually(gone, "only the user's request is left", READY_WITHIN)
