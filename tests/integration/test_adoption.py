"""Adoption from the reference operator: the platform manages its objects without replacing pods.

Objects are created as recorded from the reference, by another field manager and with its annotations; their pods run
before the platform starts.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dynamo_shared.api import resources
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.registry.annotations import LAST_APPLIED_GENERATION, LAST_APPLIED_HASH, OPERATOR_ORIGIN_VERSION
from dynamo_shared.api.resources import (
    DEPLOYMENTS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    POD_CLIQUE_SETS,
    SERVICES,
    ObjectKey,
    Resource,
)
from dynamo_shared.kube import Conflict, KubeClient
from dynamo_shared.runtime import Settings, load_settings

from .grove import grove_definitions
from .platform import eventually, gone, platform, pod_uids, settings, until_state

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance"
CASES = CONFORMANCE / "cases" / "deployments"
GROVE_CASES = CONFORMANCE / "cases" / "grove"
BETA = DYNAMO_GRAPH_DEPLOYMENTS.api_version
HASH = "0123abcd"
FINALIZER = "nvidia.com/finalizer"
#: In this order, owners come before what they own.
KINDS = (
    "serviceaccounts",
    "roles",
    "rolebindings",
    "dynamocomponentdeployments",
    "deployments",
    "podcliquesets",
    "configmaps",
    "services",
)

pytestmark = pytest.mark.skipif(
    not CASES.is_dir(),
    reason="the recorded cases are not part of this repository; with them in ../shared/conformance this runs",
)


def configured(control_plane: Any, nats_server: Any) -> Settings:
    """The operator configuration of the recording, on local servers."""
    local = settings(control_plane.kubeconfig, nats_server.url).platform
    environ = {
        "DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG": str(local.kubernetes.kubeconfig),
        "DYNAMO_PLATFORM__NATS__SERVERS": nats_server.url,
        "DYNAMO_SERVER__METRICS__BIND_ADDRESS": "127.0.0.1",
        "DYNAMO_SERVER__METRICS__PORT": "0",
        "DYNAMO_SERVER__METRICS__SECURE": "false",
        "DYNAMO_SERVER__HEALTH_PROBE__BIND_ADDRESS": "127.0.0.1",
        "DYNAMO_SERVER__HEALTH_PROBE__PORT": "0",
    }
    return load_settings(CONFORMANCE / "operator-config.yaml", environ)


def recorded(case: dict[str, Any], namespace: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The plural and the manifest of each recorded object, owners first."""
    text = json.dumps(case["expected"]).replace("case-namespace", namespace).replace("workerhash", HASH)
    results = {(*key.split("/")[:-1], key.split("/")[-1]): obj for key, obj in json.loads(text).items()}
    for plural in KINDS:
        for (group, version, kind_plural, _), obj in results.items():
            if kind_plural == plural:
                yield f"{'' if group == 'core' else group + '/'}{version}", {**obj, "plural": plural}


KIND_OF = {each.plural: each.kind for each in resources.ALL}


