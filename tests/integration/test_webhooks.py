"""The registration of the webhooks on a real API server, and requests while replicas start and stop."""

import asyncio
import base64
import contextlib
import copy
import json
import time
from collections.abc import AsyncIterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_admission.app import FIELD_MANAGER
from dynamo_admission.registration import INJECT_FROM
from dynamo_admission.tls import pki
from dynamo_ctl import webhooks
from dynamo_ctl.commands.bootstrap.webhook_check import check
from dynamo_ctl.commands.crds.definitions import install_definitions
from dynamo_ctl.errors import CtlError
from dynamo_devcluster import free_port
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.probe import LocalHttp
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    CLUSTER_ROLES,
    CUSTOM_RESOURCE_DEFINITIONS,
    DYNAMO_COMPONENT_DEPLOYMENTS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds
from dynamo_shared.kube.errors import KubeError, NotFound
from dynamo_shared.x509 import make_authority

from tests.stage.balancer import balanced

from .admission import Admission, admission_platform, bare_control_plane, until_called
from .platform import eventually
from .test_admission import ALPHA, BETA, alpha, beta

CRD = ObjectKey("", f"{BETA.plural}.{BETA.group}")
CONFIGURATION = ObjectKey("", webhooks.CONFIGURATION)
QUICK: dict[str, Any] = {"PLATFORM__ADMISSION__CHECK": "0.2s", "PLATFORM__ADMISSION__REFRESH": "0.2s"}


@pytest.fixture(scope="module")
async def plane(programs) -> AsyncIterator[ControlPlane]:
    """A control plane whose webhooks these tests may break."""
    async with bare_control_plane(programs) as plane:
        yield plane


@pytest.fixture(scope="module")
async def kube(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as client:
        yield client


async def figure(admission: Admission, name: str) -> float:
    """The sum of a metric over its labels."""
    _, body = await LocalHttp(admission.metrics_port).request("GET", "/metrics")
    lines = [line for line in body.decode().splitlines() if line.startswith((f"{name}{{", f"{name} "))]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


async def requests_that_write(admission: Admission) -> int:
    """The number of requests of the service that would change an object."""
    _, body = await LocalHttp(admission.metrics_port).request("GET", "/metrics")
    lines = [line for line in body.decode().splitlines() if line.startswith("dynamo_platform_kube_requests_total{")]
    return sum(int(float(line.rpartition(" ")[2])) for line in lines if 'method="GET"' not in line)


async def test_configurations_are_owned_by_their_cluster_role_even_after_it_is_recreated(plane, kube):
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "owner"}}

    async def owned(resource, uid: str) -> bool:
        observed = await kube.get(resource, CONFIGURATION)
        return [each["uid"] for each in observed["metadata"].get("ownerReferences", ())] == [uid]

    first = await kube.create(CLUSTER_ROLES, role)
    async with admission_platform(plane, **QUICK, PLATFORM__ADMISSION__OWNER="owner"):
        for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
            assert await owned(resource, first["metadata"]["uid"])
        await kube.delete(CLUSTER_ROLES, ObjectKey("", "owner"))
        second = await kube.create(CLUSTER_ROLES, role)
        for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
            await eventually(partial(owned, resource, second["metadata"]["uid"]), "the new owner")


async def test_the_check_of_an_installation_passes_with_the_webhooks_and_explains_failures_without_them(plane, kube):
    async with admission_platform(plane, **QUICK):
        await check("default", 30, plane.kubeconfig, None)
    await says_of_an_installation(plane, "the webhooks do not answer: ")
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        await kube.delete(resource, CONFIGURATION)
    await says_of_an_installation(plane, "the webhooks accepted the invalid graph 0-dynamo-webhook-check")


async def says_of_an_installation(plane: ControlPlane, words: str) -> None:
    """The check of an installation ends with these words; it gets more time if a second was too short."""
    for within in (1, 5, 25):
        with pytest.raises(CtlError) as refused:
            await check("default", within, plane.kubeconfig, None)
        if str(refused.value).startswith(f"after {within} s: {words}"):
            return
    pytest.fail(str(refused.value))


