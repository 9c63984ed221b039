"""`dynamoctl deploy`, `estimate` and `logs`: over the REST API, or without any server."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from dynamo_ctl.commands.parameters import Config, Kubeconfig, LineOutput

Server = Annotated[
    str,
    typer.Option(
        "--server", metavar="URL", envvar="DYNAMO_SERVER_URL", help="The platform's REST API.", show_default=False
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="Bearer token; else $DYNAMO_TOKEN or the kubeconfig's.", show_default=False
    ),
]
Namespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace.")]
File = Annotated[
    Path | None,
    typer.Option(
        "--file", "-f", metavar="FILE", help="Intent as YAML or JSON; - is standard input.", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", help="Model: name on Hugging Face, or path.", show_default=False),
]
Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the graph or request.", show_default=False)]
Backend = Annotated[
    str | None, typer.Option(metavar="NAME", help="vllm, sglang, trtllm; auto for objectives.", show_default=False)
]
Ttft = Annotated[
    float | None, typer.Option("--ttft", metavar="MS", help="Time to the first token.", show_default=False)
]
Itl = Annotated[float | None, typer.Option("--itl", metavar="MS", help="Time between tokens.", show_default=False)]
Gpus = Annotated[
    int | None,
    typer.Option("--gpus", metavar="N", help="GPUs of a replica, or in all with an objective.", show_default=False),
]
Sku = Annotated[
    str | None, typer.Option("--gpu", metavar="KIND", help="Kind of GPU, such as h100_sxm.", show_default=False)
]
NO_SERVER = "which server? --server https://HOST, or $DYNAMO_SERVER_URL; `dynamoctl deploy --dry-run client` needs none"


class DryRun(StrEnum):
    """How far a deployment goes without being stored."""

    CLIENT = "client"
    SERVER = "server"


def deploy(
    name: Name = None,
    *,
    file: File = None,
    model: Model = None,
    backend: Backend = None,
    ttft: Ttft = None,
    itl: Itl = None,
    gpus: Gpus = None,
    gpu: Sku = None,
    replicas: Annotated[int | None, typer.Option(min=0, metavar="N", help="Workers.", show_default=False)] = None,
    namespace: Namespace = "default",
    dry_run: Annotated[
        DryRun | None,
        typer.Option("--dry-run", help="client: print the manifest, with no server. server: let the cluster check it."),
    ] = None,
    key: Annotated[
        str, typer.Option("--request", metavar="ID", help="Your name for this request: again, it creates nothing.")
    ] = "",
    output: Annotated[LineOutput, typer.Option("--output", "-o", help="For people, or as JSON.")] = LineOutput.TABLE,
    server: Server = "",
    token_file: TokenFile = None,
    config: Config = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Deploy a model: a graph as described, or with --ttft and --itl a graph that keeps these times.

    Fields are those of the intent (docs/dynadmin.md); options stand in place of what the file says.
    """
    from dynamo_ctl import deploying, interrupts, remote, settings  # noqa: PLC0415 - quick help
    from dynamo_ctl.errors import CtlError, ExitCode  # noqa: PLC0415

    settings.quiet()
    given = _given(name, model, backend, times=(ttft, itl), gpus=(gpus, gpu), replicas=replicas, new=file is None)
    sent = deploying.intent_of(file, given)
    as_json = output is LineOutput.JSON
    if dry_run is DryRun.CLIENT:
        deploying.offline(sent, namespace, settings.load(config), typer.echo, as_json=as_json)
        return
    if not server:
        raise CtlError(NO_SERVER, ExitCode.USAGE)

    async def run() -> None:
        async with remote.Remote.open(server, token_file, kubeconfig) as api:
            mode = dry_run.value if dry_run is not None else ""
            await deploying.deploy(api, namespace, sent, typer.echo, dry_run=mode, as_json=as_json, key=key)

    interrupts.run(run())


def estimate(
    name: Name = None,
    *,
    file: File = None,
    model: Model = None,
    backend: Backend = None,
    ttft: Ttft = None,
    itl: Itl = None,
    gpus: Gpus = None,
    gpu: Sku = None,
    namespace: Namespace = "default",
    output: Annotated[LineOutput, typer.Option("--output", "-o", help="For people, or as JSON.")] = LineOutput.TABLE,
    server: Server = "",
    token_file: TokenFile = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """What an intent is expected to do: times, throughput, GPUs, and the Pareto points to choose from."""
    from dynamo_ctl import deploying, interrupts, remote, settings  # noqa: PLC0415 - quick help
    from dynamo_ctl.errors import CtlError, ExitCode  # noqa: PLC0415

    settings.quiet()
    given = _given(
        name or "estimate", model, backend, times=(ttft, itl), gpus=(gpus, gpu), replicas=None, new=file is None
    )
    sent = deploying.intent_of(file, given)
    if not server:
        raise CtlError(NO_SERVER, ExitCode.USAGE)

    async def run() -> None:
        async with remote.Remote.open(server, token_file, kubeconfig) as api:
            as_json = output is LineOutput.JSON
            await deploying.estimate(api, namespace, sent, typer.echo, as_json=as_json)

    interrupts.run(run())


def logs(
    graph: Annotated[str, typer.Argument(metavar="GRAPH", help="DynamoGraphDeployment.", show_default=False)],
    *,
    component: Annotated[str, typer.Option(metavar="NAME", help="Pods of one component.")] = "",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new lines.")] = False,
    tail: Annotated[int, typer.Option(min=0, max=10_000, metavar="N", help="Last lines of each container.")] = 100,
    namespace: Namespace = "default",
    server: Server = "",
    token_file: TokenFile = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Logs of all pods of a graph, merged."""
    from dynamo_ctl import deploying, interrupts, remote, settings  # noqa: PLC0415 - quick help
    from dynamo_ctl.errors import CtlError, ExitCode  # noqa: PLC0415

    settings.quiet()
    if not server:
        raise CtlError(NO_SERVER, ExitCode.USAGE)

    async def run() -> None:
        async with remote.Remote.open(server, token_file, kubeconfig) as api:
            await deploying.logs(api, namespace, graph, component, typer.echo, follow=follow, tail=tail)

    interrupts.run(run())


def _given(
    name: str | None,
    model: str | None,
    backend: str | None,
    *,
    times: tuple[float | None, float | None],
    gpus: tuple[int | None, str | None],
    replicas: int | None,
    new: bool,
) -> dict[str, Any]:
    """What the command line says, as an intent; without a file it is an objective where times are given."""
    (ttft, itl), (count, kind) = times, gpus
    objective = ttft is not None or itl is not None
    mode = ("objective" if objective else "graph") if new or objective else None
    hardware = {"gpuSku": kind, "totalGpus": count} if objective else {"gpuProduct": kind, "gpusPerReplica": count}
    return {
        "mode": mode,
        "name": name,
        "model": {"name": model},
        "backend": backend,
        "hardware": hardware,
        "objective": {"ttftMs": ttft, "itlMs": itl},
        "serving": {"replicas": {"worker": replicas}},
    }
