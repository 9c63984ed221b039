"""Options that are an intent, declared once for the commands that take one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the graph or request.", show_default=False)]
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


@dataclass(frozen=True, slots=True)
class IntentOptions:
    """The intent as the command line says it."""

    name: Name = None
    file: File = None
    model: Model = None
    backend: Backend = None
    ttft: Ttft = None
    itl: Itl = None
    gpus: Gpus = None
    gpu: Sku = None

    def intent(self, *, name: str | None = None, replicas: int | None = None) -> dict[str, Any]:
        """The intent: a file's, and what options say in place of it. `name` stands in for none. CtlError."""
        from dynamo_ctl.commands.deploy import deployment  # noqa: PLC0415 - quick help

        objective = self.ttft is not None or self.itl is not None
        # Without a file it is an objective where times are given.
        mode = ("objective" if objective else "graph") if self.file is None or objective else None
        hardware = (
            {"gpuSku": self.gpu, "totalGpus": self.gpus}
            if objective
            else {"gpuProduct": self.gpu, "gpusPerReplica": self.gpus}
        )
        given = {
            "mode": mode,
            "name": self.name or name,
            "model": {"name": self.model},
            "backend": self.backend,
            "hardware": hardware,
            "objective": {"ttftMs": self.ttft, "itlMs": self.itl},
            "serving": {"replicas": {"worker": replicas}},
        }
        return deployment.intent_of(self.file, given)


def taking_intent(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose first parameter is an IntentOptions, for typer: with the options in its place."""
    own = inspect.signature(command, eval_str=True)
    types = get_type_hints(IntentOptions, include_extras=True)
    names = [each.name for each in fields(IntentOptions)]

    @wraps(command)
    def called(**given: Any) -> None:
        command(IntentOptions(**{name: given.pop(name) for name in names}), **given)

    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=types[name]) for name in names
    ]
    parameters = [*options, *list(own.parameters.values())[1:]]
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called
