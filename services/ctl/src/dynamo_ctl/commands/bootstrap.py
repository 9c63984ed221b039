"""`dynamoctl bootstrap`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Context, Kubeconfig

bootstrap = typer.Typer(no_args_is_help=True)


@bootstrap.callback()
def _group() -> None:
    """What an installation needs before its services start; the chart runs it."""


@bootstrap.command()
def credentials(
    specification: Annotated[Path, typer.Argument(metavar="FILE", help="Which Secrets there are to be (YAML).")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Their namespace; else that of the context.")
    ] = "",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create the certificates and passwords of NATS, etcd and services that are missing.

    What is there is kept, unless it ends within 30 days or `rotation` in FILE has changed.
    """
    from dynamo_ctl import interrupts  # noqa: PLC0415 - quick help
    from dynamo_ctl.bootstrap.carry_out import carry_out  # noqa: PLC0415
    from dynamo_ctl.bootstrap.specification import load  # noqa: PLC0415

    for name, outcome in interrupts.run(carry_out(load(specification), namespace, kubeconfig, context)):
        typer.echo(f"Secret {name} {outcome}")
