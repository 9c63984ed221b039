"""`dynamoctl events`."""

from __future__ import annotations

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Config, LineOutput


def events(
    *,
    namespace: Annotated[
        str | None,
        typer.Option("--namespace", "-n", metavar="NAME", help="Only of this namespace.", show_default=False),
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(metavar="KIND", help="Only of this kind of object: dgd, dcd, platform, ...", show_default=False),
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only of the object of this name.", show_default=False)
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only of this type, in short (ready) or in full (com.nvidia.dynamo.deployment.ready.v1); repeatable.",
            show_default=False,
        ),
    ] = None,
    since: Annotated[
        str | None, typer.Option(metavar="DURATION", help="Only younger ones: 90s, 10m, 2h, 1d.", show_default=False)
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones, until Ctrl-C.")] = False,
    output: Annotated[
        LineOutput, typer.Option("--output", "-o", help="For people, or the CloudEvents as lines of JSON.")
    ] = LineOutput.TABLE,
    nats: Annotated[
        str | None,
        typer.Option(
            "--nats",
            metavar="URL",
            help="NATS server; else that of --config, else of the platform here.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the cluster in the subjects; else as configured.", show_default=False
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Show the platform's events: the stored ones (a week is kept), oldest first, and with --follow new ones.

    Filters become NATS subject filters, so the server sends only what is asked for.
    """
    from dynamo_ctl import interrupts, listening, settings  # noqa: PLC0415 - quick help

    settings.quiet(follow=follow)
    query = listening.Query(
        namespace=namespace,
        kind=kind,
        name=name,
        types=tuple(types or ()),
        since=listening.duration(since) if since else None,
        follow=follow,
    )
    where = listening.server(nats, cluster, config)
    (interrupts.serve if follow else interrupts.run)(
        listening.listen(query, where, typer.echo, as_json=output is LineOutput.JSON)
    )
