"""A webhook that allows every request of the real API server: each created object is one TLS handshake."""

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from dynamo_admission.tls import Certificates
from dynamo_shared.api.resources import CONFIG_MAPS, SECRETS, VALIDATING_WEBHOOK_CONFIGURATIONS, ObjectKey
from dynamo_shared.kube import KubeClient, NotFound
from dynamo_shared.runtime import Settings
from dynamo_shared.runtime.endpoints import serving

from tests.building.objects import object_of
from tests.building.tasks import in_background

from .platform import eventually

NAMES = ("127.0.0.1", "dynamo-webhook.dynamo-system.svc")
SECRET = "webhook-server-cert"
#: Seconds between two calls. A step of a rotation lasts a second or more, so dozens of calls fall into it.
PAUSE = 0.02
_numbers = itertools.count(1)


@dataclass
class Webhook:
    """The registration for one namespace's ConfigMaps."""

    kube: KubeClient
    namespace: str
    port: int = 0
    calls: int = 0

    @property
    def name(self) -> str:
        return f"certificates-{self.namespace}"

    async def register(self, certificates: Certificates) -> None:
        """As the admission service does."""
        bundle = base64.b64encode(certificates.bundle).decode()
        client = {"url": f"https://127.0.0.1:{self.port}/validate", "caBundle": bundle}
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        hook = {
            "name": "certificates.tests.dynamo",
            "clientConfig": client,
            "rules": [{**rule, "scope": "Namespaced"}],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": 5,
            "admissionReviewVersions": ["v1"],
        }
        manifest = object_of(VALIDATING_WEBHOOK_CONFIGURATIONS, self.name, "", webhooks=[hook])
        await self.kube.apply(VALIDATING_WEBHOOK_CONFIGURATIONS, manifest)

    async def asked(self) -> bool:
        """Whether the API server knows the registration: this takes a moment. KubeError if it rejects the certificate."""
        before = self.calls
        await self.kube.create(CONFIG_MAPS, object_of(CONFIG_MAPS, f"each-{next(_numbers)}", self.namespace))
        return self.calls > before


@asynccontextmanager
async def webhook(kube: KubeClient, namespace: str, certificates: Certificates) -> AsyncIterator[Webhook]:
    """Serve with these certificates; the webhook is not registered yet."""
    hook = Webhook(kube, namespace)

    async def validate(request: web.Request) -> web.Response:
        hook.calls += 1
        review = await request.json()
        answer = {**review, "response": {"uid": review["request"]["uid"], "allowed": True}}
        # Each call needs its own handshake.
        return web.json_response(answer, headers={"Connection": "close"})

    app = web.Application()
    app.router.add_post("/validate", validate)
    async with serving(app, "127.0.0.1", 0, certificates.context) as hook.port:
        try:
            yield hook
        finally:
            await kube.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, ObjectKey("", hook.name))


def mount(folder: Path, data: dict[str, str]) -> None:
    """Write a Secret's data as kubelet mounts it: a new folder, and one link that is moved to it."""
    content = folder / f"..{next(_numbers)}"
    content.mkdir(parents=True)
    for name, text in data.items():
        (content / name).write_bytes(base64.b64decode(text))
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(Path("..data") / name)
    (folder / "..tmp").symlink_to(content.name)
    (folder / "..tmp").rename(folder / "..data")


def settings(namespace: str) -> Settings:
    server = {"certProvisionMode": "auto", "secretName": SECRET, "serviceName": "dynamo-webhook"}
    return Settings.model_validate({"server": {"webhook": server}, "platform": {"admission": {"namespace": namespace}}})


@asynccontextmanager
async def kubelet(kube: KubeClient, key: ObjectKey, folder: Path) -> AsyncIterator[None]:
    """Mount the Secret once it exists, and again when it changes."""
    mounted: str | None = None

    async def sync() -> bool:
        nonlocal mounted
        try:
            observed = await kube.get(SECRETS, key)
        except NotFound:
            return False
        if observed["metadata"]["resourceVersion"] != mounted and observed["data"].get("tls.crt"):
            mount(folder, observed["data"])
            mounted = observed["metadata"]["resourceVersion"]
        return mounted is not None

    async def go_on() -> None:
        while True:
            await sync()
            await asyncio.sleep(0.1)

    await eventually(sync, "cert-manager fills the Secret", 60)
    async with in_background(go_on()):
        yield
