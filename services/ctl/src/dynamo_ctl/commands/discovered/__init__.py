"""`dynamoctl workers` and `dynamoctl models`."""

from __future__ import annotations

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import BusOptions, Output, with_options

Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="Only of this Kubernetes namespace.", show_default=False),
]
Graph = Annotated[
    str | None, typer.Option("--graph", "-g", metavar="NAME", help="Only of this graph.", show_default=False)
]
Form = Annotated[Output, typer.Option("--output", "-o", help="For people or for programs.")]


@with_options
def workers(
    *,
    namespace: Namespace = None,
    graph: Graph = None,
    output: Form = Output.TABLE,
    bus: BusOptions,
) -> None:
    """Show the workers that Dynamo's discovery knows, in etcd or in Kubernetes, and what they serve."""
    _show("workers", namespace, graph, output, bus)


@with_options
def models(
    *,
    namespace: Namespace = None,
    graph: Graph = None,
    output: Form = Output.TABLE,
    bus: BusOptions,
) -> None:
    """Show the models that workers serve together, and what is missing where requests cannot be answered."""
    _show("models", namespace, graph, output, bus)


def _show(what: str, namespace: str | None, graph: str | None, output: Output, bus: BusOptions) -> None:
    from dynamo_ctl import interrupts, settings  # noqa: PLC0415 - quick help
    from dynamo_ctl.commands.discovered import listing  # noqa: PLC0415
    from dynamo_ctl.printing import echo  # noqa: PLC0415

    settings.quiet()
    query = listing.DiscoveredQuery(what, namespace, graph, output.value)
    interrupts.run(listing.show(query, bus.where(), echo))