async def create_like_the_reference(kube: KubeClient, case: dict[str, Any], namespace: str) -> ObjectKey:
    """Create the case's graph and all that the reference created for it. Returns the graph's key."""
    reference = kube.acting_as("manager")
    (given,) = (convert(each, BETA) for each in case["input"] if each["kind"] == "DynamoGraphDeployment")
    object_annotations = {**given["metadata"].get("annotations", {}), OPERATOR_ORIGIN_VERSION: "1.2.0"}
    metadata = {
        **given["metadata"],
        "namespace": namespace,
        "annotations": object_annotations,
        "finalizers": [FINALIZER],
    }
    graph = await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, {**given, "metadata": metadata})
    uids = {("DynamoGraphDeployment", graph["metadata"]["name"]): graph["metadata"]["uid"]}
    for api_version, obj in recorded(case, namespace):
        manifest = {"apiVersion": api_version, "kind": KIND_OF[obj.pop("plural")], **obj}
        metadata = manifest["metadata"] = {**obj["metadata"], "namespace": namespace}
        for owner in metadata.get("ownerReferences", ()):
            owner["uid"] = uids[owner["kind"], owner["name"]]
        metadata["annotations"] = {
            **metadata.get("annotations", {}),
            LAST_APPLIED_HASH: "a" * 64,
            LAST_APPLIED_GENERATION: "1",
        }
        if manifest["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            metadata["finalizers"] = [FINALIZER]
        made = await reference.create(resources.of(manifest), manifest)
        if manifest["kind"] == DYNAMO_COMPONENT_DEPLOYMENTS.kind:
            await own_containers_by_name(reference, made)
        uids[made["kind"], metadata["name"]] = made["metadata"]["uid"]
    return ObjectKey(namespace, graph["metadata"]["name"])


async def own_containers_by_name(reference: KubeClient, component: dict[str, Any]) -> None:
    """In the reference's definitions, containers are a list by name, and its managedFields have the fields of each."""
    entries = component["metadata"]["managedFields"]
    pod = component["spec"]["podTemplate"]["spec"]
    by_name: dict[str, Any] = {
        f"k:{json.dumps({'name': each['name']}, separators=(',', ':'))}": {
            ".": {},
            **{f"f:{field}": {} for field in each},
        }
        for each in pod["containers"]
    }
    fields = entries[0]["fieldsV1"]["f:spec"]["f:podTemplate"]["f:spec"]
    assert fields["f:containers"] == {}
    fields["f:containers"] = {".": {}, **by_name}
    key = ObjectKey(component["metadata"]["namespace"], component["metadata"]["name"])
    await reference.merge_patch(DYNAMO_COMPONENT_DEPLOYMENTS, key, {"metadata": {"managedFields": entries}})


async def listed(kube: KubeClient, resource: Resource, namespace: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in await kube.list(resource, namespace)}


def generations(of: dict[str, dict[str, Any]]) -> dict[str, int]:
    return {name: each["metadata"]["generation"] for name, each in of.items()}


def templates(deployments: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {name: each["spec"]["template"] for name, each in deployments.items()}


async def until_pods_run(kube: KubeClient, namespace: str) -> None:
    async def check() -> bool:
        result = await listed(kube, DEPLOYMENTS, namespace)
        return bool(result) and all(
            each.get("status", {}).get("availableReplicas") == each["spec"]["replicas"] for each in result.values()
        )

    await eventually(check, "all pods run")


@pytest.mark.parametrize("slug", ["examples-backends-vllm-deploy-disagg", "examples-backends-sglang-deploy-agg-router"])
async def test_a_migration_replaces_no_pod(kube, namespace, control_plane, nats_server, slug):
    case = json.loads((CASES / f"{slug}.json").read_text())
    key = await create_like_the_reference(kube, case, namespace)
    await until_pods_run(kube, namespace)
    before, running = await listed(kube, DEPLOYMENTS, namespace), await pod_uids(kube, namespace)
    services = await listed(kube, SERVICES, namespace)
    components = generations(await listed(kube, DYNAMO_COMPONENT_DEPLOYMENTS, namespace))
    async with platform(configured(control_plane, nats_server)):
        stored = await until_state(kube, key, "successful")
        assert "rollingUpdate" not in stored["status"]
        after = await listed(kube, DEPLOYMENTS, namespace)
        assert {name: (each["metadata"]["uid"], each["metadata"]["generation"]) for name, each in after.items()} == {
            name: (each["metadata"]["uid"], each["metadata"]["generation"]) for name, each in before.items()
        }
        assert await pod_uids(kube, namespace) == running
        assert {name: each["metadata"]["uid"] for name, each in (await listed(kube, SERVICES, namespace)).items()} == {
            name: each["metadata"]["uid"] for name, each in services.items()
        }

        async def own() -> bool:
            result = (await listed(kube, DYNAMO_COMPONENT_DEPLOYMENTS, namespace)).values()
            return all(LAST_APPLIED_GENERATION not in each["metadata"]["annotations"] for each in result)

        await eventually(own, "the platform manages the reference's objects")
        # No write loses a field of a spec, not even for a moment: the component would be rendered without it.
        assert generations(await listed(kube, DYNAMO_COMPONENT_DEPLOYMENTS, namespace)) == components

        # Scaling keeps the generation and its pods.
        spec = stored["spec"]["components"]
        workers = [each for each in spec if each.get("type") not in ("frontend", None)]
        workers[0]["replicas"] = workers[0].get("replicas", 1) + 1
        await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": spec}})
        await until_state(kube, key, "successful")
        await until_pods_run(kube, namespace)
        scaled = await listed(kube, DEPLOYMENTS, namespace)
        assert templates(scaled) == templates(after)
        assert await pod_uids(kube, namespace) > running

        # A change creates a new generation, and the adopted one is deleted.
        for each in workers:
            each["podTemplate"]["spec"]["containers"][0]["image"] = "nvcr.io/nvidia/ai-dynamo/runtime:next"
        await kube.merge_patch(DYNAMO_GRAPH_DEPLOYMENTS, key, {"spec": {"components": spec}})
        done = await until_state(kube, key, "successful")
        assert done["status"]["rollingUpdate"]["phase"] == "Completed"

        async def old_is_gone() -> bool:
            result = await listed(kube, DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
            return not any(name.endswith(HASH) for name in result)

        await eventually(old_is_gone, "the adopted generation is deleted despite the reference's finalizer")

        await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
        await eventually(
            lambda: gone(kube, DYNAMO_GRAPH_DEPLOYMENTS, key), "the graph is deleted despite its finalizer"
        )


async def test_fields_of_the_reference_that_are_no_longer_desired_are_removed(
    kube, namespace, control_plane, nats_server
):
    """As if the platform had written it: a pod label that server-side apply would leave to its first manager."""
    case = json.loads((CASES / "examples-backends-vllm-deploy-v1beta1-agg.json").read_text())
    key = await create_like_the_reference(kube, case, namespace)
    front = ObjectKey(namespace, f"{key.name}-frontend")

    async def written_as_a_whole() -> bool:
        observed = await kube.get(DEPLOYMENTS, front)
        observed["spec"]["template"]["metadata"]["labels"]["once"] = "desired"
        observed["spec"]["template"]["spec"]["nodeSelector"] = {"type": "kwok"}
        try:
            await kube.acting_as("manager").replace(DEPLOYMENTS, observed)
        except Conflict:
            # The Deployment controller wrote its status meanwhile.
            return False
        return True

    await eventually(written_as_a_whole, "the object is written like the reference's")
    async with platform(configured(control_plane, nats_server)):
        await until_state(kube, key, "successful")

        async def check() -> bool:
            template = (await kube.get(DEPLOYMENTS, front))["spec"]["template"]
            return "once" not in template["metadata"]["labels"] and not template["spec"].get("nodeSelector")

        await eventually(check, "label and node selector are removed")
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
        await eventually(lambda: gone(kube, DYNAMO_GRAPH_DEPLOYMENTS, key), "the graph is deleted")


@pytest.mark.parametrize(
    "slug", ["examples-backends-vllm-deploy-v1beta1-disagg", "examples-backends-sglang-deploy-disagg-multinode"]
)
async def test_a_set_of_grove_is_adopted_unchanged(kube, namespace, control_plane, nats_server, slug):
    """Grove rolls a set whenever any field changes."""
    case = json.loads((GROVE_CASES / f"{slug}.json").read_text())
    async with grove_definitions(kube):
        key = await create_like_the_reference(kube, case, namespace)
        (before,) = (await listed(kube, POD_CLIQUE_SETS, namespace)).values()
        services = await listed(kube, SERVICES, namespace)
        async with platform(configured(control_plane, nats_server)):

            async def own() -> dict[str, Any] | None:
                (result,) = (await listed(kube, POD_CLIQUE_SETS, namespace)).values()
                return None if LAST_APPLIED_GENERATION in result["metadata"]["annotations"] else result

            after = await eventually(own, "the platform manages the set")
            assert after["spec"] == before["spec"]
            assert after["metadata"]["generation"] == before["metadata"]["generation"]
            assert after["metadata"]["uid"] == before["metadata"]["uid"]
            await until_state(kube, key, "pending")
            now = await listed(kube, SERVICES, namespace)
            assert {name: each["metadata"]["uid"] for name, each in now.items()} == {
                name: each["metadata"]["uid"] for name, each in services.items()
            }
            assert not await listed(kube, DYNAMO_COMPONENT_DEPLOYMENTS, namespace)
            await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, key)
            await eventually(lambda: gone(kube, DYNAMO_GRAPH_DEPLOYMENTS, key), "the graph is deleted")
