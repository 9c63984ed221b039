"""`dynamoctl crds`."""

from __future__ import annotations

from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import Context, Kubeconfig


def crds(
    install: Annotated[bool, typer.Option("--install", help="Install them in the cluster instead.")] = False,
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="With --install: seconds to wait for the API server."),
    ] = 0.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the custom resource definitions as YAML, or install them.

    `dynamoctl up` installs them by itself; this is for clusters where services run on their own.
    """
    if install:
        from dynamo_ctl import interrupts  # noqa: PLC0415 - quick help
        from dynamo_ctl.commands.crds.definitions import install_definitions  # noqa: PLC0415

        for name in interrupts.run(install_definitions(kubeconfig, context, wait=wait)):
            typer.echo(f"{name} installed")
        return
    from dynamo_shared.api.crds import crd_manifests  # noqa: PLC0415
    from dynamo_shared.api.yaml_output import to_yaml  # noqa: PLC0415

    typer.echo(to_yaml(*crd_manifests()), nl=False)
