"""`dynamoctl bootstrap`."""

from pathlib import Path
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Context, Kubeconfig, Namespace, valid_namespace

bootstrap = typer.Typer(no_args_is_help=True)

GraphNamespace = Annotated[
    str,
    typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the graph.", callback=valid_namespace),
]


@bootstrap.callback()
def _group() -> None:
    """Prepare and check an installation. The chart runs these commands."""


@bootstrap.command(short_help="Create missing certificates and passwords.")
def credentials(
    specification: Annotated[Path, typer.Argument(metavar="FILE", help="Specification of the Secrets (YAML).")],
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create the missing certificates and passwords of NATS, etcd and the services.

    Existing ones stay, unless they expire within 30 days or `rotation` in FILE has changed.
    """
    from dynamo_ctl import interrupts
    from dynamo_ctl.commands.bootstrap.carry_out import carry_out
    from dynamo_ctl.commands.bootstrap.specification import load

    for name, outcome in interrupts.run(carry_out(load(specification), namespace or "", kubeconfig, context)):
        typer.echo(f"Secret {name} {outcome}")


@bootstrap.command(name="try", short_help="Create a small graph, chat with it, and delete it.")
def try_(
    *,
    namespace: GraphNamespace,
    image: Annotated[str, typer.Option(metavar="IMAGE", help="Image of the Dynamo runtime.")],
    model: Annotated[
        str,
        typer.Option(metavar="MODEL", help="Model that a mocker pretends to serve: a name or a folder of the image."),
    ],
    name: Annotated[str, typer.Option(metavar="NAME", help="Name of the graph.")] = "dynamo-trial",
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for an answer.")] = 600,
    webhooks: Annotated[
        bool, typer.Option("--webhooks", help="Also check that the webhooks refuse an invalid graph.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Create a small graph, request a chat completion from it, and delete it. `helm test` runs this in the cluster."""
    from dynamo_shared.api.resources import ObjectKey

    from dynamo_ctl import interrupts
    from dynamo_ctl.commands.bootstrap import trial

    desired = trial.Trial(ObjectKey(namespace, name), image, model, timeout, webhooks)
    typer.echo(f"answered: {interrupts.run(trial.carry_out(desired, kubeconfig, context))}")


@bootstrap.command(short_help="Check that the webhooks refuse an invalid graph.")
def webhooks(
    *,
    namespace: GraphNamespace,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="How long to wait for the webhooks.")] = 600,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check that the webhooks refuse an invalid graph. It is not created. The chart runs this after an installation."""
    from dynamo_ctl import interrupts
    from dynamo_ctl.commands.bootstrap.webhook_check import check

    interrupts.run(check(namespace, timeout, kubeconfig, context))
    typer.echo("the webhooks answer")
