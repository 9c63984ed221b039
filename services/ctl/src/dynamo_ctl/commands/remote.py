"""The options of commands that call the REST API, and how these commands run."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynamo_ctl.commands.parameters import Kubeconfig

if TYPE_CHECKING:
    from dynamo_ctl.remote import Remote

Server = Annotated[
    str,
    typer.Option("--server", metavar="URL", envvar="DYNAMO_SERVER_URL", help="The platform's REST API."),
]
#: For commands that also work without the API: only the command line chooses the API.
ViaServer = Annotated[str, typer.Option("--server", metavar="URL", help="Call the platform's REST API instead.")]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="Bearer token. Default: $DYNAMO_TOKEN, or the token of the kubeconfig."
    ),
]
NO_SERVER = (
    "no server given: use --server https://HOST or $DYNAMO_SERVER_URL, or run this where dynamoctl up or demo runs"
)


@dataclass(frozen=True, slots=True)
class ApiOptions:
    """The REST API that a command calls, and its caller."""

    server: Server = ""
    token_file: TokenFile = None
    kubeconfig: Kubeconfig = None

    def run(
        self,
        work: Callable[[Remote], Awaitable[None]],
        namespace: str | None,
        *,
        follow: bool = False,
        otherwise: str = "",
    ) -> None:
        """Run a command's work with the API; without a server, with the API of the platform that runs in this folder.

        Raises CtlError if there is no platform; the message then includes `otherwise`, the way that needs none.
        `namespace`: that of `-n`. `follow`: the work has no end, and Ctrl-C ends it with success.
        """
        from dynamo_ctl import interrupts, remote, running_platform, settings, targets
        from dynamo_ctl.errors import CtlError, ExitCode

        server, token_file, cluster = self.server, self.token_file, targets.ClusterOptions(self.kubeconfig)
        settings.quiet(follow=follow)
        here = running_platform.find()
        if not server and (here is None or not here.api):
            raise CtlError(NO_SERVER + otherwise, ExitCode.UNREACHABLE)
        if here is not None and here.api and (not server or remote.same_local(server, here.api)):
            server = server or here.api
            cluster = targets.cluster(self.kubeconfig, None)
            if here.token_file and not (token_file or self.kubeconfig or os.environ.get(remote.TOKEN)):
                token_file = Path(here.token_file)

        async def run() -> None:
            async with remote.Remote.open(server, token_file, cluster, namespace) as api:
                await work(api)

        (interrupts.serve if follow else interrupts.run)(run())


@dataclass(frozen=True, slots=True)
class OptionalApiOptions(ApiOptions):
    """The same for a command that also works without the API: it calls the API only if a server is given."""

    server: ViaServer = ""

    def is_chosen(self) -> bool:
        """Whether a server is given. Raises CtlError for a token without a server that gets it."""
        from dynamo_ctl.errors import CtlError, ExitCode

        if self.token_file is not None and not self.server:
            raise CtlError("--token-file: only with --server, which gets the token", ExitCode.USAGE)
        return bool(self.server)


def refuse_with_server(**options: object) -> None:
    """Raise CtlError for an option that the API does not support. `options`: the given options by name."""
    from dynamo_ctl.errors import CtlError, ExitCode

    if given := [name for name, value in options.items() if value]:
        names = ", ".join(f"--{name}" for name in given)
        raise CtlError(f"{names}: not allowed with --server", ExitCode.USAGE)
