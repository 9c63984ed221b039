"""The environment of the checks: the local platform, two users, and a separate dynadmin that can be killed."""

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from dynamo_ctl.commands.demo.local import local_platform
from dynamo_ctl.page_account import page_token
from dynamo_devcluster import ManagedProcess, free_port
from dynamo_devcluster.progress import LineProgress
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES, ObjectKey, Resource
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.nats import NatsBus
from dynamo_shared.kube import KubeClient, NotFound
from dynamo_shared.runtime import Settings
from dynamo_shared.runtime.connections import nats_options
from dynamo_shared.wire.specifications.deployment import GRAPH_DEPLOYMENT
from dynamo_shared.wire.specifications.planning import PlanData
from playwright.async_api import Browser

from tests.building.services import service_process
from tests.integration.dynadmin import account

from .browser import Person, opened

TEAM, OTHER = "team-a", "team-b"
#: Limit for a graph of KWOK's pods to become ready, on a busy machine. Seconds.
WITHIN = 120.0


@dataclass
class Stage:
    """All that checks need."""

    browser: Browser
    kube: KubeClient
    url: str
    dynadmin: ManagedProcess
    screenshots: Path
    engineer: str
    """token: everything in team-a"""
    reader: str
    """token: reads graphs of team-b"""
    settings: Settings
    """of the platform"""
    people: list[Person] = field(default_factory=list)

    async def person(self, token: str, **options: Any) -> Person:
        """A signed-in user with a separate browser profile."""
        page = await (await self.browser.new_context(viewport={"width": 1280, "height": 900}, **options)).new_page()
        person = Person(page, self.url)
        self.people.append(person)
        if token:
            await person.sign_in(token)
        return person

    async def screenshot(self, person: Person, name: str) -> None:
        """Write a screenshot of a whole view. The window is enlarged for it, so that sticky elements are in place."""
        page = person.page
        size = page.viewport_size or {"width": 1280, "height": 900}
        height = await page.evaluate("() => { scrollTo(0, 0); return document.documentElement.scrollHeight }")
        await page.set_viewport_size({"width": size["width"], "height": max(size["height"], min(height, 4000))})
        await page.screenshot(path=self.screenshots / f"{name}.png")
        await page.set_viewport_size(size)

    async def decided(self, obj: Any, inputs: dict[str, float]) -> None:
        """Publish a decision as the planner would: no Prometheus has traffic here."""
        platform, metadata = self.settings.platform, obj["metadata"]
        bus = await NatsBus.connect(nats_options(platform.nats, "e2e"))
        try:
            publisher = EventPublisher(bus, platform.cluster_name)
            data = PlanData(
                graph_deployment=metadata["name"],
                namespace=metadata["namespace"],
                policy="adaptive",
                reason="scale_up",
                message="more requests are expected",
                replicas={"decode": 2},
                current={"decode": 1},
                inputs=inputs,
            )
            publisher.publish(kind=GRAPH_DEPLOYMENT, obj=obj, event="planned", data=data, causation_id="e2e")
            if not await publisher.flush(30):
                raise TimeoutError("the decision was not published")
        finally:
            await bus.close()

    async def graph(self, name: str, namespace: str = TEAM, resource: Resource = DYNAMO_GRAPH_DEPLOYMENTS) -> Any:
        """An object, once it exists."""
        async with asyncio.timeout(WITHIN):
            while True:
                try:
                    return await self.kube.get(resource, ObjectKey(namespace, name))
                except NotFound:
                    await asyncio.sleep(0.2)


@asynccontextmanager
async def staged(folder: Path) -> AsyncIterator[Stage]:
    """The stage, in a folder that the caller empties."""
    state, screenshots = folder / "cluster", folder / "screenshots"
    screenshots.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        settings = await stack.enter_async_context(local_platform(state, "e2e", LineProgress()))
        kubeconfig = settings.platform.kubernetes.kubeconfig
        kube = await stack.enter_async_context(await KubeClient.open(kubeconfig=kubeconfig, field_manager="e2e"))
        for name in (TEAM, OTHER):
            await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        engineer = (await asyncio.to_thread((await page_token(kube, TEAM, state)).read_text)).strip()
        resources = ["dynamographdeployments"]
        reads = {"verbs": ["get", "list", "watch"], "apiGroups": ["nvidia.com"], "resources": resources}
        reader = await account(kube, OTHER, "reader", reads)
        port = free_port()
        dynadmin = _dynadmin(state, port)
        await dynadmin.start()
        stack.push_async_callback(dynadmin.stop)
        browser = await stack.enter_async_context(opened())
        url = f"http://localhost:{port}/"
        yield Stage(browser, kube, url, dynadmin, screenshots, engineer, reader, settings)


def _dynadmin(state: Path, port: int) -> ManagedProcess:
    """A replica of the service as a separate process, with a persistent key: sessions survive its end."""
    config = yaml.safe_load((state / "config.yaml").read_text())
    health, key = free_port(), state / "session-key"
    key.write_text(base64.b64encode(os.urandom(32)).decode())
    config["server"]["healthProbe"]["port"] = health
    config["server"]["metrics"]["port"] = free_port()
    config["platform"]["dynadmin"] |= {"port": port, "sessionKeyFile": str(key)}
    return service_process("dynadmin", ("dynadmin",), state / "dynadmin.yaml", config)
