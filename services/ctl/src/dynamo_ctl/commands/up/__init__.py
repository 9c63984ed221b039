"""`dynamoctl up`."""

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Config, Context, Folder, Kubeconfig
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.running_platform import FOLDER


def up(
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    config: Config = None,
    local: Annotated[
        bool,
        typer.Option("--local", help="Start a Kubernetes control plane on this machine, with simulated GPU nodes."),
    ] = False,
    folder: Folder = FOLDER,
) -> None:
    """Run the whole platform on this machine against a cluster, until Ctrl-C.

    Starts NATS and etcd here unless the settings name servers, installs the resource definitions, and runs all services
    in one process. In this folder and the folders below it, `dynamoctl get` and `dynamoctl events` find this platform.
    """
    if local and (kubeconfig or context):
        raise CtlError("--local starts its own cluster: remove --kubeconfig and --context", ExitCode.USAGE)
    from dynamo_ctl import interrupts, settings
    from dynamo_ctl.commands.up import platform, servers
    from dynamo_ctl.output import console

    loaded = settings.with_cluster(settings.load(config), kubeconfig, context)
    settings.start_logging(loaded, for_people=True)
    with servers.as_ctl_errors():
        interrupts.serve(platform.up(loaded, folder.absolute(), console(), local=local))
