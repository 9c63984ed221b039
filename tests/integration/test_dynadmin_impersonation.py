"""The API server's audit log of dynadmin's requests, with constrained impersonation (KEP-5284).

With the chart's rules dynadmin can act as users only in its own requests.
"""

import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_dynadmin import rights as dynadmin_rights
from dynamo_shared.api.resources import DYNAMO_MODELS, NAMESPACES, SECRETS, ObjectKey
from dynamo_shared.kube import Forbidden, Identity, KubeClient
from dynamo_watcher.rights import RIGHTS as WATCHER

from tests.building.control_plane import WITHOUT_CONTROLLERS, prepared
from tools.generate.charts.rights import rules

from .dynadmin import EVERYTHING, WATCHING, account, cluster_wide, dynadmin, may
from .oidc_issuer import CLIENT, OidcIssuer
from .platform import eventually

TEAM = "team"
READS_SECRETS = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
ANN = Identity("oidc:ann", groups=("oidc:dev",))


@pytest.fixture(scope="module")
async def constrained(
    programs: Programs, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[tuple[ControlPlane, KubeClient, Path]]:
    """A control plane that constrains impersonation, its administrator, and the folder of its audit log."""
    folder = tmp_path_factory.mktemp("audit")
    options = await prepared(
        programs,
        **WITHOUT_CONTROLLERS,
        audit_folder=folder,
        api_server_arguments=("--feature-gates=ConstrainedImpersonation=true",),
    )
    async with (
        ControlPlane(options, programs) as plane,
        await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as kube,
    ):
        yield plane, kube, folder


def as_ann(kube: KubeClient) -> KubeClient:
    """A client that impersonates the user."""
    return kube.for_identity(ANN, request=str(uuid.uuid4()), field_manager="dynamo-tests")


async def kubeconfig_of(kube: KubeClient, plane: ControlPlane, folder: Path) -> Path:
    """The kubeconfig of a service account with the chart's rules for dynadmin, and those for the watcher next to it."""
    held = [each for each in dynadmin_rights.RIGHTS if each.part != dynadmin_rights.UNCONSTRAINED]
    token = await account(kube, TEAM, "dynadmin")
    await cluster_wide(kube, TEAM, "dynadmin", *rules([*held, *WATCHER]))
    document: dict[str, Any] = json.loads(plane.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    file = folder / "kubeconfig"
    file.write_text(json.dumps(document))
    return file


@pytest.mark.timeout(180)
async def test_users_are_impersonated_only_in_requests_of_dynadmin(
    constrained: tuple[ControlPlane, KubeClient, Path], nats_server: NatsServer, tmp_path: Path
) -> None:
    plane, kube, audit = constrained
    async with OidcIssuer().serving() as issuer:
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        file = await kubeconfig_of(kube, plane, tmp_path)
        await may(kube, TEAM, "ann", {"kind": "User", "name": ANN.user}, READS_SECRETS)
        oidc = {
            "OIDC__ISSUER": issuer.url,
            "OIDC__AUDIENCE": CLIENT,
            "OIDC__USERNAME_PREFIX": "oidc:",
            "OIDC__GROUPS_PREFIX": "oidc:",
        }
        async with dynadmin(file, nats_server.url, **oidc) as api:
            many = f"/api/v1/namespaces/{TEAM}/models"
            # A service account acts with its whole identity, as everywhere.
            for name, token in (("m", issuer.token()), ("n", await account(kube, TEAM, "owner", EVERYTHING, WATCHING))):
                api.token = token
                sent = {"metadata": {"name": name}, "spec": {"modelName": "m", "baseModelName": "b"}}
                created = await api("POST", many, sent)
                assert created.status == 201, created.content
                changed = {"spec": {"modelName": "other"}}
                merge = {"If_Match": "*", "Content_Type": "application/merge-patch+json"}
                assert (await api("PATCH", f"{many}/{name}", changed, **merge)).status == 200
                assert (await api("GET", f"{many}/{name}")).json["spec"]["modelName"] == "other"
                assert (await api("DELETE", f"{many}/{name}", If_Match="*")).status == 204
        metadata = {"name": "c", "namespace": TEAM}
        await kube.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
        key = ObjectKey(TEAM, "c")
        assert await as_ann(kube).get(SECRETS, key), "the user may"
        async with await KubeClient.open(kubeconfig=file, field_manager="dynamo-tests") as own:
            with pytest.raises(Forbidden, match="impersonate"):
                await as_ann(own).get(SECRETS, key)
        result = await eventually(lambda: constraints(audit, "oidc:ann"), "the audit's lines")
        assert result == {"impersonate:user-info"}


def constraints(folder: Path, user: str) -> set[str]:
    """The rules by which the API server let dynadmin act as a user in requests for models."""
    results = set()
    for file in folder.glob("audit-*.jsonl"):
        for line in file.read_text().splitlines():
            event = json.loads(line) if line.endswith("}") else {}
            about, acting_as = event.get("objectRef") or {}, event.get("impersonatedUser") or {}
            if about.get("resource") == DYNAMO_MODELS.plural and acting_as.get("username") == user:
                results.add((event.get("authenticationMetadata") or {}).get("impersonationConstraint", ""))
    return results


async def test_the_audit_log_has_the_caller_and_the_id_of_the_request(
    constrained: tuple[ControlPlane, KubeClient, Path], nats_server: NatsServer
) -> None:
    plane, kube, audit = constrained
    async with dynadmin(plane.kubeconfig, nats_server.url) as api:
        await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "audited"}})
        api.token = await account(kube, "audited", "owner", EVERYTHING)
        made = {"metadata": {"name": "m"}, "spec": {"modelName": "m", "baseModelName": "b"}}
        given = str(uuid.uuid4())
        created = await api("POST", "/api/v1/namespaces/audited/models", made, X_Request_ID=given)
        assert (created.status, created.headers["X-Request-ID"]) == (201, given)
        refused = await api("GET", "/api/v1/namespaces/kube-system/models/m", X_Request_ID="not an id")
        chosen = refused.headers["X-Request-ID"]
        assert refused.json["instance"] == f"urn:uuid:{chosen}"
        assert uuid.UUID(chosen)
        expected = {
            given: ("create", "system:serviceaccount:audited:owner", 201),
            chosen: ("get", "system:serviceaccount:audited:owner", 403),
        }
        await eventually(lambda: logged(audit, expected), "the audit's lines", where=lambda each: each == expected)


def logged(folder: Path, expected: Any) -> dict[str, tuple[str, str, int]]:
    """Verb, impersonated user and status of the requests with these ids, from the API server's audit log."""
    results = {}
    for file in folder.glob("audit-*.jsonl"):
        for line in file.read_text().splitlines():
            if not line.endswith("}"):
                continue
            event = json.loads(line)
            if event["auditID"] in expected and event["stage"] == "ResponseComplete":
                user = event["impersonatedUser"]["username"]
                results[event["auditID"]] = (event["verb"], user, event["responseStatus"]["code"])
    return results
