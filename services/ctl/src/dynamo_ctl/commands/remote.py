"""Options of commands that talk to the REST API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
NO_SERVER = "which server? --server https://HOST, or $DYNAMO_SERVER_URL"
