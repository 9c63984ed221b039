"""Dynadmin's REST API as programs call it: with a service account's token and that account's rights.

One of them chats with the graph of the real frontend and mocker, as the page does.
"""

from typing import Any

import aiohttp
from dynamo_shared.api.objects import KubeObject
from yarl import URL

from tests.e2e.graph import MODEL_NAME
from tests.e2e_platform.objects import NAMESPACE, RELEASE
from tests.e2e_platform.platform import GRAPHS, MOCKED, Platform

RBAC = "rbac.authorization.k8s.io"
READER, CHATTER, STRANGER = "reader", "chatter", "without-rights"
ANSWERS_WITHIN = 20.0
ASKED = {"messages": [{"role": "user", "content": "Which day is it?"}], "maxTokens": 8}


async def api(platform: Platform) -> None:
    """Dynadmin answers callers with their own rights, and rejects calls without a token."""
    with platform.held.check("dynadmin answers callers with their own rights: 200, 403, and 401 without a token"):
        await platform.cluster.apply(*_accounts())
        url = await _url(platform)
        status, body = await _call("GET", url, await _token(platform, READER))
        assert status == 200, body
        assert MOCKED in {each["metadata"]["name"] for each in body["items"]}
        assert (await _call("GET", url, await _token(platform, STRANGER)))[0] == 403
        assert (await _call("GET", url, ""))[0] == 401
    with platform.held.check("a chat through dynadmin is answered by the real frontend and mocker"):
        chat, token = f"{url}/{MOCKED}/chat", await _token(platform, CHATTER)
        status, body = await _call("GET", chat, token)
        assert (status, body.get("models")) == (200, [MODEL_NAME]), body
        status, body = await _call("POST", chat, token, ASKED)
        # The mocker's tokens have no text, so there is no time of a first word.
        assert (status, body.get("completionTokens"), body.get("finishReason")) == (200, 8, "length"), body
        assert body["promptTokens"] > 0, body
    with platform.held.check("a reader may not chat: 403"):
        status, body = await _call("POST", chat, await _token(platform, READER), ASKED)
        assert status == 403, body


async def _url(platform: Platform) -> str:
    """The URL of the namespace's graphs, at the Service's address."""
    service = await platform.cluster.get("service", f"{RELEASE}-dynadmin", "--namespace", NAMESPACE)
    return f"{URL.build(scheme='http', host=service['spec']['clusterIP'])}/api/v1/namespaces/{GRAPHS}/deployments"


async def _token(platform: Platform, account: str) -> str:
    return (await platform.cluster.kubectl("create", "token", account, "--namespace", GRAPHS)).strip()


async def _call(method: str, url: str, token: str, body: KubeObject | None = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=ANSWERS_WITHIN)
    async with (
        aiohttp.ClientSession(timeout=timeout) as session,
        session.request(method, url, headers=headers, json=body) as answer,
    ):
        return answer.status, await answer.json(content_type=None)


def _accounts() -> list[KubeObject]:
    # An aggregated role: the chart adds the platform's kinds to it.
    view = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
    proxy = {"apiGroup": RBAC, "kind": "Role", "name": CHATTER}
    chats = {"apiGroups": [""], "resources": ["services/proxy"], "verbs": ["get", "create"]}
    accounts = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": GRAPHS}}
        for name in (READER, CHATTER, STRANGER)
    ]
    return [
        *accounts,
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "Role",
            "metadata": {"name": CHATTER, "namespace": GRAPHS},
            "rules": [chats],
        },
        _bound("readers", view, READER, CHATTER),
        _bound("chatters", proxy, CHATTER),
    ]


def _bound(name: str, role: KubeObject, *accounts: str) -> KubeObject:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": GRAPHS},
        "roleRef": role,
        "subjects": [{"kind": "ServiceAccount", "name": each, "namespace": GRAPHS} for each in accounts],
    }
