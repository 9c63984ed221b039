"""`dynamoctl workers` and `dynamoctl models`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import AnyNamespace, BusOptions, Output, with_options


@dataclass(frozen=True, slots=True)
class DiscoveredQuery:
    """Which workers or models to show, and how."""

    namespace: AnyNamespace = None
    graph: Annotated[str | None, typer.Option("--graph", "-g", metavar="NAME", help="Only those of this graph.")] = None
    output: Annotated[Output, typer.Option("--output", "-o", help="Output format: for people or for programs.")] = (
        Output.TABLE
    )


@with_options
def workers(query: DiscoveredQuery, *, bus: BusOptions) -> None:
    """Show the workers that Dynamo's discovery in etcd or Kubernetes knows, and what they serve."""
    _show("workers", query, bus)


@with_options
def models(query: DiscoveredQuery, *, bus: BusOptions) -> None:
    """Show the models that workers serve together, and what is missing if requests cannot be answered."""
    _show("models", query, bus)


def _show(what: str, query: DiscoveredQuery, bus: BusOptions) -> None:
    from dynamo_ctl import interrupts, settings  # noqa: PLC0415 - quick help
    from dynamo_ctl.commands.discovered import listing  # noqa: PLC0415
    from dynamo_ctl.printing import echo  # noqa: PLC0415

    settings.quiet()
    interrupts.run(listing.show(what, query, bus.where(), echo))
