"""Dynadmin's REST API, as programs call it: with the token of a service account and that account's rights."""

from __future__ import annotations

from typing import Any

import aiohttp
from dynamo_shared.api.objects import KubeObject

from tests.e2e_platform.objects import NAMESPACE, RELEASE
from tests.e2e_platform.platform import GRAPHS, MOCKED, Platform

READER, STRANGER = "reader", "without-rights"
ANSWERS_WITHIN = 20.0


async def api(platform: Platform) -> None:
    """It answers a caller with the caller's rights, and nobody without a token."""
    with platform.held.check("dynadmin answers callers with their own rights: 200, 403, and 401 without a token"):
        await platform.cluster.apply(*_accounts())
        service = await platform.cluster.get("service", f"{RELEASE}-dynadmin", "--namespace", NAMESPACE)
        url = f"http://{service['spec']['clusterIP']}/api/v1/namespaces/{GRAPHS}/deployments"
        status, body = await _get(url, await _token(platform, READER))
        assert status == 200, body
        assert MOCKED in {each["metadata"]["name"] for each in body["items"]}
        assert (await _get(url, await _token(platform, STRANGER)))[0] == 403
        assert (await _get(url, ""))[0] == 401


async def _token(platform: Platform, account: str) -> str:
    return (await platform.cluster.kubectl("create", "token", account, "--namespace", GRAPHS)).strip()


async def _get(url: str, token: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=ANSWERS_WITHIN)
    async with aiohttp.ClientSession(timeout=timeout) as session, session.get(url, headers=headers) as answer:
        return answer.status, await answer.json(content_type=None)


def _accounts() -> list[KubeObject]:
    bound = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": READER, "namespace": GRAPHS},
        # Aggregated: the chart adds the platform's kinds to it.
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": READER, "namespace": GRAPHS}],
    }
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": GRAPHS}}
        for name in (READER, STRANGER)
    ]
    return [*accounts, bound]
