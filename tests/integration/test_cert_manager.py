"""Certificates of the real cert-manager: its controllers fill the Secret, its cainjector says whom to trust."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dynamo_admission.tls import open_certificates
from dynamo_admission.tls.given import GivenCertificates
from dynamo_devcluster import ControlPlane, Programs, ProgramUnavailableError
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient

from .certificates import NAMES, SECRET, calling, kubelet, settings, webhook
from .certmanager import BUILT_WITHIN, CERTIFICATES, ISSUERS, cert_manager, certificate, issuer, renew
from .platform import eventually


@pytest.fixture
async def running(
    programs: Programs, control_plane: ControlPlane, kube: KubeClient, tmp_path: Path
) -> AsyncIterator[None]:
    try:
        program = await programs.obtain("cert-manager")
    except ProgramUnavailableError as error:
        pytest.skip(str(error))
    async with cert_manager(program, control_plane.kubeconfig, kube, tmp_path / "cert-manager.log"):
        yield


@pytest.mark.timeout(BUILT_WITHIN + 180)
async def test_cert_manager_renews_and_no_call_is_refused(
    running: None, kube: KubeClient, namespace: str, tmp_path: Path
) -> None:
    # An authority that outlives the certificates, as docs/certificates.md asks for.
    await kube.create(ISSUERS, issuer(namespace, "root", selfSigned={}))
    root = {"isCA": True, "commonName": "the cluster's", "duration": "8760h"}
    await kube.create(CERTIFICATES, certificate(namespace, "authority", "root", **root))
    await kube.create(ISSUERS, issuer(namespace, "cluster", ca={"secretName": "authority"}))
    serving = {"dnsNames": [NAMES[1]], "ipAddresses": [NAMES[0]], "duration": "2160h"}
    await kube.create(CERTIFICATES, certificate(namespace, SECRET, "cluster", **serving))

    folder, key = tmp_path / "mounted", ObjectKey(namespace, SECRET)
    async with kubelet(kube, key, folder):
        quick = settings(namespace, "cert-manager", folder, caValidity="60s", certificateValidity="30s")
        certificates = await open_certificates(quick, kube, NAMES)
        assert isinstance(certificates, GivenCertificates)
        assert certificates.bundle == b""
        assert certificates.inject_from == f"{namespace}/{SECRET}"
        async with webhook(kube, namespace, certificates) as hook:
            keeping = asyncio.create_task(certificates.keep(lambda: hook.register(certificates)))
            await eventually(hook.injected, "cainjector writes the authority", 60)
            assert await hook.injected() == (folder / "ca.crt").read_bytes()
            first, context = certificates.serving, certificates.context
            async with calling(hook):
                await renew(kube, key)
                await eventually(
                    lambda: certificates.serving != first, "cert-manager renews, and what it made is served", 60
                )
                calls = hook.calls
                await eventually(lambda: hook.calls > calls + 10, "the API server goes on asking")
            keeping.cancel()
            assert certificates.context is context
