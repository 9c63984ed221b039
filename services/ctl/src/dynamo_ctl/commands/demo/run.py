"""The demonstration, from nothing to running graphs."""

import asyncio
import contextlib
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from dynamo_shared.api import resources
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.manifest import load_manifests
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES
from dynamo_shared.api.v1beta1 import to_dict
from dynamo_shared.bus.permissions import EVENT_READER
from dynamo_shared.kube import AlreadyExists, KubeClient
from dynamo_shared.wire.subjects import inbox_prefix
from rich.console import Console
from rich.markup import escape

from dynamo_ctl import files
from dynamo_ctl.aggregated_roles import give_roles
from dynamo_ctl.commands.demo import tree, view
from dynamo_ctl.commands.demo.local import local_platform
from dynamo_ctl.commands.demo.waiting import until_successful
from dynamo_ctl.commands.up import progress
from dynamo_ctl.commands.up.servers import NATS_CREDENTIALS, running_here
from dynamo_ctl.errors import CtlError
from dynamo_ctl.files import NotUsable
from dynamo_ctl.output import own_command
from dynamo_ctl.page_account import page_token
from dynamo_ctl.running_platform import announced, claimed

NAMESPACE = "dynamo-demo"
CLUSTER = "demo"
EXAMPLES = "examples"
#: At least one of these kinds: a request becomes a graph.
_SHOWN = (DYNAMO_GRAPH_DEPLOYMENTS.kind, DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.kind)
#: This file identifies a folder of a demonstration, whose content may be deleted.
MARKER = ".dynamo-demo"


def find_manifests(given: Sequence[Path]) -> list[Path]:
    """The files to deploy; if none are given, the files of `examples/` here or in the source tree of this program."""
    if given:
        return files.expand(given)
    here = [Path(EXAMPLES), *(parent / EXAMPLES for parent in Path(__file__).parents)]
    folder = next((each for each in here if any(each.glob("*.yaml"))), None)
    if folder is None:
        raise CtlError(f"no {EXAMPLES} folder here; name manifests: dynamoctl demo FILE...")
    return files.expand([folder])


async def demo(manifests: Sequence[Path], folder: Path, timeout: float, console: Console, *, leave: bool) -> None:
    """Show the graphs of manifests. State and logs are below the folder. `leave`: do not wait for Ctrl-C afterwards.

    Raises CtlError if a graph does not become successful within `timeout` seconds; logs then stay in the folder.
    """
    graphs = [graph for _, listed in files.each(manifests, _objects) for graph in listed]
    if all(graph["kind"] not in _SHOWN for graph in graphs):
        raise CtlError(f"{', '.join(map(str, manifests))}: no DynamoGraphDeployment: the demo shows how graphs start")
    names = Counter(f"{graph['kind']} {graph['metadata']['name']}" for graph in graphs)
    if repeated := [name for name, count in names.items() if count > 1]:
        raise CtlError(f"{', '.join(repeated)}: in several manifests; give each its own name")
    state = folder / CLUSTER
    with claimed(folder):
        empty(state)
        await _show(graphs, folder, timeout, console, leave=leave)
        shutil.rmtree(state, ignore_errors=True)


def empty(state: Path) -> None:
    """Create the folder of a demonstration, or delete its content. Raises CtlError if it contains unrelated files."""
    # Releases without a marker left this folder.
    is_own = (state / MARKER).exists() or (state / "kubernetes" / "pki").is_dir()
    if state.exists() and not is_own and any(state.iterdir()):
        raise CtlError(
            f"{state} has files that dynamoctl demo did not create; move them, or name another folder with --dir"
        )
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    (state / MARKER).touch()


async def _show(graphs: Sequence[KubeObject], folder: Path, timeout: float, console: Console, *, leave: bool) -> None:
    state = folder / CLUSTER
    async with AsyncExitStack() as stack:
        with progress.showing(console) as steps:
            settings = await stack.enter_async_context(local_platform(state, CLUSTER, steps))
        kubeconfig, nats = settings.platform.kubernetes.kubeconfig, settings.platform.nats.servers[0]
        client = await stack.enter_async_context(
            await KubeClient.open(kubeconfig=kubeconfig, field_manager="dynamoctl")
        )
        await give_roles(client)
        with contextlib.suppress(AlreadyExists):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            await client.create(NAMESPACES, namespace)
        token = await page_token(client, NAMESPACE, state)
        # Only now: other commands use the token.
        stack.enter_context(announced(folder, running_here(settings, state, has_token=True)))
        names = [graph["metadata"]["name"] for graph in graphs if graph["kind"] == DYNAMO_GRAPH_DEPLOYMENTS.kind]
        try:
            with view.showing(console) as shown:
                applying = asyncio.create_task(_apply(client, graphs))
                stack.callback(applying.cancel)
                took = await until_successful(client, NAMESPACE, names, shown, timeout=timeout, applying=applying)
        except CtlError as error:
            raise CtlError(f"{error}\nlogs are in {state}", error.code) from error
        slowest = max(took.values(), default=0.0)
        console.print(
            f"\n[bold green]{len(took)} graphs are successful[/], the slowest after {slowest:.1f} s. Created objects:\n"
        )
        console.print(await tree.read(client, NAMESPACE))
        if not leave:
            _further(console, str(kubeconfig), nats, state / NATS_CREDENTIALS)
            _page(console, settings.platform.dynadmin.port, token)
            console.print("\nEverything stays until [bold]Ctrl-C[/].")
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.Event().wait()


def _objects(text: str) -> list[KubeObject]:
    """The objects of a file, in the demo's namespace. Raises NotUsable."""
    try:
        manifests = load_manifests(text)
    except InvalidManifest as error:
        raise NotUsable([str(each) for each in error.errors]) from error
    objects = [manifest if isinstance(manifest, dict) else to_dict(manifest) for manifest in manifests]
    try:
        for obj in objects:
            resources.of(obj)
    except KeyError as error:
        kind = " ".join(error.args[0])
        raise NotUsable([f"{kind}: the demo does not know this kind; apply it with kubectl"]) from error
    return [{**obj, "metadata": {**obj["metadata"], "namespace": NAMESPACE}} for obj in objects]


async def _apply(client: KubeClient, objects: Sequence[KubeObject]) -> None:
    await asyncio.gather(*(client.apply(resources.of(obj), obj) for obj in objects))


def _further(console: Console, kubeconfig: str, nats: str, credentials: Path) -> None:
    command = own_command()
    for line in (
        "\nTo see more, in another terminal in this folder:",
        f"  export KUBECONFIG={kubeconfig}",
        f"  kubectl config set-context --current --namespace={NAMESPACE}",
        "  kubectl get dgd,dcd",
        "  kubectl describe dgd",
        f"  {command} get --watch",
        f"  {command} events --follow",
        f'  nats --server {nats} --user {EVENT_READER} --password "$(cat {credentials / EVENT_READER})" '
        f"--inbox-prefix {inbox_prefix(EVENT_READER)} subscribe 'dynamo.evt.v1.{CLUSTER}.>'",
    ):
        console.print(line, soft_wrap=True, markup=False)


def _page(console: Console, port: int, token: Path) -> None:
    console.print(
        f"\nDeploy a model in the browser: [bold green]http://localhost:{port}/[/]\n"
        f"  sign in with the token that this prints: cat {escape(str(token))}",
        soft_wrap=True,
    )
