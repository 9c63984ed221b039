"""`dynamoctl get`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Context, Kubeconfig, Output
from dynamo_ctl.commands.remote import TokenFile, ViaServer, over_api


class What(StrEnum):
    """What can be shown."""

    DGD = "dgd"
    DCD = "dcd"
    ALL = "all"


def get(
    what: Annotated[What, typer.Argument(help="dgd: graphs, dcd: their components, all: both.")] = What.ALL,
    name: Annotated[str | None, typer.Argument(help="Only the one of this name.", show_default=False)] = None,
    *,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", metavar="NAME", help="Namespace; by default that of the context.", show_default=False
        ),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all namespaces.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="For people or for programs.")] = Output.TABLE,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with every change, until Ctrl-C.")] = False,
    server: ViaServer = "",
    token_file: TokenFile = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show graphs and their components.

    Reads the cluster of the platform that runs in this folder or one above it; else that of your kubeconfig.
    """
    from dynamo_ctl import get_objects, interrupts, settings, sources  # noqa: PLC0415 - quick help

    query = get_objects.ObjectQuery(what.value, name, namespace, all_namespaces=all_namespaces, output=output.value)
    work = get_objects.watch if watch else get_objects.show
    if server:
        over_api(server, token_file, kubeconfig, lambda api: work(query, sources.OfApi(api), typer.echo), follow=watch)
        return
    settings.quiet(follow=watch)

    async def run() -> None:
        async with get_objects.opened(get_objects.cluster(kubeconfig, context)) as source:
            await work(query, source, typer.echo)

    (interrupts.serve if watch else interrupts.run)(run())
