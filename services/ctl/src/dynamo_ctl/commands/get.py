"""`dynamoctl get`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Context, Kubeconfig, Output


class What(StrEnum):
    """What can be looked at."""

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
            "--namespace", "-n", metavar="NAME", help="Namespace; else that of the context.", show_default=False
        ),
    ] = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all namespaces.")] = False,
    output: Annotated[Output, typer.Option("--output", "-o", help="For people or for programs.")] = Output.TABLE,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with every change, until Ctrl-C.")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Show graphs and their components.

    Looks at the cluster of the platform that runs in this folder or one above it; else at that of your kubeconfig.
    """
    from dynamo_ctl import interrupts, looking, settings  # noqa: PLC0415 - quick help

    settings.quiet(follow=watch)
    query = looking.Query(what.value, name, namespace, all_namespaces=all_namespaces, output=output.value)
    where = looking.cluster(kubeconfig, context)
    if watch:
        interrupts.serve(looking.watch(query, where, typer.echo))
    else:
        interrupts.run(looking.show(query, where, typer.echo))
