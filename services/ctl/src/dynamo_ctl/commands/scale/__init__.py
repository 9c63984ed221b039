"""`dynamoctl scale`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import BusOptions, Graph, LineOutput, valid_namespace, with_options
from dynamo_ctl.commands.remote import OtherWayOptions, refuse_with_server


@dataclass(frozen=True, slots=True)
class ScaleOptions:
    """What is asked for."""

    graph: Graph
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="COMPONENT=N",
            help="Replicas, by the component's name, or by its type (prefill, decode, ...) where it is the only one.",
        ),
    ]
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the graph.", callback=valid_namespace),
    ] = "default"
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; goes into the events.")] = ""
    generation: Annotated[
        int,
        typer.Option(metavar="N", min=0, help="Refuse where the graph has another generation; 0: any will do."),
    ] = 0
    request: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Your name for this request: given again it is not done again, and answered the same.",
        ),
    ] = None
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=1, max=600, help="How long to wait for the answer.")
    ] = 60.0


@with_options
def scale(
    asked: ScaleOptions,
    *,
    output: Annotated[
        LineOutput, typer.Option("--output", "-o", help="For people, or the answer as JSON.")
    ] = LineOutput.TABLE,
    bus: BusOptions,
    api: OtherWayOptions,
) -> None:
    """Ask the platform for other replicas of a graph's components, and print its answer.

    Unlike kubectl scale, this keeps to budgets of GPUs and to limits of components, waits for roll-outs, and changes several
    components together. What is held is carried out later; what is refused gives exit code 1. With --server the API
    writes the replicas, one component after the other, with your rights.
    """
    from dynamo_ctl import interrupts, settings  # noqa: PLC0415 - quick help
    from dynamo_ctl.commands.scale import by_api, command  # noqa: PLC0415
    from dynamo_ctl.printing import echo  # noqa: PLC0415

    replicas, as_json = command.replicas(asked.targets), output is LineOutput.JSON
    if api.server:
        refuse_with_server(
            reason=asked.reason,
            generation=asked.generation,
            request=asked.request,
            nats=bus.nats,
            cluster=bus.cluster,
        )
        api.run(lambda remote: by_api.scale(remote, asked, replicas, echo, as_json=as_json))
        return
    settings.quiet()
    interrupts.run(command.scale(asked, replicas, bus.where(), echo, as_json=as_json))
