"""`dynamoctl crds`."""

from pathlib import Path
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import ApiVersion, Context, Kubeconfig


def crds(
    *,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="FILE",
            help="With --check: manifests, or folders of manifests; - for standard input.",
        ),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Install the definitions in the cluster instead of printing them.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="List the fields that stored objects and manifests would lose, and fail if there are any."
        ),
    ] = False,
    files_only: Annotated[
        bool, typer.Option("--files-only", help="With --check: check only the files, and no cluster.")
    ] = False,
    store: Annotated[
        ApiVersion | None,
        typer.Option(
            "--store", help="Store all objects in this version of the API, before an operator that needs it starts."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --store: change nothing, and print what would be stored.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option("--wait", metavar="SECONDS", min=0, help="With --install: seconds to wait for the API server."),
    ] = 0.0,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Print the custom resource definitions as YAML, install them, or prepare a move from or to a Dynamo operator.

    `dynamoctl up` installs the definitions itself. Use this command on clusters where the services run on their own.
    --check changes nothing: it lists the fields that a newer Dynamo operator knows, and that these definitions drop at
    the next write. --store v1alpha1 prepares the move to an operator before 1.5 (docs/moving.md).
    """
    if sum((install, check, store is not None)) > 1:
        raise typer.BadParameter("--install, --check and --store exclude each other: run one after the other")
    if dry_run and store is None:
        raise typer.BadParameter("--dry-run requires --store: add --store, or remove --dry-run")
    if wait and not install:
        raise typer.BadParameter("--wait requires --install: add --install, or remove --wait")
    if (files or files_only) and not check:
        raise typer.BadParameter("FILE and --files-only require --check: add --check, or remove them")
    if files_only and not files:
        raise typer.BadParameter("--files-only requires a file: name one, or remove --files-only to check a cluster")
    if check:
        _check(files or [], kubeconfig, context, files_only=files_only)
        return
    if store is not None:
        _store(store, kubeconfig, context, dry_run=dry_run)
        return
    if install:
        from dynamo_ctl import interrupts
        from dynamo_ctl.commands.crds.definitions import install_definitions

        for name in interrupts.run(install_definitions(kubeconfig, context, wait=wait)):
            typer.echo(f"{name} installed")
        return
    from dynamo_shared.api.crds import crd_manifests
    from dynamo_shared.api.yaml_output import to_yaml

    typer.echo(to_yaml(*crd_manifests()), nl=False)


def _check(files: list[Path], kubeconfig: Path | None, context: str | None, *, files_only: bool) -> None:
    from dynamo_ctl import files as texts
    from dynamo_ctl import interrupts, targets
    from dynamo_ctl.commands.crds import losses
    from dynamo_ctl.errors import CtlError
    from dynamo_ctl.output import echo

    results = [(f"{title}: ", checked) for title, checked in texts.each(files, losses.in_text)]
    if not files_only:
        results.append(("", interrupts.run(losses.in_cluster(*targets.cluster(kubeconfig, context)))))
    lines = [f"{where}{line}" for where, checked in results for line in checked.findings]
    for line in lines:
        echo(line)
    if lines:
        raise CtlError(
            f"fields that would be lost or refused: {len(lines)}; do what each line says before you replace the "
            "definitions (docs/moving.md)"
        )
    objects = sum(checked.objects for _, checked in results)
    echo(f"no field would be lost under the definitions of this platform (objects: {objects})")


def _store(version: ApiVersion, kubeconfig: Path | None, context: str | None, *, dry_run: bool) -> None:
    from dynamo_ctl import interrupts, targets
    from dynamo_ctl.commands.crds.storing import store
    from dynamo_ctl.output import echo

    async def work() -> None:
        async with await targets.cluster(kubeconfig, context).client() as client:
            await store(client, version, echo, dry_run=dry_run)

    interrupts.run(work())
