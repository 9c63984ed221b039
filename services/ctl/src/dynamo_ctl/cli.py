"""The command line. Each command is one package or module of `commands/`. Errors become one line and an exit code here.

Commands import their modules only when they are called, so that --help and completion are quick.
"""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from dynamo_ctl.commands.bootstrap import bootstrap
from dynamo_ctl.commands.chat import chat
from dynamo_ctl.commands.convert import convert
from dynamo_ctl.commands.crds import crds
from dynamo_ctl.commands.demo import demo
from dynamo_ctl.commands.deploy import deploy, estimate, logs
from dynamo_ctl.commands.dgdr import dgdr
from dynamo_ctl.commands.discovered import models, workers
from dynamo_ctl.commands.events import events
from dynamo_ctl.commands.get import get
from dynamo_ctl.commands.nats_config import nats_config
from dynamo_ctl.commands.plan import plan
from dynamo_ctl.commands.render import render
from dynamo_ctl.commands.run import run
from dynamo_ctl.commands.scale import scale
from dynamo_ctl.commands.up import up
from dynamo_ctl.errors import ExitCode, explain

PROGRAM = "dynamoctl"

app = typer.Typer(
    name=PROGRAM,
    help="Run, try and inspect Dynamo Platform.",
    epilog="Exit codes: 0 done, 1 refused or not valid, 2 wrong usage, 3 out of reach, 4 not ready in time, 70 a bug, "
    "130 Ctrl-C.",
    no_args_is_help=True,
    # Help in boxes costs 0.15 s of imports each time.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
#: Each command with its text in the list of commands (a terminal of 80 columns shows 60 characters).
COMMANDS: tuple[tuple[Callable[..., None], str], ...] = (
    (demo, "A local Kubernetes, the platform, and example graphs."),
    (up, "The whole platform on this machine, against a cluster."),
    (run, "Services in the foreground, as containers run them."),
    (render, "Objects that manifests become, without any server."),
    (convert, "Manifests in another API version, without any server."),
    (get, "Graphs and their components."),
    (workers, "Workers that Dynamo's discovery knows."),
    (models, "Models that these workers serve together."),
    (events, "Events of the platform, stored and new."),
    (deploy, "A model, as a graph or as an objective, over the REST API."),
    (estimate, "The expected performance of a deployment, simulated."),
    (logs, "Logs of a graph's pods, merged, over the REST API."),
    (chat, "Chat with the model of a graph, over the REST API."),
    (scale, "Change the replicas of a graph, within budgets and limits."),
    (nats_config, "The configuration of a NATS server: one user for each service."),
    (crds, "Resource definitions: print or install them."),
)
for command, summary in COMMANDS:
    app.command(short_help=summary)(command)
app.add_typer(bootstrap, name="bootstrap", help="Chart commands: create credentials, try an installation.")
app.add_typer(plan, name="plan", help="Simulate planning without a cluster.")
app.add_typer(dgdr, name="dgdr", help="Draw or deploy the profiling result of a request.")


def _version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version  # slow, and rarely needed

        typer.echo(f"{PROGRAM} {version('dynamo-ctl')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")] = False,
    version: Annotated[  # noqa: ARG001 - the callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Run, try and inspect Dynamo Platform."""
    context.obj = debug
    if debug:
        os.environ[DEBUG] = "1"


DEBUG = "DYNAMOCTL_DEBUG"


def main() -> None:
    """Entry point of `dynamoctl`."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        # The caller may have closed these streams (`>&-`): sockets would get their numbers. They stay open until the
        # exit.
        stream: Any = getattr(sys, name) or Path(os.devnull).open(mode)  # noqa: SIM115
        # UTF-8 in every locale, like kubectl: objects and logs may contain any characters.
        stream.reconfigure(encoding="utf-8", errors="strict" if mode == "r" else "backslashreplace")
        setattr(sys, name, stream)
    sys.exit(invoke(sys.argv[1:]))


def invoke(arguments: Sequence[str]) -> int:
    """Run a command line; returns the exit code, with errors printed."""
    try:
        result = app(args=list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        return ExitCode.INTERRUPTED
    except SystemExit as ended:
        # typer converts a BrokenPipeError into this exception.
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        # The reader of the output (head, less) closed it. Without this, Python reports an error when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except Exception as error:
        return _failed(error)
    return int(result) if isinstance(result, int) else ExitCode.OK


def _failed(error: Exception) -> int:
    if os.environ.get(DEBUG):
        raise error
    if hasattr(error, "format_message"):  # typer's own: the command line is wrong
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else PROGRAM
        message = str(error.format_message()).replace("Value error, ", "")
        # Without arguments, typer raises an error that stands for the help.
        is_help = type(error).__name__ == "NoArgsIsHelpError"
        see = " See" if message.endswith("?") else "; see"
        line = message if is_help else f"{where}: {message.rstrip('.')}{see} {where} --help"
        typer.echo(line, err=not is_help)
        return ExitCode.USAGE
    from dynamo_ctl.output import echo_error  # a command that succeeds may not need it

    code, text = explain(error)
    for line in text.split("\n"):
        echo_error(f"{PROGRAM}: {line}")
    return code
