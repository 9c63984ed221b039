"""While certificates of the admission service rotate, webhooks and conversion keep answering, and it stays ready."""

import asyncio
import base64
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dynamo_ctl.webhooks import NAMESPACE
from dynamo_devcluster import ControlPlane, Programs, ProgramUnavailableError
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    SECRETS,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    ObjectKey,
)
from dynamo_shared.kube import AlreadyExists, KubeClient, NotFound, Unavailable

from .admission import Admission, admission_platform, bare_control_plane
from .certificates import NAMES, PAUSE, SECRET, kubelet
from .certmanager import BUILT_WITHIN, CERTIFICATES, ISSUERS, cert_manager, certificate, issuer, renew
from .platform import eventually

KEY = ObjectKey(NAMESPACE, SECRET)
ALPHA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")
CONFIGURATION = ObjectKey("", "dynamo-admission")
#: The steps of a rotation last twelfths of this.
QUICK: dict[str, Any] = {"PLATFORM__ADMISSION__CA_VALIDITY": "120s", "PLATFORM__ADMISSION__CERTIFICATE_VALIDITY": "60s"}


@pytest.fixture(scope="module")
async def plane(programs: Programs) -> AsyncIterator[ControlPlane]:
    async with bare_control_plane(programs) as plane:
        yield plane


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[KubeClient]:
    async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as client:
        try:
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            await client.create(NAMESPACES, namespace)
        except AlreadyExists:
            pass
        yield client


@contextlib.contextmanager
def ignoring_changes_of_the_definition() -> Iterator[None]:
    """Ignore that a changed definition ends requests to its old handler, before the API server calls any webhook.

    Any other error is raised.
    """
    try:
        yield
    except Unavailable as error:
        if "apiserver is shutting down" not in error.message:
            raise


@asynccontextmanager
async def writing(kube: KubeClient, admission: Admission) -> AsyncIterator[None]:
    """Write graphs in the old version while the block runs: each is defaulted, validated and converted."""
    ended = asyncio.Event()
    assert admission.running is not None
    health = admission.running.context.health

    async def write() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            name = f"graph-{number}"
            spec = {"services": {"Frontend": {"componentType": "frontend"}}}
            graph = {**ALPHA.type_meta, "metadata": {"namespace": "default", "name": name}, "spec": spec}
            with ignoring_changes_of_the_definition():
                await kube.create(ALPHA, graph)
            assert health.ready, health.report()
            with ignoring_changes_of_the_definition(), contextlib.suppress(NotFound):
                await kube.delete(ALPHA, ObjectKey("default", name))
            await asyncio.sleep(PAUSE)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(write())
        yield
        ended.set()


async def registered(kube: KubeClient) -> set[bytes]:
    """The CA bundles of all clients: both webhook configurations, and the conversion of a CRD."""
    clients = []
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        clients += [each["clientConfig"] for each in (await kube.get(resource, CONFIGURATION))["webhooks"]]
    crd = await kube.get(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", DYNAMO_GRAPH_DEPLOYMENTS.id))
    clients.append(crd["spec"]["conversion"]["webhook"]["clientConfig"])
    return {base64.b64decode(client.get("caBundle") or "") for client in clients}


async def served(admission: Admission) -> str:
    """The certificate that a new connection gets, PEM."""
    return (await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", admission.port))).strip()


async def test_the_authority_rotates_while_graphs_are_written(plane: ControlPlane, client: KubeClient) -> None:
    async with admission_platform(plane, **QUICK) as admission:
        (first,) = await registered(client)

        async def rotated() -> bool:
            bundles = await registered(client)
            (bundle,) = bundles if len(bundles) == 1 else (first,)
            return first not in bundles and bundle.count(b"BEGIN") == 1

        async with writing(client, admission):
            patch = {"metadata": {"annotations": {"nvidia.com/rotate-authority": "now"}}}
            await client.merge_patch(SECRETS, KEY, patch)
            await eventually(rotated, "only the new authority is registered everywhere", 120)


@pytest.mark.timeout(BUILT_WITHIN + 240)
async def test_cert_manager_renews_while_graphs_are_written(
    programs: Programs, plane: ControlPlane, client: KubeClient, tmp_path: Path
) -> None:
    try:
        program = await programs.obtain("cert-manager")
    except ProgramUnavailableError as error:
        pytest.skip(str(error))
    mounted = tmp_path / "mounted"
    given: dict[str, Any] = {
        "SERVER__WEBHOOK__CERT_PROVISION_MODE": "cert-manager",
        "SERVER__WEBHOOK__CERT_DIR": str(mounted),
    }
    async with cert_manager(program, plane.kubeconfig, client, tmp_path / "cert-manager.log"):
        await client.create(ISSUERS, issuer(NAMESPACE, "root", selfSigned={}))
        root = certificate(NAMESPACE, "authority", "root", isCA=True, commonName="the cluster's", duration="8760h")
        await client.create(CERTIFICATES, root)
        await client.create(ISSUERS, issuer(NAMESPACE, "cluster", ca={"secretName": "authority"}))
        serving = certificate(NAMESPACE, "webhook", "cluster", ipAddresses=[NAMES[0]], duration="2160h")
        await client.create(CERTIFICATES, serving)
        key = ObjectKey(NAMESPACE, "webhook")
        async with (
            kubelet(client, key, mounted),
            admission_platform(plane, PLATFORM__ADMISSION__CERTIFICATE="webhook", **given, **QUICK) as admission,
        ):
            authority = (mounted / "ca.crt").read_bytes()
            assert await registered(client) == {authority}, "by cainjector, everywhere"
            before = await served(admission)
            async with writing(client, admission):
                await renew(client, key)

                async def renewed() -> bool:
                    observed = await client.get(SECRETS, key)
                    made = base64.b64decode(observed["data"]["tls.crt"]).decode()
                    return before not in made and (await served(admission)) in made

                await eventually(renewed, "cert-manager renews, and the new certificate is served", 120)
            assert await registered(client) == {authority}
