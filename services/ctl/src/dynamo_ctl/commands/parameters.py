"""Options that several commands have, with one meaning and one help text each."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

#: A label of DNS (RFC 1123).
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def valid_namespace(name: str | None) -> str | None:
    """A callback of options. BadParameter for what no namespace can be called; "" and None are what is configured."""
    if name and not _NAMESPACE.fullmatch(name):
        allowed = "up to 63 lower-case letters, digits and '-', and begins and ends with a letter or digit"
        raise typer.BadParameter(f"{name!r} is not a valid name of a namespace, which has {allowed}")
    return name


Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig; else $KUBECONFIG, ~/.kube/config or the pod's own account.",
        show_default=False,
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context", metavar="NAME", help="Context of the kubeconfig; else its current one.", show_default=False
    ),
]
#: Of commands that read one cluster with the rights of the kubeconfig.
ContextNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace; by default that of the context.",
        show_default=False,
        callback=valid_namespace,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="OperatorConfiguration (docs/reference/configuration.md); DYNAMO_* variables override it.",
        show_default=False,
    ),
]
Nats = Annotated[
    str | None,
    typer.Option(
        "--nats",
        metavar="URL",
        help="NATS server; by default that of --config, or of the platform in this folder.",
        show_default=False,
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Name of the cluster in the subjects; by default as configured.", show_default=False
    ),
]
Folder = Annotated[
    Path,
    typer.Option("--dir", metavar="FOLDER", help="Where servers of this machine keep their data and logs."),
]


class Output(StrEnum):
    """For people or for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class LineOutput(StrEnum):
    """For people or for programs, one line each."""

    TABLE = "table"
    JSON = "json"


JsonOutput = Annotated[LineOutput, typer.Option("--output", "-o", help="For people, or as JSON.")]
