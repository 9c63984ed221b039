"""The examples of docs/dynadmin.md run unchanged: curl, Python and TypeScript get the same results from one service."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest
from dynamo_ctl.settings import with_platform
from dynamo_ctl.simulations.estimation import Estimation
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.kube import KubeClient
from dynamo_shared.runtime import Settings

from tests.building.processes import ending
from tools.page.node import FOLDER, Node
from tools.page.source import OPENAPI

from .dynadmin import EVERYTHING, account, dynadmin

pytestmark = pytest.mark.long

PAGE = Path(__file__).parents[2] / "docs/dynadmin.md"
#: Most of this is the simulation, which runs once; then the estimate is cached.
WITHIN = 480
TYPES = {
    "noEmit": True,
    "strict": True,
    "target": "es2022",
    "module": "preserve",
    "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
    "types": [],
    "allowImportingTsExtensions": True,
    "erasableSyntaxOnly": True,
    "verbatimModuleSyntax": True,
    "skipLibCheck": True,
}
PRINTED = ["graph shop", "dry run DynamoGraphDeployment qwen", "estimate aiconfigurator 8", "ADDED shop"]


def program(language: str) -> str:
    """All blocks of a language in the section of examples, in order."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Examples\n")[2].partition("\n## ")[0]
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 4, (
        f"{PAGE.name} has {len(blocks)} examples in {language}; list, deploy, estimate, watch expected"
    )
    return "\n".join(blocks)


@pytest.fixture(scope="module")
def estimation(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Settings], Estimation]:
    """The simulation; all languages request the same estimate, so it runs once."""
    folder = tmp_path_factory.mktemp("estimates")

    def made(configured: Settings) -> Estimation:
        planner = configured.platform.planner
        rapid = planner.rapid.model_copy(update={"cache_dir": folder})
        return Estimation(with_platform(configured, planner=planner.model_copy(update={"rapid": rapid})))

    return made


@pytest.fixture
async def environment(
    control_plane: ControlPlane,
    nats_server: NatsServer,
    kube: KubeClient,
    namespace: str,
    estimation: Callable[[Settings], Estimation],
) -> AsyncIterator[dict[str, str]]:
    """The variables that the page asks its reader to export, for a service on real servers with one graph."""
    async with dynadmin(control_plane.kubeconfig, nats_server.url, estimation, HEARTBEAT="1s") as api:
        token = await account(kube, namespace, "reader", EVERYTHING)
        metadata = {"name": "shop", "namespace": namespace}
        spec = {"components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]}
        graph = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": metadata, "spec": spec}
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph)
        api.token = token
        many = f"/api/v1/namespaces/{namespace}/deployments?watch=true"
        async with asyncio.timeout(60), api.stream(many) as events:
            await events.until("ADDED")
        yield {**os.environ, "DYNAMO_SERVER_URL": api.url, "DYNAMO_TOKEN": token, "NAMESPACE": namespace}


async def output(environment: Mapping[str, str], *command: str | Path) -> str:
    """A program's output. The service runs in this process, so the event loop must not block meanwhile."""
    process = await asyncio.create_subprocess_exec(
        *command, env=dict(environment), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with ending(process), asyncio.timeout(WITHIN):
        printed, errors = await process.communicate()
    assert process.returncode == 0, errors.decode() + printed.decode()
    return printed.decode()


async def with_curl(environment: Mapping[str, str]) -> list[str]:
    text, decoder = await output(environment, "bash", "-euc", program("bash")), json.JSONDecoder()
    graphs, end = decoder.raw_decode(text)
    deployed, end = decoder.raw_decode(text, end)
    fields = [line.split(": ", 1) for line in text[end:].splitlines() if line.startswith(("event: ", "data: "))]
    names, data = ([value for name, value in fields if name == field] for field in ("event", "data"))
    events = [(name, json.loads(each)) for name, each in zip(names, data, strict=False)]
    estimate = [each for name, each in events if name == "estimate"][-1]
    assert names[-1] == "synced"
    return [
        *(f"graph {each['metadata']['name']}" for each in graphs["items"]),
        f"dry run {deployed['manifest']['kind']} {deployed['manifest']['metadata']['name']}",
        f"estimate {estimate['source']} {estimate['selected']['gpus']}",
        *(f"ADDED {each['metadata']['name']}" for name, each in events if name == "ADDED"),
    ]


@pytest.mark.timeout(1200)
async def test_curl_and_python_do_what_the_page_says(environment: dict[str, str]) -> None:
    assert await with_curl(environment) == PRINTED
    assert (await output(environment, sys.executable, "-c", program("python"))).splitlines() == PRINTED


@pytest.mark.timeout(1200)
async def test_typescript_has_the_types_of_the_document_and_does_what_the_page_says(
    environment: dict[str, str], tmp_path: Path
) -> None:
    if not (FOLDER / ".complete").is_file():
        pytest.skip("Node and the page's packages are not installed: `make page-tools` does so, or says why it cannot")
    node = Node()
    node.obtain()
    page = PAGE.read_text(encoding="utf-8")
    options = re.findall(r"--(?:root|default)-[^\s`]+", page)
    (tmp_path / "example.ts").write_text(program("typescript"))
    # Node's type definitions are not among the locked packages.
    (tmp_path / "process.d.ts").write_text("declare const process: { env: Record<string, string | undefined> };")
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": TYPES}))
    generator, compiler = (node.modules / each for each in ("openapi-typescript/bin/cli.js", "typescript/bin/tsc"))
    schema = str(tmp_path / "schema.ts")
    await output(environment, node.executable, generator, OPENAPI, "--output", schema, *options)
    await output(environment, node.executable, compiler, "--project", tmp_path)
    assert (await output(environment, node.executable, tmp_path / "example.ts")).splitlines() == PRINTED
