"""`dynamoctl demo`."""

from pathlib import Path
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Folder
from dynamo_ctl.running_platform import FOLDER


def demo(
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILE|FOLDER", help="Manifests to deploy. Default: those of examples/."),
    ] = None,
    leave: Annotated[bool, typer.Option("--exit", help="End after success instead of waiting for Ctrl-C.")] = False,
    timeout: Annotated[
        float, typer.Option(min=1, metavar="SECONDS", help="Seconds to wait until the graphs are successful.")
    ] = 120.0,
    folder: Folder = FOLDER,
) -> None:
    """Show the platform at work: a local Kubernetes, the platform on it, and example graphs while they start.

    The first run downloads or builds the Kubernetes programs and keeps them for the next run. KWOK simulates GPU nodes
    and pods: no engine runs, but everything else is real.
    """
    from dynamo_ctl import interrupts, settings
    from dynamo_ctl.commands.demo import run
    from dynamo_ctl.commands.up.servers import as_ctl_errors
    from dynamo_ctl.output import console

    settings.quiet()
    manifests = run.find_manifests(files or [])
    with as_ctl_errors():
        interrupts.run(run.demo(manifests, folder.absolute(), timeout, console(), leave=leave))
