"""`dynamoctl dgdr`: draws and applies the result of profiling for a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynamo_ctl.commands.parameters import Context, Namespace, with_options
from dynamo_ctl.commands.remote import OptionalApiOptions, refuse_with_server

if TYPE_CHECKING:
    from dynamo_ctl.remote import Remote

dgdr = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)

Name = Annotated[str, typer.Argument(metavar="NAME", help="DynamoGraphDeploymentRequest.")]


def _drawable(file: Path | None) -> Path | None:
    if file is not None and file.suffix.lower() not in (".png", ".html"):
        raise typer.BadParameter(
            f"{str(file)!r} is not the name of an image or page: use a name that ends in .png or .html"
        )
    return file


@dgdr.command(short_help="Draw the Pareto front of a request, with figures.")
@with_options
def plot(
    name: Name,
    *,
    namespace: Namespace = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="Write the drawing to FILE.png or FILE.html.", callback=_drawable
        ),
    ] = None,
    width: Annotated[int, typer.Option(min=40, max=200, metavar="N", help="Width of the drawing in characters.")] = 78,
    api: OptionalApiOptions,
    context: Context = None,
) -> None:
    """Draw the result of profiling: tokens per second per GPU against those per request, and a table of points.

    Points have numbers for `dynamoctl dgdr apply NAME --point N`. A star shows the selected point.
    """
    from dynamo_ctl import interrupts, settings, targets
    from dynamo_ctl.commands.dgdr import by_api, points
    from dynamo_ctl.output import echo

    if api.is_chosen():
        refuse_with_server(context=context)

        async def work(remote: Remote) -> None:
            request = await by_api.request_object(remote, name)
            points.plot(request, echo, file=file, width=width)

        api.run(work, namespace)
        return
    settings.quiet()
    request = interrupts.run(points.read(targets.cluster(api.kubeconfig, context), name, namespace))
    points.plot(request, echo, file=file, width=width)


@dgdr.command(short_help="Deploy a graph of the result.")
@with_options
def apply(
    name: Name,
    *,
    namespace: Namespace = None,
    point: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of the point. Default: the selected point."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only let the cluster check the graph, and print it.")
    ] = False,
    api: OptionalApiOptions,
    context: Context = None,
) -> None:
    """Create the graph of a point. If a graph was created for the request before, replace its spec.

    A graph of the same name that was not created for this request stays unchanged.
    """
    from dynamo_ctl import interrupts, settings, targets
    from dynamo_ctl.commands.dgdr import by_api, points
    from dynamo_ctl.output import echo, echo_error

    if api.is_chosen():
        refuse_with_server(context=context)
        api.run(lambda remote: by_api.promote(remote, name, point, echo, dry_run=dry_run), namespace)
        return
    settings.quiet()
    where = targets.cluster(api.kubeconfig, context)
    interrupts.run(points.apply(where, name, namespace, point, echo, remark=echo_error, dry_run=dry_run))
