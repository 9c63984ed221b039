"""Runs the commands of README and guides unchanged against a real API server (without nodes, so no pod runs)."""

import asyncio
import os
import re
from collections.abc import AsyncIterator

import pytest
from dynamo_devcluster import ControlPlane, ControlPlaneOptions, Programs
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.objects import labels
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, NAMESPACES
from dynamo_shared.kube import KubeClient

from tests.charts import helm

pytestmark = pytest.mark.long

#: Options that need running pods.
LEFT_OUT = ("helm test",)


def commands(page: str) -> list[str]:
    """Helm's commands in the console blocks of a page, each on one line."""
    text = (helm.ROOT / page).read_text(encoding="utf-8")
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)).replace("\\\n", " ")
    lines = map(str.strip, blocks.splitlines())
    return [line for line in lines if line.startswith("helm ") and not line.startswith(LEFT_OUT)]


@pytest.fixture
async def plane() -> AsyncIterator[ControlPlane]:
    """An API server for this test alone."""
    options = ControlPlaneOptions(kwok_nodes=0, controller_manager=False, scheduler=False)
    async with ControlPlane(options, Programs()) as up:
        yield up


async def run(line: str, plane: ControlPlane) -> None:
    """Run a command in a shell, as a reader of the page would."""
    program = helm.program()
    assert program is not None
    environment = {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    written = line.replace("helm ", f"{program} ", 1)
    process = await asyncio.create_subprocess_shell(
        written, cwd=helm.ROOT, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, f"{line}\n{output.decode()}"


@pytest.mark.parametrize("page", ["README.md", "helm/dynamo-platform/README.md"])
def test_pages_install_both_charts(page: str) -> None:
    result = " ".join(commands(page))
    assert "helm install dynamo-crds" in result
    assert "helm install dynamo-platform" in result


async def test_install_upgrade_second_platform_and_uninstall(plane: ControlPlane) -> None:
    async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-tests") as kube:
        for name in ("team-a", "team-a-staging"):
            await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for page in ("README.md", "docs/upgrade.md", "docs/several-platforms.md"):
            for line in commands(page):
                await run(line, plane)
        assert len(await kube.list(DEPLOYMENTS, helm.NAMESPACE)) == 7
        assert len(await kube.list(DEPLOYMENTS, "team-a")) == 6
        await run("helm uninstall dynamo-platform --namespace dynamo-system", plane)
        await run("helm uninstall dynamo-crds", plane)
        assert len(await kube.list(DEPLOYMENTS, helm.NAMESPACE)) == 0
        kept = {each["spec"]["names"]["kind"] for each in await kube.list(CUSTOM_RESOURCE_DEFINITIONS)}
        assert {"DynamoGraphDeployment", "DynamoModel"} <= kept
        # A user who kept the objects can restore them.
        for line in commands("README.md"):
            await run(line, plane)


async def test_the_charts_take_over_the_definitions_of_an_operator(plane: ControlPlane) -> None:
    async with await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-crd-apply") as operator:
        for manifest in crd_manifests():
            await operator.apply(CUSTOM_RESOURCE_DEFINITIONS, manifest)
        (line,) = commands("docs/moving.md")
        await run(line, plane)
        definitions = await operator.list(CUSTOM_RESOURCE_DEFINITIONS)
    assert {labels(each)["app.kubernetes.io/managed-by"] for each in definitions} == {"Helm"}
    await run("helm upgrade dynamo-crds helm/dynamo-crds --reuse-values", plane)
