"""`dynamoctl get`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import AllNamespaces, AnyOutput, Context, Namespace, Output, with_options
from dynamo_ctl.commands.remote import OptionalApiOptions, refuse_with_server


def _kinds(incomplete: str) -> list[str]:
    return [each for each in ("dgd", "dcd", "all") if each.startswith(incomplete)]


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """What to show, and how."""

    what: Annotated[
        str,
        typer.Argument(
            metavar="KIND[/NAME]",
            help="dgd: graphs, dcd: their components, all: both; or a kind's full name or plural, like in kubectl.",
            autocompletion=_kinds,
        ),
    ] = "all"
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only the object of this name.")] = None
    namespace: Namespace = None
    all_namespaces: AllNamespaces = False
    output: AnyOutput = Output.TABLE


@with_options
def get(
    query: ObjectQuery,
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Print every change until Ctrl-C.")] = False,
    api: OptionalApiOptions,
    context: Context = None,
) -> None:
    """Show graphs and their components.

    Reads the cluster of the platform that runs in this folder or above it, otherwise the cluster of your kubeconfig.
    """
    from dynamo_ctl import interrupts, settings, targets
    from dynamo_ctl.commands.get import objects, sources
    from dynamo_ctl.output import echo

    query = objects.resolved(query)
    work = objects.watch if watch else objects.show
    if api.is_chosen():
        refuse_with_server(context=context)
        api.run(lambda remote: work(query, sources.OfApi(remote), echo), query.namespace, follow=watch)
        return
    settings.quiet(follow=watch)

    async def run() -> None:
        async with await targets.cluster(api.kubeconfig, context).client() as client:
            await work(query, sources.OfCluster(client), echo)

    (interrupts.serve if watch else interrupts.run)(run())
