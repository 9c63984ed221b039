"""`dynamoctl workers` and `dynamoctl models`."""

from __future__ import annotations

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Config, Output

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Only of this Kubernetes namespace.", show_default=False),
]
Graph = Annotated[
    str | None, typer.Option("--graph", "-g", metavar="NAME", help="Only of this graph.", show_default=False)
]
Nats = Annotated[
    str | None,
    typer.Option(
        "--nats",
        metavar="URL",
        help="NATS server; by default that of --config, or of the platform in this folder.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Name of the cluster in the subjects; by default as configured.", show_default=False
    ),
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
    from dynamo_ctl import discovered, event_stream, interrupts, settings  # noqa: PLC0415 - quick help

    settings.quiet(follow=False)
    query = discovered.DiscoveredQuery("workers", namespace, graph, output.value)
    interrupts.run(discovered.show(query, event_stream.server(nats, cluster, config), typer.echo))


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
    from dynamo_ctl import discovered, event_stream, interrupts, settings  # noqa: PLC0415 - quick help

    settings.quiet(follow=False)
    query = discovered.DiscoveredQuery("models", namespace, graph, output.value)
    interrupts.run(discovered.show(query, event_stream.server(nats, cluster, config), typer.echo))
