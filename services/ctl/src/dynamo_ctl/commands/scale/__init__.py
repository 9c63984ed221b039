"""`dynamoctl scale`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import BusOptions, Graph, LineOutput, Namespace, with_options
from dynamo_ctl.commands.remote import OptionalApiOptions, refuse_with_server


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """The requested scaling."""

    graph: Graph
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="COMPONENT=N",
            help="Replicas, by the component's name, or by its type (prefill, decode, ...) if it is the only one of that type.",
        ),
    ]
    namespace: Namespace = None
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print what would be done.")] = False
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason, which the events show.")] = ""
    generation: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Refuse if the graph has another generation; 0 for any."),
    ] = 0
    request: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="ID of this request: a repeated command with the same ID gets the same answer and does nothing.",
        ),
    ] = None
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, max=600, help="How long to wait for the answer.")
    ] = 60.0


@with_options
def scale(
    options: ScaleOptions,
    *,
    output: Annotated[
        LineOutput, typer.Option("--output", "-o", help="Output format: for people, or the answer as JSON.")
    ] = LineOutput.TABLE,
    bus: BusOptions,
    api: OptionalApiOptions,
) -> None:
    """Request a new number of replicas for components of a graph, and print the platform's answer.

    Unlike kubectl scale, this command respects GPU budgets and the limits of components, waits for roll-outs, and
    changes several components together. The platform carries out a held request later. A refused request gives exit
    code 1. With --server the API writes the replicas with your rights, one component after the other.
    """
    from dynamo_ctl import interrupts, settings
    from dynamo_ctl.commands.scale import by_api, command
    from dynamo_ctl.output import echo

    replicas, as_json = command.replicas(options.targets), output is LineOutput.JSON
    if api.is_chosen():
        refuse_with_server(
            reason=options.reason,
            generation=options.generation,
            request=options.request,
            nats=bus.nats,
            cluster=bus.cluster,
            config=bus.config,
        )
        api.run(lambda remote: by_api.scale(remote, options, replicas, echo, as_json=as_json), options.namespace)
        return
    settings.quiet()
    where = bus.where()
    namespace = options.namespace or where.namespace(api.kubeconfig)
    interrupts.run(command.scale(options, namespace, replicas, where, echo, as_json=as_json))
