"""`dynamoctl crds --store`: what etcd has before and after, and what interrupts it."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_ctl.commands.crds import storing
from dynamo_ctl.errors import ExitCode
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.kube import Conflict, KubeClient, Unavailable
from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient

from . import command
from .test_conversion import WRITTEN, manifest

GRAPHS = DYNAMO_GRAPH_DEPLOYMENTS
KINDS = [each.resource for each in DEFINITIONS if each.is_converted]


@pytest.fixture(autouse=True)
def _one_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storing, "SETTLING", 0.0)


@pytest.fixture
async def crds(admission_plane: ControlPlane, tmp_path: Any) -> AsyncIterator[Any]:
    """Runs `dynamoctl crds`; returns its exit code, lines and errors. Afterwards, all is stored in v1beta1 again."""

    async def run(*arguments: str) -> tuple[int, list[str], str]:
        code, out, err = await command.called(
            "crds", *arguments, cwd=tmp_path, KUBECONFIG=str(admission_plane.kubeconfig)
        )
        return code, out.splitlines(), err

    yield run
    assert (await run("--store", "v1beta1"))[0] == ExitCode.OK


async def written(kube: KubeClient, namespace: str) -> dict[Resource, KubeObject]:
    """One object of each kind, written in v1beta1."""
    return {
        resource: await kube.create(resource, manifest(resource, namespace, spec))
        for _, resource, spec in WRITTEN
        if resource.version == "v1beta1"
    }


async def stored(plane: ControlPlane, namespace: str) -> dict[str, str]:
    """The version in which etcd has each object, by the kind's plural."""
    async with EtcdClient(EtcdOptions(endpoints=(plane.etcd.url,))) as etcd:
        observed = (await etcd.read("/registry/nvidia.com/")).keys.values()
    return {
        each.key.split("/")[3]: json.loads(each.value)["apiVersion"]
        for each in observed
        if f"/{namespace}/" in each.key
    }


async def test_all_objects_are_stored_in_the_other_version_and_stay_the_same(
    crds: Any, admission_plane: ControlPlane, admission_kube: KubeClient, admission_namespace: str
) -> None:
    kube, namespace = admission_kube, admission_namespace
    before = await written(kube, namespace)
    code, lines, _ = await crds("--store", "v1alpha1", "--dry-run")
    assert code == ExitCode.OK
    assert lines[0].startswith("DynamoGraphDeployment: stored in v1beta1, would be stored in v1alpha1 (objects: ")
    assert set((await stored(admission_plane, namespace)).values()) == {"nvidia.com/v1beta1"}
    code, lines, error = await crds("--store", "v1alpha1")
    assert code == ExitCode.OK, error
    assert [line.split(" (")[0] for line in lines[1:]] == [f"{each.kind}: stored in v1alpha1" for each in KINDS]
    expected = {each.plural: "nvidia.com/v1alpha1" for each in KINDS}
    assert await stored(admission_plane, namespace) == expected
    for resource, obj in before.items():
        now = await kube.get(resource, ObjectKey(namespace, "whole"))
        assert (now["spec"], now["metadata"]["generation"]) == (obj["spec"], 1)
        key = ObjectKey("", f"{resource.plural}.{resource.group}")
        definition = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, key)
        assert definition["status"]["storedVersions"] == ["v1alpha1"]
    code, lines, _ = await crds("--store", "v1alpha1")
    assert lines == [f"{each.kind}: already stored in v1alpha1" for each in KINDS]
    await crds("--store", "v1beta1")
    assert set((await stored(admission_plane, namespace)).values()) == {"nvidia.com/v1beta1"}


async def test_conflicts_are_repeated_and_deleted_objects_skipped(
    crds: Any, admission_plane: ControlPlane, admission_kube: KubeClient, admission_namespace: str
) -> None:
    await written(admission_kube, admission_namespace)
    patch, conflicts = KubeClient.merge_patch, set[Any]()

    async def disturbed(self: KubeClient, resource: Resource, key: ObjectKey, *arguments: Any, **options: Any) -> Any:
        if resource.kind == "DynamoGraphDeploymentRequest" and key.namespace == admission_namespace:
            await self.delete(resource, key)
        elif (resource, key) not in conflicts:
            conflicts.add((resource, key))
            raise Conflict(409, "Conflict", "changed meanwhile")
        return await patch(self, resource, key, *arguments, **options)

    with pytest.MonkeyPatch.context() as busy:
        busy.setattr(KubeClient, "merge_patch", disturbed)
        code, _, error = await crds("--store", "v1alpha1")
    assert code == ExitCode.OK, error
    left = await stored(admission_plane, admission_namespace)
    assert set(left) == {each.plural for each in KINDS} - {"dynamographdeploymentrequests"}
    assert set(left.values()) == {"nvidia.com/v1alpha1"}


async def test_a_run_that_fails_midway_is_continued(
    crds: Any, admission_plane: ControlPlane, admission_kube: KubeClient, admission_namespace: str
) -> None:
    await written(admission_kube, admission_namespace)
    patch = KubeClient.merge_patch

    async def down(self: KubeClient, resource: Resource, *arguments: Any, **options: Any) -> Any:
        if resource.kind == "DynamoComponentDeployment":
            raise Unavailable(500, "InternalError", "conversion webhook failed")
        return await patch(self, resource, *arguments, **options)

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(KubeClient, "merge_patch", down)
        code, lines, error = await crds("--store", "v1alpha1")
    assert code == ExitCode.FAILED
    assert len(lines) == 2
    assert "DynamoComponentDeployment " in error
    assert "conversion webhook failed; the platform must run" in error
    code, lines, error = await crds("--store", "v1alpha1")
    assert code == ExitCode.OK, error
    assert lines[0] == "DynamoGraphDeployment: already stored in v1alpha1"
    assert set((await stored(admission_plane, admission_namespace)).values()) == {"nvidia.com/v1alpha1"}


async def test_definitions_without_the_version_are_refused(crds: Any, admission_kube: KubeClient) -> None:
    key = ObjectKey("", f"{GRAPHS.plural}.{GRAPHS.group}")
    definition = await admission_kube.get(CUSTOM_RESOURCE_DEFINITIONS, key)
    served = [
        {"op": "replace", "path": f"/spec/versions/{place}/served", "value": False}
        for place, each in enumerate(definition["spec"]["versions"])
        if each["name"] == "v1alpha1"
    ]
    await admission_kube.json_patch(CUSTOM_RESOURCE_DEFINITIONS, key, served)
    try:
        code, lines, error = await crds("--store", "v1alpha1")
    finally:
        await admission_kube.json_patch(CUSTOM_RESOURCE_DEFINITIONS, key, [{**each, "value": True} for each in served])
    assert (code, lines) == (ExitCode.FAILED, [])
    assert f"{key.name} does not serve v1alpha1: " in error
