"""If admission knows the API server's client certificate, it accepts reviews only from the API server."""

import json
import ssl
from base64 import b64decode
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from dynamo_devcluster import Programs, free_port
from dynamo_devcluster.certs import CertificateAuthority, KeyPair
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.kube import Invalid, KubeClient, KubeError

from .admission import admission_platform, authorities, bare_control_plane
from .platform import graph

NAMES = json.dumps(["kube-apiserver"])


def webhook_client(folder: Path, pair: KeyPair, port: int) -> Path:
    """An AdmissionConfiguration with which the API server presents a certificate to webhooks at a port."""
    user = {"client-certificate": str(pair.certificate), "client-key": str(pair.key)}
    config = {"apiVersion": "v1", "kind": "Config", "users": [{"name": f"127.0.0.1:{port}", "user": user}]}
    (folder / "webhooks.yaml").write_text(yaml.safe_dump(config))
    webhook = {
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "WebhookAdmissionConfiguration",
        "kubeConfigFile": str(folder / "webhooks.yaml"),
    }
    plugins = [{"name": f"{kind}AdmissionWebhook", "configuration": webhook} for kind in ("Mutating", "Validating")]
    file = folder / "admission.yaml"
    file.write_text(
        yaml.safe_dump(
            {"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration", "plugins": plugins}
        )
    )
    return file


async def answer_of(url: str, bundle: bytes, pair: KeyPair | None, body: Any) -> tuple[int, str]:
    """The answer to a client with or without a certificate."""
    tls = ssl.create_default_context(cadata=bundle.decode())
    if pair is not None:
        tls.load_cert_chain(pair.certificate, pair.key)
    async with aiohttp.ClientSession() as session, session.post(url, json=body, ssl=tls) as answer:
        return answer.status, await answer.text()


async def test_only_the_api_server_may_send_reviews(programs: Programs, tmp_path: Path) -> None:
    port = free_port()
    trusted, foreign = CertificateAuthority(tmp_path / "trusted"), CertificateAuthority(tmp_path / "foreign")
    api_server = trusted.client("api-server", "kube-apiserver")
    configured = webhook_client(tmp_path, api_server, port)
    async with (
        bare_control_plane(programs, api_server_arguments=(f"--admission-control-config-file={configured}",)) as plane,
        await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as kube,
    ):
        settings: dict[str, Any] = {"PLATFORM__ADMISSION__CLIENT_CA_FILE": str(trusted.certificate)}
        async with admission_platform(plane, port=port, PLATFORM__ADMISSION__CLIENT_NAMES=NAMES, **settings) as up:
            # Mutate, validate, and convert: the API server is accepted, and so is the service's own self-test.
            await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("default", "good"))
            with pytest.raises(Invalid, match="backendFramework"):
                await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("default", "bad", backendFramework="none"))
            assert await kube.list(DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"), "default")

            bundle = b64decode(await authorities(kube))
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}}
            for path in ("validate", "mutate"):
                url = f"{up.url}/{path}"
                status, text = await answer_of(url, bundle, None, review)
                assert (status, "client certificate" in text) == (403, True)
                status, text = await answer_of(url, bundle, trusted.client("someone", "someone"), review)
                assert (status, "clientNames" in text) == (403, True)
                with pytest.raises(aiohttp.ClientError):
                    await answer_of(url, bundle, foreign.client("api-server", "kube-apiserver"), review)
                assert (await answer_of(url, bundle, api_server, review))[0] not in (401, 403)
        others: dict[str, Any] = {"PLATFORM__ADMISSION__CLIENT_NAMES": '["another"]', **settings}
        async with admission_platform(plane, port=port, called=False, **others):
            with pytest.raises(KubeError, match="clientNames"):
                await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph("default", "late"))
