"""A test request like the API server's, sent before the replica reports that it is ready.

It goes over TLS to the listener of this process, with the registered name and CAs. So a wrong certificate, bundle or
path shows here, and not in the first refused manifest of a user. It does not go through the Service, which has no
endpoint for a replica that is not ready.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import aiohttp
import msgspec
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.untrusted.addresses import in_url

from dynamo_admission.registration import CONVERT_PATH, Address, path_of
from dynamo_admission.review import Webhook
from dynamo_admission.wire import ADMISSION_API, ADMISSION_KIND, CONVERSION_API, CONVERSION_KIND

#: Time limit of each call. The API server waits as long (registration.TIMEOUT). Seconds.
WITHIN = 10.0
UID = "self-test"
NEW, OLD = DYNAMO_GRAPH_DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1")
GOOD = {
    **OLD.type_meta,
    "metadata": {"name": UID, "namespace": "default"},
    "spec": {"backendFramework": "vllm", "services": {"Frontend": {"componentType": "frontend", "replicas": 1}}},
}
BAD = {**GOOD, "spec": {**GOOD["spec"], "backendFramework": "none"}}


class SelfTestFailed(Exception):
    """Calls of the API server would fail; the message says why."""


@dataclass(frozen=True, slots=True)
class Listener:
    """The listener of this process, and the name that the API server verifies."""

    port: int
    address: Address
    host: str = "127.0.0.1"


async def self_test(listener: Listener, bundles: Iterable[bytes], headers: Mapping[str, str]) -> None:
    """Send a request with each registered bundle, and with headers that identify this process. Raises SelfTestFailed.

    An empty bundle means the system's CAs, like for the API server.
    """
    registered = list(dict.fromkeys(bundles))
    if not registered:
        raise SelfTestFailed("no webhook is registered")
    for bundle in registered:
        tls = trusting(bundle)
        await handshake(listener, tls)
        connector = aiohttp.TCPConnector(ssl=tls)
        timeout = aiohttp.ClientTimeout(total=WITHIN)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, headers=headers) as session:
            for webhook in (Webhook.MUTATE, Webhook.VALIDATE):
                accepted = await _ask(session, listener, path_of(webhook), _question(GOOD))
                if not accepted.get("allowed"):
                    raise SelfTestFailed(
                        f"/{webhook} refuses a valid graph: {accepted.get('status', {}).get('message')}"
                    )
                refused = await _ask(session, listener, path_of(webhook), _question(BAD))
                if refused.get("allowed") or "spec.backendFramework" not in refused.get("status", {}).get(
                    "message", ""
                ):
                    raise SelfTestFailed(f"/{webhook} accepts an invalid graph")
            converted = await _ask(session, listener, CONVERT_PATH, _conversion())
            objects = converted.get("convertedObjects") or [{}]
            if objects[0].get("apiVersion") != NEW.api_version:
                raise SelfTestFailed(f"{CONVERT_PATH} does not convert: {converted.get('result')}")


def trusting(bundle: bytes) -> ssl.SSLContext:
    """A TLS context that trusts only a PEM bundle. Raises SelfTestFailed."""
    try:
        return ssl.create_default_context(cadata=bundle.decode("ascii") if bundle else None)
    except (ssl.SSLError, ValueError) as error:
        raise SelfTestFailed(f"the registered authorities cannot be read: {error}") from error


async def handshake(listener: Listener, tls: ssl.SSLContext) -> None:
    """Check that the served certificate is trusted. Raises SelfTestFailed."""
    try:
        async with asyncio.timeout(WITHIN):
            _, writer = await asyncio.open_connection(
                listener.host, listener.port, ssl=tls, server_hostname=listener.address.host
            )
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError) as error:
        raise SelfTestFailed(f"connecting as {listener.address.host}: {error}") from error


async def _ask(session: aiohttp.ClientSession, listener: Listener, path: str, review: KubeObject) -> KubeObject:
    url = f"https://{in_url(listener.host)}:{listener.port}{path}"
    body, name = msgspec.json.encode(review), listener.address.host
    try:
        async with session.post(url, data=body, server_hostname=name) as answer:
            content = await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise SelfTestFailed(f"{path} as {name}: {error}") from error
    if answer.status != 200:
        raise SelfTestFailed(f"{path} answers {answer.status}: {content[:200].decode(errors='replace')}")
    response: KubeObject = msgspec.json.decode(content)["response"]
    return response


def _question(obj: KubeObject) -> KubeObject:
    request = {
        "uid": UID,
        "kind": {"group": OLD.group, "version": OLD.version, "kind": OLD.kind},
        "operation": "CREATE",
        "name": UID,
        "userInfo": {"username": UID},
        "dryRun": True,
        "object": obj,
    }
    return {"apiVersion": ADMISSION_API, "kind": ADMISSION_KIND, "request": request}


def _conversion() -> KubeObject:
    request = {"uid": UID, "desiredAPIVersion": NEW.api_version, "objects": [GOOD]}
    return {"apiVersion": CONVERSION_API, "kind": CONVERSION_KIND, "request": request}
