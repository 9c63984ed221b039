"""`dynamoctl workers` and `dynamoctl models`."""

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import AllNamespaces, AnyOutput, BusOptions, Namespace, Output, with_options


@dataclass(frozen=True, slots=True)
class DiscoveredQuery:
    """Which workers or models to show, and how."""

    namespace: Namespace = None
    graph: Annotated[str | None, typer.Option("--graph", "-g", metavar="NAME", help="Only those of this graph.")] = None
    output: AnyOutput = Output.TABLE
    all_namespaces: AllNamespaces = False


@with_options
def workers(query: DiscoveredQuery, *, bus: BusOptions) -> None:
    """Show the workers that Dynamo's discovery in etcd or Kubernetes knows, and what they serve."""
    _show("workers", query, bus)


@with_options
def models(query: DiscoveredQuery, *, bus: BusOptions) -> None:
    """Show the models that workers serve together, and what is missing if requests cannot be answered."""
    _show("models", query, bus)


def _show(what: str, query: DiscoveredQuery, bus: BusOptions) -> None:
    from dynamo_ctl import interrupts, settings
    from dynamo_ctl.commands.discovered import listing
    from dynamo_ctl.output import echo

    settings.quiet()
    where = bus.where()
    namespace = None if query.all_namespaces else query.namespace or where.namespace()
    interrupts.run(listing.show(what, replace(query, namespace=namespace), where, echo))
