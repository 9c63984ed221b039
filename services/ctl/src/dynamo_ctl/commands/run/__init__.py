"""`dynamoctl run`."""

from typing import Annotated

import typer

from dynamo_ctl import services
from dynamo_ctl.commands.parameters import Config, Context, Kubeconfig


def _names(incomplete: str) -> list[str]:
    return [name for name in (services.ALL, *services.SERVICES) if name.startswith(incomplete)]


def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="all|NAME",
            help=f"Services: {', '.join(services.SERVICES)}; `all` runs all of them in this process.",
            autocompletion=_names,
        ),
    ],
    config: Config = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    *,
    nats_address: Annotated[str | None, typer.Option("--natsAddr", hidden=True)] = None,
    etcd_address: Annotated[str | None, typer.Option("--etcdAddr", hidden=True)] = None,
) -> None:
    """Run services in the foreground until Ctrl-C, against the cluster and NATS of the settings.

    Containers run this command. It starts no servers and installs no definitions; `dynamoctl up` does.
    """
    from dynamo_ctl import interrupts, settings
    from dynamo_ctl.commands.run import serving

    chosen = services.make(names)
    older = {"--natsAddr": nats_address, "--etcdAddr": etcd_address}
    loaded = settings.with_cluster(settings.load(config, older), kubeconfig, context)
    settings.start_logging(loaded, for_people=False)
    interrupts.serve(serving.serve(chosen, loaded))
