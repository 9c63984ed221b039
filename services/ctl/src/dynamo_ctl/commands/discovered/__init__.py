"""`dynamoctl workers` and `dynamoctl models`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Cluster, Config, Nats, Output

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Only of this Kubernetes namespace.", show_default=False),
]
Graph = Annotated[
    str | None, typer.Option("--graph", "-g", metavar="NAME", help="Only of this graph.", show_default=False)
]
Form = Annotated[Output, typer.Option("--output", "-o", help="For people or for programs.")]


def workers(
    *,
    namespace: Namespace = None,
    graph: Graph = None,
    output: Form = Output.TABLE,
    nats: Nats = None,
    cluster: Cluster = None,
    config: Config = None,
) -> None:
    """Show the workers that Dynamo's discovery knows, in etcd or in Kubernetes, and what they serve."""
    _show("workers", (namespace, graph, output.value), (nats, cluster, config))


def models(
    *,
    namespace: Namespace = None,
    graph: Graph = None,
    output: Form = Output.TABLE,
    nats: Nats = None,
    cluster: Cluster = None,
    config: Config = None,
) -> None:
    """Show the models that workers serve together, and what is missing where requests cannot be answered."""
    _show("models", (namespace, graph, output.value), (nats, cluster, config))


def _show(
    what: str, filters: tuple[str | None, str | None, str], source: tuple[str | None, str | None, Path | None]
) -> None:
    from dynamo_ctl import interrupts, settings, targets  # noqa: PLC0415 - quick help
    from dynamo_ctl.commands.discovered import listing  # noqa: PLC0415

    settings.quiet()
    query = listing.DiscoveredQuery(what, *filters)
    interrupts.run(listing.show(query, targets.nats_server(*source), typer.echo))
