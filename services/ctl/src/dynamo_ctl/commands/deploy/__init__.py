"""`dynamoctl deploy`, `estimate` and `logs`: over the REST API, or without any server."""

from enum import StrEnum
from typing import Annotated

import typer

from dynamo_ctl.commands.deploy.intent import IntentOptions
from dynamo_ctl.commands.parameters import Config, Graph, JsonOutput, LineOutput, Namespace, with_options
from dynamo_ctl.commands.remote import ApiOptions


class DryRun(StrEnum):
    """Where a dry run checks the deployment."""

    CLIENT = "client"
    SERVER = "server"


@with_options
def deploy(
    options: IntentOptions,
    *,
    replicas: Annotated[int | None, typer.Option(min=0, metavar="N", help="Workers.")] = None,
    namespace: Namespace = None,
    dry_run: Annotated[
        DryRun | None,
        typer.Option(
            "--dry-run", help="client: print the manifest without a server. server: let the cluster check it."
        ),
    ] = None,
    key: Annotated[
        str,
        typer.Option(
            "--request", metavar="ID", help="Key of this request: a repeated command with the same key creates nothing."
        ),
    ] = "",
    output: JsonOutput = LineOutput.TABLE,
    config: Config = None,
    api: ApiOptions,
) -> None:
    """Deploy a model: a graph as described, or with --ttft and --itl a graph that keeps these latencies.

    The fields of FILE are those of an intent (docs/dynadmin.md). Options override FILE.
    """
    from dynamo_ctl import settings, targets
    from dynamo_ctl.commands.deploy import deployment
    from dynamo_ctl.output import echo, echo_error

    if config is not None and dry_run is not DryRun.CLIENT:
        raise typer.BadParameter("requires --dry-run client: a server has its own settings", param_hint="--config")
    sent = options.intent(replicas=replicas)
    as_json = output is LineOutput.JSON
    if dry_run is DryRun.CLIENT:
        from dynamo_ctl.commands.deploy import offline  # takes a second, and is not needed with a server

        settings.quiet()
        namespace = namespace or targets.cluster(api.kubeconfig, None).namespace()
        offline.deploy(sent, namespace, settings.load(config), echo, remark=echo_error, as_json=as_json)
        return
    mode = dry_run.value if dry_run is not None else ""
    api.run(
        lambda remote: deployment.deploy(remote, sent, echo, remark=echo_error, dry_run=mode, as_json=as_json, key=key),
        namespace,
        otherwise="; --dry-run client needs no server",
    )


@with_options
def estimate(
    options: IntentOptions,
    *,
    namespace: Namespace = None,
    output: JsonOutput = LineOutput.TABLE,
    api: ApiOptions,
) -> None:
    """Estimate an intent: latencies, throughput, GPUs, and the Pareto points to choose from."""
    from dynamo_ctl.commands.deploy import deployment
    from dynamo_ctl.output import echo, echo_error

    sent = options.intent(name="estimate")
    as_json = output is LineOutput.JSON
    api.run(lambda remote: deployment.estimate(remote, sent, echo, remark=echo_error, as_json=as_json), namespace)


@with_options
def logs(
    graph: Graph,
    *,
    component: Annotated[str, typer.Option(metavar="NAME", help="Pods of one component.")] = "",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new lines as they are written, also of pods that start later.")
    ] = False,
    tail: Annotated[
        int, typer.Option(min=0, max=10_000, metavar="N", help="Number of last lines of each container.")
    ] = 100,
    namespace: Namespace = None,
    api: ApiOptions,
) -> None:
    """Print the merged logs of all pods of a graph."""
    from dynamo_ctl.commands.deploy import deployment
    from dynamo_ctl.output import echo_error, echo_log

    api.run(
        lambda remote: deployment.logs(remote, graph, component, echo_log, remark=echo_error, follow=follow, tail=tail),
        namespace,
        follow=follow,
    )
