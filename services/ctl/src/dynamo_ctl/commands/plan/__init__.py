"""`dynamoctl plan`: simulates planning without any cluster."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from dynamo_ctl.commands.parameters import with_options

plan = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)

TRACES = "sine:LOW,HIGH,PERIOD · ladder:RATExSECONDS,... · bursts:LOW,HIGH,EVERY,LENGTH · constant:RATE"


@plan.callback()
def about() -> None:
    """Simulate planning, without any cluster."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """What to simulate, and how."""

    config: Annotated[
        Path,
        typer.Option(
            "--config", metavar="FILE", help="PlannerConfig of the graph, YAML or JSON; - for standard input."
        ),
    ]
    profiles: Annotated[
        list[Path],
        typer.Option(
            "--profile",
            metavar="PATH",
            help="Measured profile: .npz or .json files, or the folder of a profiler. Repeatable.",
        ),
    ]
    trace: Annotated[
        str,
        typer.Option(
            "--trace", metavar="TRACE", help=f"Mooncake JSONL file, or random requests: {TRACES} (requests/s, s)."
        ),
    ]
    policies: Annotated[
        list[str], typer.Option("--policy", metavar="NAME", help="adaptive or reference. Repeatable.")
    ] = field(default_factory=lambda: ["adaptive", "reference"])
    splits: Annotated[
        list[str],
        typer.Option(
            "--static",
            metavar="SPLIT",
            help="Replicas that never change: 2P3D, 4 (one pool), or best. Repeatable.",
        ),
    ] = field(default_factory=list)
    startup: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time until a new replica serves.")] = 60.0
    duration: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=1,
            help="Simulated time. Default: to the end of the trace; 1800 for sine, bursts and constant.",
        ),
    ] = None
    isl: Annotated[int, typer.Option(min=1, metavar="N", help="Input tokens of generated requests.")] = 3000
    osl: Annotated[int, typer.Option(min=1, metavar="N", help="Output tokens of generated requests.")] = 300
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed of generated requests.")] = 0
    max_batched_tokens: Annotated[
        int, typer.Option(min=1, metavar="N", help="Prompt tokens of an iteration (max_num_batched_tokens).")
    ] = 8192
    max_seqs: Annotated[int, typer.Option(min=1, metavar="N", help="Sequences of an engine (max_num_seqs).")] = 1024
    transfer: Annotated[
        float,
        typer.Option(metavar="MICROSECONDS", min=0, help="Time to move the KV cache of a token to a decode engine."),
    ] = 2.0
    cluster_gpus: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="GPUs of the cluster. Default: no limit.")
    ] = None
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write an HTML report with plots."),
    ] = None


@plan.command(short_help="Simulate a graph under a trace, planned by policies and static splits.")
@with_options
def replay(options: ReplayRequest) -> None:
    """Simulate a graph under a trace, and print the results for policies and for fixed splits of prefill and decode.

    The simulation includes router, queues, chunked prefill, KV transfer, continuous batching, start-up and draining.
    Iterations take the times of the profile. Times to first token include all waiting. "within both" is the share of
    requests whose time to first token and mean time between tokens are within ttft_ms and itl_ms of the configuration.
    """
    from dynamo_ctl import settings
    from dynamo_ctl.commands.plan import simulation
    from dynamo_ctl.output import echo, echo_error

    settings.quiet()
    simulation.run(options, echo, echo_error)
