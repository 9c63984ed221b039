"""The options of an intent, declared once for all commands that accept an intent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the graph or request.")]
File = Annotated[
    Path | None,
    typer.Option("--file", "-f", metavar="FILE", help="Intent as YAML or JSON; - for standard input."),
]
Model = Annotated[
    str | None,
    typer.Option("--model", metavar="MODEL", help="Model: name on Hugging Face, or path."),
]
Backend = Annotated[str | None, typer.Option(metavar="NAME", help="vllm, sglang or trtllm; auto for objectives.")]
Ttft = Annotated[float | None, typer.Option("--ttft", metavar="MS", help="Time to the first token.")]
Itl = Annotated[float | None, typer.Option("--itl", metavar="MS", help="Time between tokens.")]
Gpus = Annotated[
    int | None,
    typer.Option("--gpus", metavar="N", help="GPUs of a replica; with an objective, GPUs in total."),
]
GpusPerNode = Annotated[
    int | None,
    typer.Option(
        "--gpus-per-node",
        metavar="N",
        help="GPUs of a node: a larger replica spans several nodes. Default with an objective: the cluster's value.",
    ),
]
Sku = Annotated[str | None, typer.Option("--gpu", metavar="KIND", help="Kind of GPU, such as h100_sxm.")]


@dataclass(frozen=True, slots=True)
class IntentOptions:
    """The intent on the command line."""

    name: Name = None
    file: File = None
    model: Model = None
    backend: Backend = None
    ttft: Ttft = None
    itl: Itl = None
    gpus: Gpus = None
    gpus_per_node: GpusPerNode = None
    gpu: Sku = None

    def intent(self, *, name: str | None = None, replicas: int | None = None) -> dict[str, Any]:
        """The intent of the file, overridden by options. `name`: used if there is no other name. Raises CtlError."""
        from dynamo_ctl.commands.deploy import deployment
        from dynamo_ctl.errors import CtlError, ExitCode

        with_times = self.ttft is not None or self.itl is not None
        # An estimate, which sets `name`, may also cover every backend.
        chosen = self.backend or with_times or name
        required = {"NAME": self.name or name, "--model MODEL": self.model, "--backend NAME (or --ttft MS)": chosen}
        missing = [each for each, value in required.items() if not value]
        if self.file is None and missing:
            raise CtlError(f"missing: {', '.join(missing)}; or give an intent with -f FILE", ExitCode.USAGE)
        written = deployment.intent_of(self.file) if self.file is not None else {"mode": "graph"}
        mode = "objective" if with_times else written.get("mode")
        hardware = (
            {"gpuSku": self.gpu, "totalGpus": self.gpus}
            if mode == "objective"
            else {"gpuProduct": self.gpu, "gpusPerReplica": self.gpus}
        )
        given = {
            "mode": mode,
            "name": self.name or name,
            "model": {"name": self.model},
            "backend": self.backend,
            "hardware": {**hardware, "gpusPerNode": self.gpus_per_node},
            "objective": {"ttftMs": self.ttft, "itlMs": self.itl},
            "serving": {"replicas": {"worker": replicas}},
        }
        return deployment.merged(written, given)
