"""`dynamoctl nats-config`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from dynamo_ctl.commands.parameters import Cluster, Config
from dynamo_ctl.errors import CtlError, ExitCode

if TYPE_CHECKING:
    from dynamo_shared.bus.server_config import NatsServerTls


def nats_config(
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir",
            metavar="FOLDER",
            help="Write FOLDER/nats.conf and a password file for each user; missing passwords are random.",
        ),
    ] = None,
    group_readable: Annotated[
        bool,
        typer.Option(
            "--group-readable", help="Make the files readable for their group. Default: only for their owner."
        ),
    ] = False,
    users: Annotated[str | None, typer.Option(metavar="NAME,...", help="Only these users. Default: all.")] = None,
    users_only: Annotated[
        bool, typer.Option("--users-only", help="Only the `authorization` block, to include in a configuration.")
    ] = False,
    cluster: Cluster = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where clients connect.")] = "0.0.0.0:4222",
    monitoring: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Address for health and metrics over HTTP; empty for none.")
    ] = "",
    store: Annotated[str, typer.Option(metavar="FOLDER", help="Folder for the server's streams.")] = "/data",
    tls: Annotated[
        str | None,
        typer.Option(
            metavar="CERT,KEY[,CA]",
            help="Files for the server's TLS. With CA, clients need a certificate of that CA.",
        ),
    ] = None,
    config: Config = None,
) -> None:
    """Print the configuration of a nats-server for the platform: one user for each service, with the least rights.

    Passwords come from the server's environment (NATS_PASSWORD_WATCHER, ...; each must begin with a letter), or with
    --dir from files that this command writes. The users: one for each service, `platform` for all services in one
    process, `dynamoctl` for people, `integrator`, which may only read events, and `commander`, which may only send
    commands.
    """
    from dynamo_shared.bus import server_config
    from dynamo_shared.bus.permissions import USERS

    from dynamo_ctl import credentials, settings

    chosen = users.split(",") if users else list(USERS)
    if unknown := [name for name in chosen if name not in USERS]:
        raise CtlError(f"--users: unknown users {', '.join(unknown)}; use some of {', '.join(USERS)}", ExitCode.USAGE)
    for option, address in {"--listen": listen, "--monitoring": monitoring or listen}.items():
        if not _is_host_and_port(address):
            raise CtlError(
                f"{option}: {address!r} is not an address; write HOST:PORT, as in 0.0.0.0:4222", ExitCode.USAGE
            )
    server = server_config.NatsServerConfig(
        listen=listen, monitoring=monitoring, store=store, tls=_tls(tls) if tls else None
    )
    name = cluster or settings.load(config).platform.cluster_name
    mode = credentials.OWNER_AND_GROUP if group_readable else credentials.OWNER_ONLY
    passwords = credentials.load_or_create(folder, chosen, mode=mode) if folder else server_config.variables(chosen)
    whole = server_config.configuration(name, passwords, server)
    text = server_config.text({"authorization": whole["authorization"]} if users_only else whole)
    if folder is None:
        typer.echo(text, nl=False)
    else:
        credentials.write(folder / "nats.conf", text, mode=mode)
        typer.echo(f"wrote {folder / 'nats.conf'} and the passwords of {', '.join(chosen)} next to it")


def _tls(files: str) -> NatsServerTls:
    """The TLS configuration of `CERT,KEY[,CA]`. Raises CtlError."""
    from dynamo_shared.bus.server_config import NatsServerTls

    certificate, _, rest = files.partition(",")
    key, _, ca = rest.partition(",")
    if not (certificate and key):
        raise CtlError("--tls: write CERT,KEY or CERT,KEY,CA", ExitCode.USAGE)
    return NatsServerTls(certificate, key, ca, verify=bool(ca))


def _is_host_and_port(address: str) -> bool:
    try:
        parts = urlsplit(f"//{address}")
        return parts.port is not None and parts.netloc == address and "@" not in address
    except ValueError:
        return False
