"""Options that several commands share, each with one meaning and one help text."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

if TYPE_CHECKING:
    from dynamo_ctl.nats_targets import NatsTarget

#: A DNS label (RFC 1123).
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def valid_namespace(name: str | None) -> str | None:
    """Callback of options. Raises BadParameter for an invalid namespace. "" and None pass: the configured namespace."""
    if name and not _NAMESPACE.fullmatch(name):
        allowed = "up to 63 lower-case letters, digits and '-', with a letter or digit at each end"
        raise typer.BadParameter(f"{name!r} is not a valid name of a namespace: use {allowed}")
    return name


def graph_name(text: str) -> str:
    """Callback of arguments: a graph's name, also from `dgd/NAME`. Raises BadParameter for another kind, or no name."""
    from dynamo_ctl.kinds import short_name

    kind, slash, name = text.rpartition("/")
    if slash and (short_name(kind) != "dgd" or not name):
        raise typer.BadParameter(f"{text!r} is not a graph: write NAME or dgd/NAME")
    return name


Graph = Annotated[
    str, typer.Argument(metavar="GRAPH", help="DynamoGraphDeployment: NAME or dgd/NAME.", callback=graph_name)
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        help="kubeconfig. Default: $KUBECONFIG, ~/.kube/config or the pod's own account.",
    ),
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="Context of the kubeconfig. Default: its current context."),
]
#: Without it, `ClusterOptions.namespace` is the rule of all commands.
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Namespace. Default: the namespace of the kubeconfig's context.",
        callback=valid_namespace,
    ),
]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", help="In all namespaces.")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="OperatorConfiguration (docs/reference/configuration.md); DYNAMO_* variables override it.",
    ),
]
Nats = Annotated[
    str | None,
    typer.Option(
        "--nats",
        metavar="URL",
        help="NATS server. Default: the server of --config, or of the platform in this folder.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Name of the cluster in the subjects. Default: as configured."),
]
Manifests = Annotated[
    list[Path], typer.Argument(metavar="FILE", help="Manifests, or folders of manifests; - for standard input.")
]
Folder = Annotated[
    Path,
    typer.Option(
        "--dir",
        metavar="FOLDER",
        help="Folder for data and logs of local servers. Other commands find only one that is called .dynamo.",
    ),
]


class Output(StrEnum):
    """Output for people or for programs."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class LineOutput(StrEnum):
    """Output for people or for programs, with one line for each entry."""

    TABLE = "table"
    JSON = "json"


class ApiVersion(StrEnum):
    """Versions of the kinds that have two."""

    V1ALPHA1 = "v1alpha1"
    V1BETA1 = "v1beta1"


AnyOutput = Annotated[Output, typer.Option("--output", "-o", help="Output format: for people or for programs.")]
JsonOutput = Annotated[LineOutput, typer.Option("--output", "-o", help="For people, or as JSON.")]


@dataclass(frozen=True, slots=True)
class BusOptions:
    """The NATS server of a command, and the platform's cluster name."""

    nats: Nats = None
    cluster: Cluster = None
    config: Config = None

    def where(self) -> NatsTarget:
        """The server of the command line, otherwise of the settings, otherwise of the platform that runs here. Raises
        CtlError if there is none.
        """
        from dynamo_ctl.nats_targets import nats_server

        return nats_server(self.nats, self.cluster, self.config)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Make a command for typer. A parameter whose type is a dataclass becomes options: the dataclass's fields."""
    own = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: each.annotation for name, each in own.parameters.items() if is_dataclass(each.annotation)
    }
    parameters = [
        option
        for name, each in own.parameters.items()
        for option in (_options(groups[name]) if name in groups else (each,))
    ]

    @wraps(command)
    def called(**given: Any) -> None:
        grouped = {
            name: group(**{each.name: given.pop(each.name) for each in fields(group)}) for name, group in groups.items()
        }
        command(**given, **grouped)

    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def _options(group: Any) -> Iterator[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    for each in fields(group):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        yield inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if default is MISSING else default,
            annotation=types[each.name],
        )
