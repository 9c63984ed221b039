"""Examples that the reference itself cannot run: every component gets its workload and becomes ready.

With Deployments, the pods are KWOK's. Grove's controller does not run here: the tests write its status.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENTS,
    NAMESPACES,
    POD_CLIQUE_SCALING_GROUPS,
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import AlreadyExists

from tests.building.objects import controlled_by
from tests.conformance.cloud import add_network_cards, bind_claims
from tests.integration.platform import eventually

from .run import CONFORMANCE, control_plane, create, platform

CASES = sorted((CONFORMANCE / "must-run").glob("*.json"))
WITHIN = 90.0

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not CASES, reason="the examples are not part of this repository; with them in ../shared/conformance this runs"
    ),
]


@pytest.fixture(scope="module")
async def plane() -> AsyncIterator[ControlPlane]:
    async with control_plane(nodes=12) as up:
        yield up


@pytest.fixture(scope="module", params=["deployments", "grove"])
async def way(
    request: pytest.FixtureRequest, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[str, KubeClient]]:
    """First a platform that deploys graphs as Deployments, then one that deploys them as PodCliqueSets."""
    folder = tmp_path_factory.mktemp("must-run")
    async with platform(plane, folder, grove=request.param == "grove") as kube:
        await add_network_cards(kube)
        yield request.param, kube


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
async def test_every_component_becomes_ready(path: Path, way: tuple[str, KubeClient]) -> None:
    name, kube = way
    namespace = f"{name}-{CASES.index(path)}"
    case = load(path, namespace)
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        refused = await create(kube, case, namespace)
        assert not [line for line in refused if "DynamoGraphDeployment" in line], refused

        async def successful() -> bool:
            await bind_claims(kube, namespace)
            if name == "grove":
                await act_as_grove(kube, namespace)
            graphs = await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)
            last[:] = [graph.get("status", {}) for graph in graphs]
            return all(status.get("state") == "successful" for status in last)

        last: list[KubeObject] = []
        try:
            await eventually(successful, f"all graphs of {path.stem} successful", WITHIN)
        except AssertionError as error:
            reported = [each["message"] for status in last for each in status.get("conditions", ())]
            raise AssertionError(f"{error}: {reported}") from None
        for graph in await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace):
            desired = {component["name"] for component in graph["spec"]["components"]}
            assert graph["status"]["components"].keys() == desired
    finally:
        for graph in await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace):
            await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, graph["metadata"]["name"]))
        await kube.delete(NAMESPACES, ObjectKey("", namespace))


def load(path: Path, namespace: str) -> KubeObject:
    """A case with its placeholders replaced, and without scheduling rules of a cloud.

    Frontends of the EKS examples have an affinity to pods of the type `worker`; prefill and decode workers no longer
    have that label, neither here nor in the reference.
    """
    text = path.read_text().replace("${K8S_NAMESPACE}", namespace).replace("${STORAGE_CLASS_NAME}", "standard")
    case: KubeObject = json.loads(text)
    pending: list[Any] = [case["input"]]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            current.pop("affinity", None)
            current.pop("nodeSelector", None)
        pending += current.values() if isinstance(current, dict) else current if isinstance(current, list) else ()
    return case


async def act_as_grove(kube: KubeClient, namespace: str) -> None:
    """Act as Grove: create a clique for each clique of a set and a group for each group, all of them ready."""
    for item in await kube.list(POD_CLIQUE_SETS, namespace):
        template, prefix = item["spec"]["template"], f"{item['metadata']['name']}-0"
        groups = template.get("podCliqueScalingGroups", [])
        grouped = {name for group in groups for name in group["cliqueNames"]}
        owner = controlled_by(item)

        def metadata(name: str, owner: KubeObject = owner) -> KubeObject:
            return {"name": name, "namespace": namespace, "ownerReferences": [owner]}

        made = [
            (POD_CLIQUES, {"metadata": metadata(f"{prefix}-{clique['name']}"), "spec": clique["spec"]}, "readyReplicas")
            for clique in template["cliques"]
            if clique["name"] not in grouped
        ]
        made += [
            (
                POD_CLIQUE_SCALING_GROUPS,
                {
                    "metadata": metadata(f"{prefix}-{group['name']}"),
                    "spec": {"replicas": group["replicas"], "cliqueNames": group["cliqueNames"]},
                },
                "availableReplicas",
            )
            for group in groups
        ]
        for resource, obj, serving in made:
            whole = {**resource.type_meta, **obj}
            try:
                stored = await kube.create(resource, whole)
            except AlreadyExists:
                continue
            count = stored["spec"]["replicas"]
            status = {"observedGeneration": 1, "replicas": count, "updatedReplicas": count, serving: count}
            name = {"name": stored["metadata"]["name"], "namespace": namespace}
            await kube.apply_status(resource, {**whole, "metadata": name, "status": status})
            await asyncio.sleep(0)