async def test_removed_or_changed_registrations_are_repaired(plane, kube):
    async with admission_platform(plane, **QUICK) as admission:
        right = await kube.get(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
        await kube.delete(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
        changed = await kube.get(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
        broken = copy.deepcopy(changed)
        broken["webhooks"][0]["failurePolicy"] = "Ignore"
        await kube.replace(VALIDATING_WEBHOOK_CONFIGURATIONS, broken)
        await kube.merge_patch(
            CUSTOM_RESOURCE_DEFINITIONS, CRD, {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        )

        async def repaired() -> bool:
            mutating = await kube.get(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
            validating = await kube.get(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
            crd = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
            return (
                mutating["webhooks"] == right["webhooks"]
                and validating["webhooks"] == changed["webhooks"]
                and crd["spec"]["conversion"]["strategy"] == "Webhook"
            )

        async def read() -> bool:
            with contextlib.suppress(NotFound):
                return await repaired()
            return False

        await eventually(read, "registration repaired")
        assert await figure(admission, "dynamo_admission_registration_repairs_total") == 3


async def test_installing_the_definitions_again_keeps_the_conversion(plane, kube):
    async with admission_platform(plane):
        before = (await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD))["spec"]["conversion"]
        await install_definitions(plane.kubeconfig)
        crd = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        assert crd["spec"]["conversion"] == before
        owners = [
            entry for entry in crd["metadata"]["managedFields"] if "f:conversion" in entry["fieldsV1"].get("f:spec", {})
        ]
        assert {entry["manager"] for entry in owners} == {FIELD_MANAGER}


async def test_a_platform_of_one_namespace_reviews_only_that_one_and_does_not_convert(plane, kube):
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    async with (
        admission_platform(plane, **QUICK) as whole,
        admission_platform(plane, NAMESPACE__RESTRICTED="team", **QUICK) as one,
    ):
        crd = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
        assert crd["spec"]["conversion"]["webhook"]["clientConfig"]["url"] == f"{whole.url}/convert"
        names = {item["metadata"]["name"] for item in await kube.list(VALIDATING_WEBHOOK_CONFIGURATIONS)}
        assert names == {"dynamo-admission", "dynamo-admission-team"}

        async def asked() -> bool:
            before = await figure(one, "dynamo_operator_webhook_requests_total")
            await kube.create(BETA, beta("team", "first"), dry_run=True)
            return await figure(one, "dynamo_operator_webhook_requests_total") == before + 2

        # It learns of the second registration by its own watch.
        await eventually(asked, "the API server calls both")
        before = await figure(one, "dynamo_operator_webhook_requests_total")
        await kube.create(BETA, beta("default", "elsewhere"), dry_run=True)
        assert await figure(one, "dynamo_operator_webhook_requests_total") == before
        await kube.create(BETA, beta("team", "here"), dry_run=True)
        assert await figure(one, "dynamo_operator_webhook_requests_total") == before + 2
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        await kube.delete(resource, ObjectKey("", "dynamo-admission-team"))


async def test_a_restart_under_another_address_updates_the_registration(plane, kube):
    async with admission_platform(plane) as first:
        assert first.url in str(await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD))
    with pytest.raises(KubeError):
        await kube.create(BETA, beta("default", "no one-answers"))
    async with admission_platform(plane) as second:
        assert second.url != first.url
        await kube.create(ALPHA, alpha("default", "after-the-restart"))
        assert (await kube.get(BETA, ObjectKey("default", "after-the-restart")))["spec"]["components"]


async def test_a_restart_without_changes_writes_nothing(plane, kube):
    port = free_port()

    async def versions() -> list[str]:
        observed = [
            await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD),
            await kube.get(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION),
            await kube.get(VALIDATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION),
        ]
        return [each["metadata"]["resourceVersion"] for each in observed]

    async with admission_platform(plane, port=port) as first:
        assert await requests_that_write(first) > 0
        before = await versions()
    async with admission_platform(plane, port=port) as second:
        assert await requests_that_write(second) == 0
        assert await versions() == before


async def test_a_restart_removes_fields_that_an_earlier_version_applied(plane, kube):
    port = free_port()
    async with admission_platform(plane, port=port):
        right = await kube.get(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
    trusted = base64.b64decode(right["webhooks"][0]["clientConfig"]["caBundle"])
    older = {
        "apiVersion": right["apiVersion"],
        "kind": right["kind"],
        "metadata": {
            "name": right["metadata"]["name"],
            "annotations": {INJECT_FROM: "a/certificate"},
            "labels": right["metadata"]["labels"],
        },
        "webhooks": copy.deepcopy(right["webhooks"]),
    }
    another, _ = make_authority(time.time(), validity=3600, name="ca")
    older["webhooks"][0]["clientConfig"]["caBundle"] = base64.b64encode(trusted + pki.pem_of(another)).decode()
    await kube.acting_as(FIELD_MANAGER).apply(MUTATING_WEBHOOK_CONFIGURATIONS, older)
    async with admission_platform(plane, port=port):
        observed = await kube.get(MUTATING_WEBHOOK_CONFIGURATIONS, CONFIGURATION)
    assert observed["webhooks"] == right["webhooks"]
    assert INJECT_FROM not in observed["metadata"].get("annotations", {})


async def test_component_deployments_are_reviewed_unless_the_platform_writes_them(plane, kube):
    """The requesting user decides, not what an object or a request claims."""
    builder = "system:serviceaccount:dynamo:builder"
    kubeconfig = plane.user_kubeconfig(builder, ("system:masters",))

    picker = {"plugins": [{"type": "queue-scorer"}], "schedulingProfiles": [{"name": "default", "plugins": []}]}

    def invalid(name: str) -> KubeObject:
        """An object that fits the schema and breaks a rule."""
        metadata = {"name": name, "namespace": "default", "labels": {"app.kubernetes.io/managed-by": "dynamo"}}
        spec = {"name": "one", "type": "epp", "replicas": 3, "eppConfig": {"config": picker}}
        return {**DYNAMO_COMPONENT_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec}

    operators = json.dumps([builder])
    async with (
        await KubeClient.open(kubeconfig=kubeconfig, field_manager="dynamo-pod-builder") as platform,
        admission_platform(plane, PLATFORM__ADMISSION__OPERATORS=operators) as admission,
    ):
        tenant = kube.acting_as("dynamo-pod-builder")
        with pytest.raises(KubeError, match="must be 1 for an endpoint picker"):
            await tenant.create(DYNAMO_COMPONENT_DEPLOYMENTS, invalid("tenants"))
        reviews = await figure(admission, "dynamo_operator_webhook_requests_total")
        created = await platform.create(DYNAMO_COMPONENT_DEPLOYMENTS, invalid("platforms"))
        assert await figure(admission, "dynamo_operator_webhook_requests_total") == reviews
        # Updates of it are reviewed, and so are other kinds that the platform creates.
        more = {**invalid("platforms"), "spec": {**created["spec"], "type": "epp"}}
        await platform.apply(
            DYNAMO_COMPONENT_DEPLOYMENTS, {**more, "metadata": {**more["metadata"], "labels": {"a": "b"}}}
        )
        assert await figure(admission, "dynamo_operator_webhook_requests_total") == reviews + 2
        with pytest.raises(KubeError, match="must be 1 for an endpoint picker"):
            await platform.create(BETA, beta("default", components=[invalid("one")["spec"]]))
        await platform.delete(DYNAMO_COMPONENT_DEPLOYMENTS, ObjectKey("default", "platforms"))


async def test_objects_that_are_stored_in_v1alpha1_can_be_read_in_both_versions(programs):
    """A cluster with an earlier release: its objects stay unchanged in etcd until they are written."""
    async with bare_control_plane(programs, prepare=_install_the_past, data=None) as plane:
        kubeconfig = plane.kubeconfig
        async with await KubeClient.open(kubeconfig=kubeconfig, field_manager="dynamo-tests") as kube:
            written = alpha("default")
            await kube.create(ALPHA, written)
            await install_definitions(plane.kubeconfig)
            crd = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, CRD)
            assert crd["status"]["storedVersions"] == ["v1alpha1", "v1beta1"]
            async with admission_platform(plane):
                key = ObjectKey("default", "chat")
                in_alpha, in_beta = await kube.get(ALPHA, key), await kube.get(BETA, key)
                assert in_alpha["spec"] == written["spec"]
                names = {component["name"]: component for component in in_beta["spec"]["components"]}
                assert names["Decode"]["type"] == "decode"
                assert [item["metadata"]["name"] for item in await kube.list(BETA)] == ["chat"]
                # Writing it back stores it in the current version.
                await kube.replace(BETA, in_beta)
                assert (await kube.get(ALPHA, key))["spec"] == written["spec"]


async def test_a_replica_that_shuts_down_loses_no_request(plane, kube):
    ports = free_port(), free_port()
    async with contextlib.AsyncExitStack() as stack:
        balancer = await stack.enter_async_context(balanced())
        # Both replicas are registered under the balancer's address, and each listens at its own. The balancer probes
        # each twice a second for readiness; a busy machine answers late.
        shared: dict[str, Any] = {"url": balancer.url}
        going = contextlib.AsyncExitStack()
        await stack.enter_async_context(going)
        first = await going.enter_async_context(
            admission_platform(plane, port=ports[0], PLATFORM__ADMISSION__DRAIN="5s", **shared)
        )
        second = await stack.enter_async_context(admission_platform(plane, port=ports[1], **shared))
        assert first.running is not None
        assert second.running is not None
        replicas: Any = ((first.running, first.port), (second.running, second.port))
        balancer.backends = [SimpleNamespace(health_port=up.health_port, webhook_port=port) for up, port in replicas]
        await until_called(plane.kubeconfig)
        stop, answered = asyncio.Event(), [0]

        async def load(number: int) -> None:
            while not stop.is_set():
                await kube.create(ALPHA, alpha("default", f"load-{number}"), dry_run=True)
                answered[0] += 1

        loads = [asyncio.create_task(load(number)) for number in range(8)]
        await eventually(lambda: _enough(answered, 50), "requests flow")
        before = answered[0]
        await going.aclose()
        assert [each.webhook_port for each in balancer.ready] == [ports[1]]
        await eventually(lambda: _enough(answered, before + 100), "requests continue")
        stop.set()
        await asyncio.gather(*loads)
        assert await figure(second, "dynamo_operator_webhook_requests_total") > 0


async def _enough(answered: list[int], expected: int) -> bool:
    return answered[0] >= expected


async def _install_the_past(kubeconfig: Any) -> None:
    """Install the CRD of graphs from the time when v1alpha1 was the only version."""
    manifest = next(each for each in crd_manifests() if each["spec"]["names"]["kind"] == DYNAMO_GRAPH_DEPLOYMENTS.kind)
    versions = [version for version in manifest["spec"]["versions"] if version["name"] == "v1alpha1"]
    past = {**manifest, "spec": {**manifest["spec"], "versions": [{**versions[0], "storage": True}]}}
    del past["spec"]["conversion"]
    async with await KubeClient.open(kubeconfig=kubeconfig, field_manager="an-earlier-release") as client:
        await install_crds(client, [past])
