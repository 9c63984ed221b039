"""`dynamoctl events`."""

from dataclasses import dataclass, field, replace
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import AllNamespaces, BusOptions, LineOutput, Namespace, with_options
from dynamo_ctl.commands.remote import OptionalApiOptions, refuse_with_server


@dataclass(frozen=True, slots=True)
class EventQuery:
    """Which events to show, and whether to wait for more. None: any."""

    namespace: Namespace = None
    kind: Annotated[
        str | None,
        typer.Option(
            metavar="KIND", help="Only events of this kind of object: dgd, dgdr, dm, platform, ..., or its full name."
        ),
    ] = None
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Only events of the object of this name.")] = None
    types: Annotated[
        list[str],
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only events of this type, in short (ready) or in full (com.nvidia.dynamo.deployment.ready.v1). Repeatable.",
        ),
    ] = field(default_factory=list)
    since: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="Only events of the last DURATION: 90s, 10m, 2h, 1d."),
    ] = None
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new events as they happen, until Ctrl-C.")] = (
        False
    )
    all_namespaces: AllNamespaces = False


@with_options
def events(
    query: EventQuery,
    *,
    output: Annotated[
        LineOutput, typer.Option("--output", "-o", help="Output format: for people, or CloudEvents as lines of JSON.")
    ] = LineOutput.TABLE,
    bus: BusOptions,
    api: OptionalApiOptions,
) -> None:
    """Show the platform's stored events (of the last week), oldest first, and with --follow also new events.

    Filters become NATS subject filters, so the server sends only matching events. Events of the platform itself, which
    have no namespace, need -A or --kind platform. --server shows the Kubernetes Events
    of one object and of all objects that it owns: name the object with --kind dgd, dcd or dgdr, and --name.
    """
    from dynamo_ctl import interrupts, settings
    from dynamo_ctl.commands.events import by_api, stream
    from dynamo_ctl.errors import CtlError, ExitCode
    from dynamo_ctl.output import echo, echo_error

    age = stream.duration(query.since) if query.since else None
    as_json = output is LineOutput.JSON
    if api.is_chosen():
        refuse_with_server(type=query.types, nats=bus.nats, cluster=bus.cluster, config=bus.config)
        refuse_with_server(**{"all-namespaces": query.all_namespaces})
        if not query.name:
            raise CtlError("--server requires an object: --kind dgd --name NAME", ExitCode.USAGE)
        about = query.kind or "dgd", query.name
        api.run(
            lambda remote: by_api.events(remote, *about, echo, since=age, follow=query.follow, as_json=as_json),
            query.namespace,
            follow=query.follow,
        )
        return
    # Report a mistake on the command line before a missing server.
    stream.selected(query)
    settings.quiet(follow=query.follow)
    where = bus.where()
    namespace = None if query.all_namespaces else query.namespace or where.namespace(api.kubeconfig)
    query = replace(query, namespace=namespace)
    (interrupts.serve if query.follow else interrupts.run)(
        stream.listen(query, where, echo, since=age, as_json=as_json, remark=echo_error)
    )
